"""What the paper prints, read off its tables."""

import pytest

from lib.papers.hyper_dino.published import TABLES, baseline, compact_wins, headlines, published, rotation_gap


def test_every_published_table_is_read_whole():
    """Tables 2 and 3 print a baseline at 8 lengths; every table has 14 rows of 32 and 18 of dim_in; four k each."""
    for dataset, baselines in zip(TABLES, (8, 8, 0, 0, 0), strict=True):
        rows = published(dataset)
        assert len(rows) == 4 * (14 + 18 + baselines) and not rows.isna().any(axis=None)
        assert not rows.duplicated(["cls", "dim_in", "family", "k"]).any()
        assert rotation_gap(dataset, 20) > 2


def test_the_baseline_is_that_of_table_2():
    """Kather: 91.68 with 10 numbers and 94.34 with 80 at k = 1; 88.46 with 20 at k = 20; BH100X has none."""
    at_1, at_20 = (baseline("kather", k) for k in (1, 20))
    assert at_1[[10, 80]].tolist() == [91.68, 94.34] and at_20[20] == at_20.max() == 88.46
    assert sorted(at_1.index) == sorted(at_20.index) == [10, 20, 40, 50, 80, 160, 230, 384]
    assert baseline("bh100x", 20).empty


def test_the_abstract_is_the_best_row_of_each_table_and_its_gain_is_the_stated_one():
    """Read off Tables 2 to 6 and the text of section 3.3; on BH40X the best length changes with k."""
    rows = headlines().set_index("dataset")
    assert rows["abstract"].tolist() == rows["largest"].tolist() == [94.61, 86.64, 79.15, 78.91, 75.17]
    alike = {n: ", ".join([n] * 4) for n in ("384", "350", "310")}
    lengths = [alike["384"], "230, 310, 384, 384", alike["350"], alike["384"], alike["310"]]
    assert rows["lengths"].tolist() == lengths
    assert rows["baseline"].tolist() == [88.46, 59.44, 53.01, 53.48, 48.20]
    assert rows["printed_in"].tolist() == ["table", "table", "text", "text", "text"]
    assert rows["gain"].tolist() == pytest.approx([6.15, 27.20, 26.14, 25.43, 26.97])


def test_32_numbers_win_almost_always_and_never_lose_from_long_inputs():
    """Counted in the tables by hand: 13 lengths and the scaled features at four values of k (HD-5)."""
    rows = compact_wins().set_index("dataset")
    assert rows["wins"].to_dict() == {"kather": 52, "bh40x": 52, "bh100x": 44, "bh200x": 48, "bh400x": 50}
    assert rows["of"].tolist() == [56] * 5 and rows["longest_loss"].max() == 100
