"""Curvature is counted over every head that has a flat twin, or one on the sphere, loss by loss."""

import pandas as pd

from lib import paths
from lib.pipeline import curvature
from lib.results import denominators

CURVED = r"^ball|^Hyp(?:, end|$)|Hyperbolic|Hyp-ViT head, ball"
FLAT = r"^flat|^Sph(?:, end|$)|Euclidean|sphere"


def test_every_comparison_that_is_committed_is_counted_once():
    counted = sum(len(curvature.tests(twins)) for twins in curvature.TWINS)
    committed = 0
    for file in paths.REPORTS.glob("*/sample/*/*/table_*tests*.csv"):
        tests = denominators.by_min(pd.read_csv(file))
        if (file.parts[-5], file.parts[-2]) not in curvature.LEFT_OUT and "second" in tests:
            apart = file.stem.endswith(("by_class", "label_tests", "end_to_end"))  # the same heads, weighed otherwise
            heads = tests["first"].str.contains(CURVED) & tests["second"].str.contains(FLAT)
            same = tests["first"].str.partition(" (")[0] == tests["second"].str.partition(" (")[0]
            heads &= same | ~tests["first"].str.contains("Hyperbolic")
            heads &= ~tests.get("measure", pd.Series("", tests.index)).str.contains("class mean")
            committed += 0 if apart else int((heads & ~(tests.get("at_rim", 0) > 5)).sum())
    assert counted == committed > 150


def test_a_row_counts_each_of_its_tests_once():
    rows = curvature.table()
    assert list(dict.fromkeys(rows["loss"])) == ["Hyper-DINO", "Hyp-ViT", "Label tree"]
    counts = rows[["better", "worse", "not clear", "could not tell"]].map(lambda cell: int(cell.partition(" ")[0]))
    assert (counts.sum(axis=1) == rows["tests"]).all()


def test_a_clear_gain_is_told_with_its_dataset():
    folder = paths.report("label_tree", "sample", "ham10000", "results")
    tests = pd.read_csv(folder / "table_tests.csv").query("question == 'is the ball better than the sphere?'")
    gains = tests.query("measure == 'Top-1' and difference > 0 and p_holm <= 0.05")
    (row,) = curvature.table().query("`ball compared with` == 'sphere: Top-1'").to_dict("records")
    assert len(gains) and row["better"] == f"{len(gains)} (HAM10000 {len(gains)})"
    assert curvature.outcomes(gains)["better"] == len(gains)
