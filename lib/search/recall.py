"""What share of the nearest items an index finds, measured on its own gallery when it is built."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Geometry, Sphere

SAMPLE, K, BANDS = 100, 10, 4
"""Recall@10 of 100 points of the gallery, each without itself, at each of four bands of its radii."""

GOOD, ENOUGH = 0.99, 0.9
"""Below the first there is a warning, below the second no index."""

Search = Callable[[np.ndarray, int], tuple[ArrayLike, ArrayLike]]
"""Takes gallery rows (n,) and k; gives the distances and indices (n, k) of their nearest, −1 where one is missing."""


@dataclass(frozen=True)
class Band:
    """What share of the nearest is found for points at radius ``low`` to ``high``: 0 to 1."""

    low: float
    high: float
    recall: float


def radii(points: Tensor, space: Geometry) -> np.ndarray:
    """How far ``points: (m, d)`` are from the origin, (m,); 0 for all on the sphere, which has no origin."""
    if isinstance(space, Sphere):
        return np.zeros(len(points))
    return space.between(points, torch.zeros_like(points[:1])).double().numpy()


def by_radius(search: Search, exact: Search, radius: ArrayLike) -> list[Band]:
    """The recall in bands of equal width from the smallest to the largest ``radius: (m,)``; empty ones are left out.

    Near the rim distances behave unlike those at the centre, and most points of a gallery may lie in one place only.
    """
    radius = np.asarray(radius)
    edges = np.linspace(radius.min(), radius.max(), BANDS + 1)
    band_of = np.searchsorted(edges[1:-1], radius)
    return [
        Band(radius[rows].min(), radius[rows].max(), on_itself(search, exact, len(radius), rows))
        for rows in (np.flatnonzero(band_of == band) for band in np.unique(band_of))
    ]


def on_itself(search: Search, exact: Search, size: int, among: np.ndarray | None = None) -> float:
    """Of the nearest items of some gallery rows, always the same, the share that ``search`` finds: 0 to 1.

    ``exact`` knows the truth, ``size`` is the number of gallery items, ``among`` are rows to choose from. An item as
    near as the last true neighbour counts, as equal distances have no order. A single item has a recall of 1.
    """
    k = min(K, size - 1)
    if not k:
        return 1.0
    among = np.arange(size) if among is None else among
    rows = np.sort(np.random.default_rng(0).permutation(among)[:SAMPLE])
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
