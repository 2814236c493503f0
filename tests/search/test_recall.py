"""Recall on the gallery itself against a count by hand."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.search import recall


def search(points):
    """The exact search among numbers on a line."""

    def nearest(rows, k):
        distance = np.abs(points[rows][:, None] - points)
        index = distance.argsort(axis=1, kind="stable")[:, :k]
        return np.take_along_axis(distance, index, axis=1), index

    return nearest


def test_what_an_exact_search_finds_is_all_with_and_without_duplicates():
    for points in (np.arange(50.0), np.zeros(50), np.repeat(np.arange(10.0), 5), np.zeros(2), np.zeros(1)):
        assert recall.on_itself(search(points), search(points), len(points)) == 1


def test_the_point_itself_is_no_neighbour_and_what_is_missing_is_lost():
    """Of ten neighbours each the search gives the first four, behind the point itself; then -1."""
    exact = search(np.arange(30.0) ** 2)

    def few(rows, k):
        distance, index = exact(rows, k)
        return distance, np.where(np.arange(k) < 5, index, -1)

    assert recall.on_itself(few, exact, 30) == pytest.approx(0.4)
    assert recall.on_itself(few, exact, 5) == pytest.approx(1)


def test_what_is_judged():
    recall.judge(0.99, "this index", "search exactly")
    with pytest.warns(UserWarning, match=r"this index finds 98\.9% .* search exactly"):
        recall.judge(0.989, "this index", "search exactly")
    with pytest.raises(InputError, match=r"this index finds 50\.0% .* 90% are the least: search exactly"):
        recall.judge(0.5, "this index", "search exactly")
