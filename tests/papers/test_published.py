"""No number that ACIR and Hyp-ViT print in a long table was lost on the way; other papers count their own."""

import pandas as pd
import pytest

from lib import paths

NUMBERS = {
    "acir_table1_map": 176,
    "acir_table2_ablation": 18,
    "acir_table4_pretraining": 16,
    "acir_table5_long_codes": 12,
    "acir_table6_radius": 96,
    "hyp_vit_table1_delta": 12,
    "hyp_vit_table2_head128_recall": 159,
    "hyp_vit_table3_encoder384_recall": 343,
    "hyp_vit_table4_patch_size": 24,
    "hyp_vit_table5_hyperparameters": 24,
}


@pytest.mark.parametrize(("file", "numbers"), NUMBERS.items(), ids=str)
def test_every_table_of_a_paper_is_there_whole(file, numbers):
    table = pd.read_csv(paths.PUBLISHED / f"{file}.csv")
    assert len(table) == numbers and table["value"].notna().all()
