"""Exact nearest-neighbour search in any geometry, block by block."""

from collections.abc import Callable

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, by_name
from lib.geometry.points import Points, as_tensor
from lib.metrics.keys import common_codes, rank_keys
from lib.search.inner import InnerProduct, optimistic

SPARE = 12
"""Candidates beyond k that are compared exactly; with fewer, more queries would need the thorough search."""

_GROUP = 64


@torch.no_grad()
def nearest(
    query: Points,
    gallery: Points,
    k: int,
    geometry: str | Geometry,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    block: tuple[int, int] = (256, 131072),
) -> tuple[Tensor, Tensor]:
    """Distances and gallery indices of the k nearest items, (q, k) each, nearest first, ties by gallery index.

    ``query``: (q, d), ``gallery``: (m, d) in ``geometry`` (or its name), ids one per row. A gallery item with the
    query's id is left out; a row with fewer than k items left ends in index -1 and distance inf. At most ``block``
    (queries, gallery items) numbers exist at a time. Raises InputError for k outside 1 to m, an empty or mismatched
    input, a missing id, NaN, a point on the rim of the ball or beyond it, and a distance that is not finite.

    Matrix products in float32 propose k + :data:`SPARE` candidates, which are sorted by their float64 keys. A query
    whose k-th key is not below every key that the others can have, rounding included, is searched thoroughly: with the
    float64 keys of all items. So the order is the one of float64 either way.

    >>> from lib.geometry import Euclidean
    >>> points = torch.tensor([[0.0], [1.0], [3.0]])
    >>> distances, indices = nearest(points, points, 2, Euclidean(), query_ids=[0, 1, 2], gallery_ids=[0, 1, 2])
    >>> indices.tolist(), distances.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]])
    """
    query, gallery, geometry = as_tensor(query, "query"), as_tensor(gallery, "gallery"), by_name(geometry)
    key = rank_keys(query, gallery, geometry, query_ids, gallery_ids, wide=True)
    checks.within(k, len(gallery), f"gallery has {len(gallery)} items")
    checks.pair("block", block, each=checks.whole)
    ids = None if query_ids is None else common_codes(query_ids, gallery_ids, query, gallery, "id")
    indices = torch.full((len(query), k), -1, device=query.device)
    certain = torch.zeros(len(query), dtype=torch.bool, device=query.device)
    if len(gallery) > 4 * (k + SPARE):
        certain = _by_products(query, gallery, geometry, ids, indices, block)
    _thoroughly(key, (~certain).nonzero()[:, 0], len(gallery), indices, block)
    blocks = zip(query.split(block[0]), indices.split(block[0]), strict=True)
    distances, indices = zip(*(measured(rows, gallery, found, geometry) for rows, found in blocks), strict=True)
    return torch.cat(distances), torch.cat(indices)


def measured(query: Tensor, gallery: Tensor, indices: Tensor, geometry: Geometry) -> tuple[Tensor, Tensor]:
    """Distances from ``query: (q, d)`` to the gallery items ``indices: (q, k)``, nearest first, and their indices.

    They are measured in float64 and rounded to the dtype of the query (at least float32) at the end: near the rim the
    float32 distances of two neighbours can be in the wrong order. Equal distances keep the order of ``indices``; where
    the index is -1 the distance is inf.
    """
    distances = geometry.between(query.double()[:, None], gallery[indices].double()).masked_fill(indices < 0, torch.inf)
    distances, order = distances.sort(dim=1, stable=True)
    return distances.to(torch.promote_types(query.dtype, torch.float32)), indices.gather(1, order)


def _by_products(
    query: Tensor,
    gallery: Tensor,
    geometry: Geometry,
    ids: tuple[Tensor, Tensor] | None,
    indices: Tensor,
    block: tuple[int, int],
) -> Tensor:
    """Fill the rows of ``indices`` whose order is certain, and say which they are, (q,)."""
    try:
        form = InnerProduct.about(geometry, gallery)
        left, right = optimistic(form.query(query), form.gallery(gallery))
    except InputError:  # a point without a place in this form: the thorough search knows what to do
        return torch.zeros(len(query), dtype=torch.bool, device=query.device)
    k = indices.shape[1]
    certain = []
    for first in range(0, len(query), block[0]):
        rows = slice(first, first + block[0])
        parts = []
        for start in range(0, len(gallery), block[1]):
            columns = slice(start, start + block[1])
            scores = left[rows] @ right[columns].T
            if ids is not None:
                scores.masked_fill_(ids[0][rows, None] == ids[1][columns], -torch.inf)
            best, at = _largest(scores, k + SPARE + 1)
            parts.append((best, at + start))
        best, order = torch.cat([part for part, _ in parts], dim=1).topk(k + SPARE + 1, dim=1)
        at = torch.cat([part for _, part in parts], dim=1).gather(1, order)
        candidates = at[:, :-1].sort(dim=1).values  # by index, so that a stable sort keeps ties in order
        keys = form.keys(query[rows], gallery[candidates])
        if ids is not None:
            keys.masked_fill_(ids[0][rows, None] == ids[1][candidates], torch.inf)
        keys, order = keys.sort(dim=1, stable=True)
        nearest_k = candidates.gather(1, order[:, :k])
        indices[rows] = nearest_k.masked_fill(keys[:, :k] == torch.inf, -1)
        others = -best[:, -1].double()  # no other key is below this
        certain.append((keys[:, k - 1] < others) | (others == torch.inf))
    return torch.cat(certain)


def _largest(scores: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """The n largest of each row (all if there are fewer) and their columns, in any order.

    The n largest lie in the n groups of columns with the largest maxima; looking for the maxima of groups is one
    quick pass, and what remains to be sorted is a small part.
    """
    rows, width = scores.shape
    groups = width // _GROUP
    if groups <= n:
        return scores.topk(min(n, width), dim=1)
    grouped = scores[:, : groups * _GROUP].unflatten(1, (_GROUP, groups))
    chosen = grouped.amax(1).topk(n, dim=1).indices
    members = grouped.gather(2, chosen[:, None].expand(-1, _GROUP, -1)).flatten(1)
    columns = (chosen[:, None] + torch.arange(_GROUP, device=scores.device)[:, None] * groups).flatten(1)
    rest = torch.arange(groups * _GROUP, width, device=scores.device).expand(rows, -1)
    best, order = torch.cat([members, scores[:, groups * _GROUP :]], dim=1).topk(n, dim=1)
    return best, torch.cat([columns, rest], dim=1).gather(1, order)


def _thoroughly(
    key: Callable[[slice, slice], Tensor], rows: Tensor, size: int, indices: Tensor, block: tuple[int, int]
) -> None:
    """Fill these ``rows`` of ``indices`` from all keys of a gallery of ``size`` items."""
    k = indices.shape[1]
    for batch in rows.split(block[0]) if len(rows) else ():
        best = columns = None
        for start in range(0, size, block[1]):
            values, places = _smallest(key(batch, slice(start, start + block[1])), k)
            if best is not None:
                values, places = torch.cat([best, values], dim=1), torch.cat([columns, places + start], dim=1)
            # Earlier blocks have the lower gallery indices, so a stable sort keeps ties in order.
            best, order = values.sort(dim=1, stable=True)
            best, columns = best[:, :k], places.gather(1, order[:, :k])
        indices[batch] = columns.masked_fill(best == torch.inf, -1)


def _smallest(keys: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k smallest of each row and their columns, in column order; of equal ones the first columns."""
    if k >= keys.shape[1]:
        return keys, torch.arange(keys.shape[1], device=keys.device).expand_as(keys)
    values, columns = keys.topk(k + 1, dim=1, largest=False)
    columns = columns[:, :k].sort(dim=1).values
    tied = values[:, k - 1] == values[:, k]
    # Where ties go beyond the k-th place, topk took any of them.
    rows, kth = keys[tied], values[tied, k, None]
    below, equal = rows < kth, rows == kth
    first = equal.cumsum(dim=1, dtype=torch.int32) <= k - below.sum(dim=1, keepdim=True)
    columns[tied] = (below | (equal & first)).nonzero()[:, 1].view(-1, k)
    return keys.gather(1, columns), columns
