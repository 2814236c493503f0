"""What the paper prints, read off its tables."""

import pytest

from lib.papers.hyper_dino.published import TABLES, baseline, rotation_gap


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
