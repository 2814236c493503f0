"""The few gallery items that can stand among the first of each query: float32 products propose them, keys decide.

One matrix product and a partial sort are several times faster than the rank keys of all pairs. The products are
optimistic (:func:`lib.geometry.inner.optimistic`), so the best of those that were not proposed bounds the keys of all
of them. Where that bound is not above the last key asked for, the shortlist says so, and all keys must be looked at.

Float32 chords of many dimensions are rounded in one of two ways, which a whole batch shares: it depends on how many of
its pairs are near ones (:func:`lib.geometry.numerics.chords`). So near pairs are counted, rather too many than too few.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere, numerics
from lib.geometry.inner import InnerProduct, groups_of, largest, optimistic, with_norms

SPARE = 12
"""Candidates beyond those asked for; with fewer, more queries would need all keys."""

_CELLS = 2**22  # products that exist at a time: they stay near the processor
_ROWS = 1024  # points that become vectors at a time
_GROUP = 16
_OPPOSITE = -3.9  # −‖x − y‖² of unit vectors that may be near to each other's negative
_LARGE, _TINY = 1e37, 2.0**-80  # beyond these, float32 overflows or loses what is small


class Shortlist(NamedTuple):
    """Candidates of each query: ``keys`` and ``columns`` of the gallery, (q, n), largest product first.

    The keys are those of ``rank_key``, inf for an item that is left out. Where a row is ``certain``, (q,), the keys
    asked for are among them with all their ties: every other item of the gallery has a larger key.
    """

    keys: Tensor
    columns: Tensor
    certain: Tensor


def shortlists(
    query: Tensor, gallery: Tensor, geometry: Geometry, ids: tuple[Tensor, Tensor] | None, depth: int
) -> Callable[[slice], Shortlist] | None:
    """``of(rows)``: the shortlists of a batch of queries, for the ``depth`` smallest keys of each row.

    ``query``: (q, d), ``gallery``: (m, d), checked points of one dtype; ``ids``: their codes, (q,) and (m,); items with
    the query's code are left out. None where looking at all keys is as quick, or where nothing can be promised.
    """
    n, (size, d), dtype = depth + SPARE, gallery.shape, torch.promote_types(query.dtype, torch.float32)
    if size < 8 * n or query.device.type != "cpu" or type(geometry) not in (Euclidean, PoincareBall, Sphere):
        return None
    slack = (d + 8) * torch.finfo(dtype).eps
    try:
        form = InnerProduct.about(geometry, gallery)
        left = torch.cat([form.query(some) for some in query.split(_ROWS)])
        right = torch.cat([form.gallery(some) for some in gallery.split(_ROWS)])
    except InputError:  # a point without a place in this form, such as zero on the sphere
        return None
    factor = right[:, :1]
    near_score = -4 * numerics._NEAR * factor.amax() * _longest(geometry, query, gallery) ** 2
    # Near the rim of the ball, rounding costs the factor 1/(1 − c‖y‖²) of a computed key that part of its value.
    left, right = optimistic(left), with_norms(right * (1 - slack * (factor - 1)).clamp_min(0))
    if not left.norm(dim=1).amax() * right.norm(dim=1).amax() < _LARGE:
        return None
    pairs = None if ids is None else _pairs(*ids)
    by_products = not numerics._plainly(query.to(dtype))

    def block(rows: slice) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        scores = left[rows] @ right.T
        near, opposite = torch.zeros(len(scores), dtype=torch.long), False
        if by_products and isinstance(geometry, Sphere):  # whose keys hold the chords to −y as well
            opposite = bool(scores.amin() < _OPPOSITE)
        if pairs is not None:
            out = pairs(rows)
            near.index_add_(0, out[0], (scores[out] >= near_score).long())
            scores.index_put_(out, scores.new_tensor(-torch.inf))
        best, columns = largest(scores, n + 1, groups_of(scores, _GROUP))
        best, rest, columns = best[:, :n], best[:, n], columns[:, :n]
        near += (best >= near_score).sum(dim=1).masked_fill_((rest >= near_score) | opposite, size)
        usable = torch.ones_like(near, dtype=torch.bool)
        if by_products:
            usable = (best[:, 0] < near_score) & (best[:, -1] > -torch.inf) & (not opposite)
        keys = torch.full(columns.shape, torch.inf, dtype=dtype)
        keys[usable] = geometry.rank_key(query[rows][usable, None], gallery[columns[usable]]).squeeze(1)
        keys.masked_fill_(best == -torch.inf, torch.inf)
        last = keys.kthvalue(depth, dim=1).values.double()
        others = _least(geometry, -rest.double(), slack)
        return keys, columns, usable & ((last < others) | (others == torch.inf)), near

    def of(rows: slice) -> Shortlist:
        first, end, _ = rows.indices(len(query))
        step = max(1, _CELLS // max(size, n * d))
        parts = [block(slice(start, min(start + step, end))) for start in range(first, end, step)]
        keys, columns, certain, near = (torch.cat(part) for part in zip(*parts, strict=True))
        if by_products:  # as the whole batch is rounded, so must be those rows that are looked at once more
            for batch in (near, near[~certain]):
                certain &= batch.sum() * d <= batch.numel() * size
        return Shortlist(keys, columns, certain)

    return of


def _longest(geometry: Geometry, *points: Tensor) -> float:
    """The largest ‖x‖ of the points as they are compared."""
    return 1.0 if isinstance(geometry, Sphere) else max(some.float().norm(dim=1).amax().item() for some in points)


def _least(geometry: Geometry, squared: Tensor, slack: float) -> Tensor:
    """No computed key is below this, rounding included, where ‖x − y‖²/(1 − c‖y‖²) is at least ``squared``."""
    squared = squared.masked_fill(squared < _TINY, 0)
    if isinstance(geometry, PoincareBall):
        return squared * (1 - slack)
    chord = squared.sqrt()
    if isinstance(geometry, Sphere):  # the points were rounded when they were scaled to length 1
        sine = (chord - 2 * slack).clamp_min(0)
        cosine = (4 * (1 + slack) ** 2 - sine.square()).clamp_min(slack).sqrt()
        chord = (sine / (sine + cosine)).masked_fill(squared == torch.inf, torch.inf)
    return chord * (1 - slack)


def _pairs(query: Tensor, gallery: Tensor) -> Callable[[slice], tuple[Tensor, Tensor]]:
    """``pairs(rows)``: row (from 0) and column of every pair of equal codes."""
    gallery, order = gallery.sort()
    start, end = torch.searchsorted(gallery, query), torch.searchsorted(gallery, query, right=True)

    def pairs(rows: slice) -> tuple[Tensor, Tensor]:
        counts = end[rows] - start[rows]
        row = torch.arange(len(counts)).repeat_interleave(counts)
        skipped = (start[rows] - (counts.cumsum(0) - counts)).repeat_interleave(counts)
        return row, order[torch.arange(len(row)) + skipped]

    return pairs
