"""What ties cost: how much of a list they leave open, its best and worst order, and who stands first in one class."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lib import checks
from lib.errors import InputError


def tied_pairs(distance: ArrayLike, k: int) -> np.ndarray:
    """Of all pairs of the first ``k`` answers, the share at one distance, whose order says nothing: (q,) from 0 to 1.

    ``distance``: (q, m). A list as long as the gallery where that is shorter; of one answer there is no pair: 0.

    >>> tied_pairs([[0, 0, 0, 5], [0, 1, 2, 2]], k=3).tolist()
    [1.0, 0.0]
    """
    distance = _table("distance", distance)
    checks.values(k=k)
    k = min(k, distance.shape[1])
    first = np.sort(distance, axis=1)[:, :k]
    if k < 2:
        return np.zeros(len(first))
    new = np.ones_like(first, dtype=bool)
    new[:, 1:] = first[:, 1:] != first[:, :-1]
    runs = np.zeros((len(first), k))
    np.add.at(runs, (np.arange(len(first))[:, None], new.cumsum(axis=1) - 1), 1)
    return (runs * (runs - 1)).sum(axis=1) / (k * (k - 1))


class Orders(NamedTuple):
    """Keys (q, m) that rank as distances do, with what is relevant first (``best``) or last (``worst``) in a tie."""

    best: np.ndarray
    worst: np.ndarray


def orders(distance: ArrayLike, relevant: ArrayLike) -> Orders:
    """The kindest and the unkindest order of ties between whole distances ``(q, m)``; relevant: (q, m) bool.

    >>> orders([[1, 1]], [[False, True]]).best.tolist()
    [[1.25, 0.75]]
    """
    distance, relevant = _table("distance", distance), _table("relevant", relevant).astype(bool)
    if distance.shape != relevant.shape or (distance != np.round(distance)).any():
        raise InputError(f"distance {distance.shape}, relevant {relevant.shape}: expected one shape, whole distances")
    step = np.where(relevant, 0.25, -0.25)
    return Orders(distance - step, distance + step)


def share_among(key: ArrayLike, among: ArrayLike, hits: ArrayLike, k: int) -> np.ndarray:
    """Of the first ``k`` answers that count, the share of ``hits``, ties in expectation: (q,).

    Args:
        key: (q, m), smaller is nearer; equal keys are in any order, and the mean over all orders is given.
        among: (q, m) bool, which answers count at all: those of the query's class.
        hits: (q, m) bool, what is looked for among them: those of its subtype.
        k: answers; where fewer count, all of them.

    Returns:
        NaN for a query of which no answer counts.

    >>> share_among([[0, 1, 1, 2]], [[True, True, True, False]], [[True, True, False, True]], k=2).tolist()
    [0.75]
    """
    key, among, hits = _table("key", key), _table("among", among).astype(bool), _table("hits", hits).astype(bool)
    checks.values(k=k)
    if not key.shape == among.shape == hits.shape:
        raise InputError(f"key {key.shape}, among {among.shape} and hits {hits.shape}: expected one shape")
    if (key[among] == np.inf).any():
        raise InputError("a key is infinite: rank by finite numbers")
    n = np.minimum(k, among.sum(axis=1))
    masked = np.where(among, key, np.inf)
    last = np.sort(masked, axis=1)[np.arange(len(key)), np.maximum(n, 1) - 1][:, None]
    before, at = masked < last, (masked == last) & among
    drawn = np.divide((at & hits).sum(axis=1), at.sum(axis=1), out=np.zeros(len(key)), where=at.any(axis=1))
    n_hits = (before & hits).sum(axis=1) + drawn * (n - before.sum(axis=1))
    return np.divide(n_hits, n, out=np.full(len(key), np.nan), where=n > 0)


def _table(name: str, values: ArrayLike) -> np.ndarray:
    values = np.asarray(values)
    if values.ndim != 2 or not values.size:
        raise InputError(f"{name} has the shape {values.shape}; expected (q, m), and neither of them 0")
    return values
