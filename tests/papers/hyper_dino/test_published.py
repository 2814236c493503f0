"""What the paper prints, read off its tables."""

import pytest

from lib.papers.hyper_dino.published import TABLES, baseline, compact_wins, headlines, rotation_gap


def test_the_baseline_is_that_of_table_2():
    """Kather: 91.68 with 10 numbers and 94.34 with 80 at k = 1; 88.46 with 20 at k = 20."""
    at_1, at_20 = (baseline("kather", k) for k in (1, 20))
    assert at_1[[10, 80]].tolist() == [91.68, 94.34]
    assert at_20[20] == at_20.max() == 88.46
    assert sorted(at_1.index) == sorted(at_20.index) == [10, 20, 40, 50, 80, 160, 230, 384]


def test_where_no_baseline_is_printed_there_is_none():
    assert baseline("bh100x", 20).empty


@pytest.mark.parametrize("dataset", TABLES)
def test_all_components_are_better_than_cls_everywhere(dataset):
    assert rotation_gap(dataset, 20) > 2


def test_the_abstract_is_the_best_row_of_each_table_and_its_gain_is_the_stated_one():
    """Read off Tables 2 to 6 and the text of section 3.3; on BH40X the best length changes with k."""
    rows = headlines().set_index("dataset")
    assert rows["abstract"].tolist() == rows["largest"].tolist() == [94.61, 86.64, 79.15, 78.91, 75.17]
    assert rows["lengths"].tolist() == [
        "384, 384, 384, 384",
        "230, 310, 384, 384",
        "350, 350, 350, 350",
        "384, 384, 384, 384",
        "310, 310, 310, 310",
    ]
    assert rows["baseline"].tolist() == [88.46, 59.44, 53.01, 53.48, 48.20]
    assert rows["printed_in"].tolist() == ["table", "table", "text", "text", "text"]
    assert rows["gain"].tolist() == pytest.approx([6.15, 27.20, 26.14, 25.43, 26.97])


def test_32_numbers_win_almost_always_and_never_lose_from_long_inputs():
    """Counted in the tables by hand: 13 lengths and the scaled features at four values of k (HD-5)."""
    rows = compact_wins().set_index("dataset")
    assert rows["wins"].to_dict() == {"kather": 52, "bh40x": 52, "bh100x": 44, "bh200x": 48, "bh400x": 50}
    assert rows["of"].tolist() == [56] * 5
    assert rows["longest_loss"].max() == 100
