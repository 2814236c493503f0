"""What the paper prints, read off its Tables 1 to 3 and its text."""

import pandas as pd
import pytest

from lib import paths
from lib.papers.label_tree.published import BASE, DATASETS, METHODS, OURS, ranges, results


def test_a_row_of_every_table_is_as_printed():
    """Read off Table 1 (HXE), Table 2 (HAM, SupCon) and Table 3 (InShop and iNaturalist, the last row)."""
    rows = results().set_index(["dataset", "method"])
    names = ["HF1", "H-Acc", "PC-Order", "Violations", "Top-1"]
    assert rows.loc[("breakhis", "HXE"), names].tolist() == [0.692, 0.730, 0.816, 0.173, 0.681]
    short = ["HF1", "PC-Order", "Violations", "Top-1"]
    assert rows.loc[("ham10000", "SupCon"), short].tolist() == [0.603, 0.751, 0.282, 0.680]
    last = METHODS[-1]
    assert rows.loc[("in_shop", last), ["HF1", "PC-Order", "Violations", "Recall@5"]].tolist() == [
        0.595,
        0.833,
        0.190,
        0.962,
    ]
    assert rows.loc[("inaturalist", last), short].tolist() == [0.571, 0.801, 0.202, 0.682]


def test_nothing_is_lost_on_the_way():
    rows = results()
    files = sorted(paths.PUBLISHED.glob("label_tree_table*.csv"))
    assert len(files) == 3 and rows.drop(columns=["dataset", "method"]).notna().sum().sum() == 45 + 72 + 72
    assert sum(len(pd.read_csv(file)) for file in files) == 189
    assert len(rows) == len(DATASETS) * len(METHODS) == 45
    assert rows[["HF1", "PC-Order", "Violations"]].notna().all(axis=None)
    assert rows.loc[rows["dataset"] == "in_shop", "Top-1"].isna().all()
    assert rows.loc[rows["dataset"] != "breakhis", "H-Acc"].isna().all()


def test_the_ranges_are_those_of_the_text():
    """Section 4.5: HF1 7-13, PC-Order 7-16, Violations 33-45, Top-1 4-8, R@5 5.2; section 5 once more."""
    rows = ranges()
    first = rows[rows["section"] == "4.5"].set_index("metric")[["low", "high"]].to_numpy().tolist()
    assert first == [[7, 13], [7, 16], [33, 45], [4, 8], [5.2, 5.2]]
    second = rows[rows["section"] == "5"][["low", "high"]].to_numpy().tolist()
    assert second == [[9, 13], [11, 16], [39, 45], [5, 8], [7.2, 7.2], [10.2, 10.2], [33, 33]]


@pytest.mark.parametrize("method", [BASE, *OURS])
def test_the_methods_that_gains_are_counted_from_are_in_the_tables(method):
    assert (results()["method"] == method).sum() == 5
