"""What the paper prints, read off its Tables 1 to 3 and its text."""

import pandas as pd

from lib import paths
from lib.papers.label_tree.published import BASE, METHODS, METRICS, OURS, ranges, results


def test_a_row_of_every_table_is_as_printed():
    """Read off Table 1 (HXE), Table 2 (HAM, SupCon) and Table 3 (InShop and iNaturalist, the last row)."""
    rows = results().set_index(["dataset", "method"])[list(METRICS)]
    last = METHODS[-1]
    assert rows.loc[("breakhis", "HXE")].dropna().tolist() == [0.692, 0.730, 0.816, 0.173, 0.681]
    assert rows.loc[("ham10000", "SupCon")].dropna().tolist() == [0.603, 0.751, 0.282, 0.680]
    assert rows.loc[("in_shop", last)].dropna().tolist() == [0.595, 0.833, 0.190, 0.962]
    assert rows.loc[("inaturalist", last)].dropna().tolist() == [0.571, 0.801, 0.202, 0.682]


def test_nothing_is_lost_on_the_way():
    rows, files = results(), sorted(paths.PUBLISHED.glob("label_tree_table*.csv"))
    assert len(rows) == 45 and rows[list(METRICS)].notna().sum().sum() == 189
    assert sum(len(pd.read_csv(file)) for file in files) == 189
    assert all((rows["method"] == method).sum() == 5 for method in (BASE, *OURS))


def test_the_ranges_are_those_of_the_text():
    """Section 4.5: HF1 7-13, PC-Order 7-16, Violations 33-45, Top-1 4-8, R@5 5.2; section 5 once more."""
    rows = ranges()
    first, second = (rows.loc[rows["section"] == name, ["low", "high"]].to_numpy().tolist() for name in ("4.5", "5"))
    assert first == [[7, 13], [7, 16], [33, 45], [4, 8], [5.2, 5.2]]
    assert second == [[9, 13], [11, 16], [39, 45], [5, 8], [7.2, 7.2], [10.2, 10.2], [33, 33]]
