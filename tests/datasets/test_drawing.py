"""Some images of each class: as many as were asked for, nested, and drawn by the seed."""

import numpy as np
import pytest

from lib.datasets.drawing import of_each_class
from lib.errors import InputError

LABELS = np.array([2, 0, 0, 1, 0, 2, 2, 2, 3])
EVEN, ROWS = np.arange(60) % 4, np.arange(10, 50)


def test_a_class_gives_what_it_has_and_no_image_twice():
    chosen = of_each_class(LABELS, seed=0, per_class=3, classes=range(3))
    assert np.bincount(LABELS[chosen]).tolist() == [3, 1, 3]
    assert chosen.tolist() == sorted(set(chosen.tolist()))


@pytest.mark.parametrize(
    "sizes",
    [[{"fraction": f} for f in (0.01, 0.25, 0.5, 1.0)], [{"per_class": n} for n in (1, 2, 5, 1000)]],
    ids=["fraction", "per class"],
)
def test_draws_are_nested_and_keep_every_class(sizes):
    parts = [set(of_each_class(EVEN, seed=1, rows=ROWS, **size).tolist()) for size in sizes]
    assert [len(part) for part in parts] == [4, 8, 20, 40]
    assert parts[0] < parts[1] < parts[2] < parts[3] == set(ROWS.tolist())
    assert all({EVEN[row] for row in part} == {0, 1, 2, 3} for part in parts)


def test_a_fraction_is_of_each_class_and_both_limits_hold():
    labels = np.repeat([0, 1], [4, 40])
    for limits, counts in (({}, [2, 20]), ({"per_class": 3}, [2, 3])):
        assert np.bincount(labels[of_each_class(labels, 0, fraction=0.5, **limits)]).tolist() == counts


def test_classes_are_the_wanted_ones_or_those_among_the_rows():
    assert set(LABELS[of_each_class(LABELS, 0, classes=[3, 0])]) == {0, 3}
    assert of_each_class(LABELS, 0, rows=np.array([1, 2, 3])).tolist() == [1, 2, 3]
    assert set(LABELS[of_each_class(LABELS, 0, classes=[1, 9])]) == {1}
    assert of_each_class(LABELS, 0, rows=ROWS[:0]).tolist() == of_each_class(LABELS, 0, classes=[]).tolist() == []
    assert not np.array_equal(of_each_class(EVEN, 0, per_class=3), of_each_class(EVEN, 1, per_class=3))


@pytest.mark.parametrize("wrong", [{"per_class": 0}, {"fraction": 0}, {"fraction": 1.5}, {"seed": -1}], ids=str)
def test_a_number_without_meaning_is_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        of_each_class(LABELS, **({"seed": 0} | wrong))
