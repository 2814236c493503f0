"""What the paper prints, read off its Table 1 and its text."""

import pandas as pd
import pytest

from lib import paths
from lib.papers.hyp_vit.published import DATASETS, curvatures, delta


def test_table_1_has_three_encoders_on_four_datasets():
    """Read off Table 1, the row of DINO and the column of SOP."""
    table = delta().pivot(index="encoder", columns="dataset", values="relative")
    assert table.loc["DINO", list(DATASETS)].tolist() == [0.315, 0.327, 0.301, 0.318]
    assert table["sop"][["ViT-S", "DeiT-S", "DINO"]].tolist() == [0.271, 0.270, 0.301]
    assert table.shape == (3, 4) and table.notna().all(axis=None)


def test_the_text_estimates_a_larger_c_than_it_uses():
    assert curvatures() == (0.2, 0.1)


@pytest.mark.parametrize(
    ("file", "numbers"),
    [
        ("table1_delta", 12),
        ("table2_head128_recall", 159),
        ("table3_encoder384_recall", 343),
        ("table4_patch_size", 24),
        ("table5_hyperparameters", 24),
    ],
)
def test_every_table_of_the_paper_is_there_whole(file, numbers):
    table = pd.read_csv(paths.PUBLISHED / f"hyp_vit_{file}.csv")
    assert len(table) == numbers and table["value"].notna().all()
