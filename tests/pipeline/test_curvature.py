"""Curvature is counted over every head that has a flat twin, loss by loss."""

import pandas as pd

from lib import paths
from lib.pipeline import curvature


def test_every_loss_with_a_flat_twin_is_counted_and_each_test_once():
    rows = curvature.table()
    assert list(dict.fromkeys(rows["loss"])) == ["Hyper-DINO", "Hyp-ViT", "Linear prototypes", "Label tree"]
    counts = rows[["better", "worse", "even", "untold"]].map(lambda cell: int(cell.partition(" ")[0]))
    assert (counts.sum(axis=1) == rows["tests"]).all() and (counts.sum() == curvature.total()).all()


def test_a_clear_gain_is_told_with_its_dataset():
    folder = paths.report("label_tree", "sample", "ham10000", "results")
    tests = pd.read_csv(folder / "table_tests.csv").query("question == 'is the ball better than the sphere?'")
    gains = tests.query("measure == 'Top-1' and difference > 0 and p_holm <= 0.05")
    (row,) = curvature.table().query("compared == 'ball, sphere: Top-1'").to_dict("records")
    assert len(gains) and row["better"] == f"{len(gains)} (HAM10000)"
    assert curvature.outcomes(gains)["better"] == len(gains)
