"""Exact nearest-neighbour search in any geometry, block by block."""

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Geometry
from lib.metrics.retrieval import rank_keys


@torch.no_grad()
def nearest(
    query: Tensor,
    gallery: Tensor,
    k: int,
    geometry: Geometry,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    block: tuple[int, int] = (1024, 65536),
) -> tuple[Tensor, Tensor]:
    """Distances and gallery indices of the k nearest items, (q, k) each, nearest first, ties by gallery index.

    ``query``: (q, d), ``gallery``: (m, d), ids one per row. A gallery item with the query's id is left out; a row with
    fewer than k items left ends in index -1 and distance inf. Rank keys are compared in blocks of ``block`` (queries,
    gallery items), distances are computed for the k found only. Raises InputError for k outside 1 to m, an empty or
    mismatched input, a missing id, NaN, and a distance that is not finite.

    The order is that of the rank keys: the distances of nearly equal items can be out of order by a rounding error.

    >>> from lib.geometry import Euclidean
    >>> points = torch.tensor([[0.0], [1.0], [3.0]])
    >>> distances, indices = nearest(points, points, 2, Euclidean(), query_ids=[0, 1, 2], gallery_ids=[0, 1, 2])
    >>> indices.tolist(), distances.tolist()
    ([[1, 2], [0, 2], [1, 0]], [[1.0, 3.0], [1.0, 2.0], [2.0, 3.0]])
    """
    key = rank_keys(query, gallery, geometry, query_ids, gallery_ids)
    if not 1 <= k <= len(gallery):
        raise InputError(f"k = {k}: the gallery has {len(gallery)} items, ask for 1 to {len(gallery)} of them")
    found = []
    for first in range(0, len(query), block[0]):
        rows = slice(first, first + block[0])
        best = indices = None
        for start in range(0, len(gallery), block[1]):
            values, places = _smallest(key(rows, slice(start, start + block[1])), k)
            if best is not None:
                values, places = torch.cat([best, values], dim=1), torch.cat([indices, places + start], dim=1)
            # Earlier blocks have the lower gallery indices, so a stable sort keeps ties in order.
            best, order = values.sort(dim=1, stable=True)
            best, indices = best[:, :k], places.gather(1, order[:, :k])
        distances = geometry.between(query[rows, None], gallery[indices])
        excluded = best == torch.inf
        found.append((distances.masked_fill(excluded, torch.inf), indices.masked_fill(excluded, -1)))
    distances, indices = (torch.cat(parts) for parts in zip(*found, strict=True))
    return distances, indices


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
