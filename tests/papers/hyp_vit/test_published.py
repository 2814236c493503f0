"""What the paper prints, read off its tables and its text, and where the two disagree."""

import pandas as pd
import pytest

from lib.papers.hyp_vit.published import DATASETS, delta, patches, recall, settings


def test_table_1_has_three_encoders_on_four_datasets():
    """Read off Table 1, the row of DINO and the column of SOP."""
    table = delta().pivot(index="encoder", columns="dataset", values="relative")
    assert table.loc["DINO", list(DATASETS)].tolist() == [0.315, 0.327, 0.301, 0.318]
    assert table["sop"][["ViT-S", "DeiT-S", "DINO"]].tolist() == [0.271, 0.270, 0.301]
    assert table.shape == (3, 4) and table.notna().all(axis=None)


def recalls(table: int) -> pd.Series:
    """Recall@1 by method and dataset."""
    return recall(table).query("k == 1").set_index(["method", "dataset"])["value"]


def test_the_lead_on_birds_is_that_of_table_3_and_the_encoder_had_it_before_training():  # HV-11
    gaps = [recalls(table)["Hyp-ViT", "cub"] - recalls(table)["IRT_R", "cub"] for table in (2, 3)]
    assert gaps == pytest.approx([11.4, 9.0])
    assert recalls(3)["ViT-S", "cub"] > recalls(3)["IRT_R", "cub"]


def test_versions_with_deit_do_not_beat_all_cnns_and_are_not_always_the_worst():  # HV-12
    lost = []
    for table in (2, 3):
        rows = recall(table).query("k == 1")
        cnns = rows[~rows["encoder"].isin(["ViT-S", "DeiT"])].groupby("dataset")["value"].max()
        for version in ("Hyp-DeiT", "Sph-DeiT"):
            lost += [(version, name) for name in DATASETS if recalls(table)[version, name] < cnns[name]]
    assert lost == [(version, name) for version in ("Hyp-DeiT", "Sph-DeiT") for name in ("cars", "in_shop")] * 2
    assert recalls(2)["Sph-DeiT", "sop"] > recalls(2)["Sph-DINO", "sop"]


def test_hyp_is_above_sph_in_94_of_96_cells():  # HV-13
    rows = pd.concat([recall(table).assign(table=table) for table in (2, 3)])
    rows = rows.assign(head=rows["method"].str[:3], version=rows["method"].str[4:]).query("head in ('Hyp', 'Sph')")
    both = rows.pivot(index=["table", "dataset", "k", "version"], columns="head", values="value")
    gap = both.eval("Hyp - Sph").round(1)
    assert ((gap > 0).sum(), (gap == 0).sum(), len(gap)) == (94, 2, 96)


def test_table_5_is_of_hyp_dino_and_smaller_patches_gain_less_for_the_encoder():  # HV-5, HV-14
    first = settings().iloc[0]
    assert (first["encoder"], first["head"]) == (recalls(3)["Hyp-DINO", "in_shop"], recalls(2)["Hyp-DINO", "in_shop"])
    rows = patches().query("k == 1").dropna(subset="patch").set_index(["dim", "patch"])
    gains = [rows["value"][dim, 8] - rows["value"][dim, 16] for dim in (128, 384)]
    assert gains == pytest.approx([4.4, 3.6]) and rows["batch"][128, 8] == 120
