"""What share of the nearest items an index finds, measured on its own gallery when it is built."""

import warnings
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from lib.errors import InputError

SAMPLE, K = 100, 10
"""Recall@10 of 100 points of the gallery, each without itself: a thousand neighbours."""

GOOD, ENOUGH = 0.99, 0.9
"""Below the first there is a warning, below the second no index."""

Search = Callable[[np.ndarray, int], tuple[ArrayLike, ArrayLike]]
"""Takes gallery rows (n,) and k; gives the distances and indices (n, k) of their nearest, −1 where one is missing."""


def on_itself(search: Search, exact: Search, size: int) -> float:
    """Of the nearest items of some gallery rows, always the same, the share that ``search`` finds: 0 to 1.

    ``exact`` knows the truth, ``size`` is the number of gallery items. An item as near as the last true neighbour
    counts, as equal distances have no order. A single item has no neighbours, and a recall of 1.
    """
    k = min(K, size - 1)
    if not k:
        return 1.0
    rows = np.sort(np.random.default_rng(0).permutation(size)[:SAMPLE])
    answers, truth = (_others(rows, *way(rows, k + 1))[:, :k] for way in (search, exact))
    return float((answers <= truth[:, -1:]).mean())


def judge(recall: float, what: str, way_out: str, least: float = ENOUGH) -> None:
    """Warn of an index ``what`` with a recall below 0.99; raise InputError below ``least``. Both name the way out."""
    text = f"{what} finds {recall:.1%} of the {K} nearest (recall@{K} on its own gallery, {SAMPLE} points at most)"
    if recall < least:
        raise InputError(f"{text}; {least:.0%} are the least: {way_out}")
    if recall < GOOD:
        warnings.warn(f"{text}; for more, {way_out}", stacklevel=3)


def _others(rows: np.ndarray, distance: ArrayLike, index: ArrayLike) -> np.ndarray:
    """Distances (n, k), nearest first, without the row itself and what is missing, which are inf."""
    distance, index = np.asarray(distance, dtype=np.float64), np.asarray(index)
    return np.sort(np.where((index < 0) | (index == rows[:, None]), np.inf, distance), axis=1)
