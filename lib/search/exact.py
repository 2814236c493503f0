"""Exact nearest-neighbour search in any geometry, block by block."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, by_name
from lib.geometry.inner import InnerProduct, groups_of, largest, optimistic, with_norms
from lib.geometry.points import Points, as_tensor
from lib.metrics.keys import common_codes, rank_keys

SPARE = 12
"""Candidates beyond k that are compared exactly; with fewer, more queries would need the thorough search."""

MANY = 50_000
"""From so many points on, a single query looks at a few directions first: among fewer, all is quick."""

BLOCK = (256, 131072)
"""Queries and gallery items whose products exist at a time; of fewer queries, more items."""

Hidden = Callable[[slice, slice | Tensor], Tensor]
"""Takes rows of the queries and columns of the gallery, (n,) or (rows, n); says which are left out of the answers."""

Key = Callable[[slice, slice], Tensor]

_ROWS = 2**16


@torch.no_grad()
def nearest(
    query: Points,
    gallery: Points,
    k: int,
    geometry: str | Geometry,
    query_ids: ArrayLike | None = None,
    gallery_ids: ArrayLike | None = None,
    block: tuple[int, int] = BLOCK,
) -> tuple[Tensor, Tensor]:
    """Distances and gallery indices of the k nearest items, (q, k) each, nearest first, ties by gallery index.

    ``query``: (q, d), ``gallery``: (m, d) in ``geometry`` (or its name), ids one per row. A gallery item with the
    query's id is left out; a row with fewer than k items left ends in index -1 and distance inf. At most ``block``
    (queries, gallery items) numbers exist at a time. Raises InputError for k outside 1 to m, an empty or mismatched
    input, a missing id, NaN, a point on the rim of the ball or beyond it, and a distance that is not finite.

    Matrix products in float32 propose k + :data:`SPARE` candidates, which are sorted by their float64 keys. Where the
    k-th key is not below every key that the others can have, rounding included, all items that can be as near are
    sorted so. What has no place among the products is searched thoroughly, with the float64 keys of all items. So the
    order is the one of float64 either way. Who asks one gallery many times prepares it once: :class:`Prepared`.

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
    indices = None
    if not _few(gallery, k):
        hidden = None if ids is None else lambda rows, columns: ids[0][rows, None] == ids[1][columns]
        with suppress(InputError):  # a point without a place among the products: the thorough search knows what to do
            indices = Prepared.of(gallery, InnerProduct.about(geometry, gallery)).find(query, k, hidden, block)
    if indices is None:
        indices = _thoroughly(key, len(query), len(gallery), k, block, query.device)
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


def codes_of(points: Tensor, form: InnerProduct) -> Tensor:
    """The vectors of ``points: (m, d)`` with their norms, as columns (d + 3, m), so that products run along memory.

    Raises InputError where a point has no place in the form.
    """
    wide = points.shape[1] if form.axes is None else form.axes.shape[1]
    codes = torch.empty(wide + 3, len(points), dtype=torch.float32, device=points.device)
    try:
        for start in range(0, len(points), _ROWS):
            rows = slice(start, start + _ROWS)
            codes[:, rows] = with_norms(form.gallery(points[rows])).T
    except InputError:
        form.gallery(points)  # so that the row in the message is counted from the first one
        raise
    return codes


@dataclass(frozen=True)
class Prepared:
    """A gallery made ready once, for as many searches as there are.

    ``points``: (m, d) in the space of ``form``; ``codes``: :func:`codes_of` them; ``lead``: codes of the directions
    ``axes: (d, r)`` in which the points differ most, and None where too little is told by them. A single query reads
    the lead alone: it tells which points can be near, and these are few.
    """

    points: Tensor
    form: InnerProduct
    codes: Tensor
    axes: Tensor | None = None
    lead: Tensor | None = None

    @classmethod
    def of(cls, points: Tensor, form: InnerProduct) -> "Prepared":
        """Prepare ``points: (m, d)``; raises InputError where one has no place in the form."""
        return cls(points, form, codes_of(points, form))

    def led(self) -> "Prepared":
        """With the lead of many points, where single queries are answered by it."""
        (m, d), form = self.points.shape, self.form
        if m < MANY or d < 8:
            return self
        some = self.points[:: -(-m // 10_000)]
        spread = form.away(some) * form.factor(some).sqrt()[:, None]
        axes = torch.linalg.eigh(spread.T @ spread).eigenvectors[:, -(d // 4) :].contiguous()
        led = replace(self, axes=axes, lead=codes_of(self.points, replace(form, axes=axes)))
        queries = some[:: len(some) // 16].split(1)
        answered = sum(led._by_lead(query, slice(0, 1), 20, None) is not None for query in queries)
        return led if answered > len(queries) / 2 else self

    def grown(self, points: Tensor) -> "Prepared":
        """Of ``points: (m, d)``, of which the first are those here."""
        new, lead = points[len(self.points) :], self.lead
        if lead is not None:
            lead = torch.cat([lead, codes_of(new, replace(self.form, axes=self.axes))], dim=1)
        codes = torch.cat([self.codes, codes_of(new, self.form)], dim=1)
        return replace(self, points=points, codes=codes, lead=lead)

    def shrunk(self, points: Tensor, keep: Tensor) -> "Prepared":
        """Of the remaining ``points: (n, d)``, which of those here to ``keep: (m,)``."""
        lead = None if self.lead is None else self.lead[:, keep].contiguous()
        return replace(self, points=points, codes=self.codes[:, keep].contiguous(), lead=lead)

    def find(self, query: Tensor, k: int, hidden: Hidden | None = None, block: tuple[int, int] = BLOCK) -> Tensor:
        """The k nearest points of each ``query: (q, d)``, (q, k), in the order of float64, ties by their number.

        A row with fewer than k points that are not ``hidden`` ends in -1. Raises InputError where a query has no place.
        """
        geometry, size = self.form.geometry, len(self.points)
        if _few(self.points, k):
            key = _hiding(rank_keys(query, self.points, geometry, wide=True), hidden)
            return _thoroughly(key, len(query), size, k, block, query.device)
        if self.lead is not None and len(query) == 1:
            near = self._by_lead(query, slice(0, 1), k, hidden)
            if near is not None:
                return near[None]
        left, found = optimistic(self.form.query(query)), []
        for first in range(0, len(query), block[0]):
            rows = slice(first, min(first + block[0], len(query)))
            width = block[0] * block[1] // (rows.stop - rows.start)
            best, candidates = self._proposed(left[rows], rows, k + SPARE + 1, hidden, width)
            candidates = candidates[:, :-1].sort(dim=1).values  # so that a stable sort keeps ties in order
            keys = self.form.keys(query[rows], self.points[candidates])
            if hidden is not None:
                keys.masked_fill_(hidden(rows, candidates), torch.inf)
            keys, order = keys.sort(dim=1, stable=True)
            nearest_k = candidates.gather(1, order[:, :k]).masked_fill_(keys[:, :k] == torch.inf, -1)
            others = -best[:, -1].double()  # no other key is below this
            unsure = (keys[:, k - 1] >= others) & (others < torch.inf)
            for place in unsure.nonzero()[:, 0].tolist():
                row = slice(first + place, first + place + 1)
                nearest_k[place] = self._within(query[row], left[row], row, k, keys[place, k - 1], hidden, width)
            found.append(nearest_k)
        return torch.cat(found)

    def _by_lead(self, query: Tensor, row: slice, k: int, hidden: Hidden | None) -> Tensor | None:
        """The k nearest, (k,), of one query ``(1, d)``; None where the lead leaves too many, or there are fewer."""
        left = optimistic(replace(self.form, axes=self.axes).query(query))
        scores = left @ self.lead
        if hidden is not None:
            scores.masked_fill_(hidden(row, slice(None)), -torch.inf)
        groups = groups_of(scores)
        best, at = largest(scores, k + SPARE, groups)
        keys = self.form.keys(query, self.points[at]).masked_fill_(best == -torch.inf, torch.inf)
        key = keys[0].kthvalue(k).values
        if key == torch.inf:
            return None
        near = _reaching(_no_more(-key), groups)
        return self._sorted(query, near, k) if len(near) <= max(len(self.points) // 128, 4 * k) else None

    def _proposed(self, left: Tensor, rows: slice, n: int, hidden: Hidden | None, width: int) -> tuple[Tensor, Tensor]:
        """The n largest products of each row, largest first, and their columns, (rows, n) each."""
        parts = []
        for start in range(0, len(self.points), width):
            best, at = largest(self._products(left, rows, slice(start, start + width), hidden), n)
            parts.append((best, at + start))
        best, order = torch.cat([part for part, _ in parts], dim=1).topk(n, dim=1)
        return best, torch.cat([part for _, part in parts], dim=1).gather(1, order)

    def _products(self, left: Tensor, rows: slice, columns: slice, hidden: Hidden | None) -> Tensor:
        scores = left @ self.codes[:, columns]
        return scores if hidden is None else scores.masked_fill_(hidden(rows, columns), -torch.inf)

    def _within(
        self, query: Tensor, left: Tensor, row: slice, k: int, key: Tensor, hidden: Hidden | None, width: int
    ) -> Tensor:
        """The k nearest, (k,), of one query of which k points are known that have this key or a smaller one."""
        least, parts = _no_more(-key), []
        for start in range(0, len(self.points), width):
            scores = self._products(left, row, slice(start, start + width), hidden)
            parts.append(_reaching(least, groups_of(scores)) + start)
        return self._sorted(query, torch.cat(parts), k)

    def _sorted(self, query: Tensor, near: Tensor, k: int) -> Tensor:
        """The first k of the points ``near: (n,)``, ascending numbers, by their float64 keys to ``query: (1, d)``."""
        keys = torch.cat([self.form.keys(query, self.points[some][None])[0] for some in near.split(_ROWS)])
        return near[keys.sort(stable=True).indices[:k]]


def _no_more(value: Tensor) -> Tensor:
    """The next number of float32 below a float64 ``value``: rounding must not lift it."""
    return torch.nextafter(value.float(), value.new_tensor(-torch.inf, dtype=torch.float32))


def _few(points: Tensor, k: int) -> bool:
    """Whether there are so few that proposals save nothing."""
    return len(points) <= 4 * (k + SPARE)


def _hiding(key: Key, hidden: Hidden | None) -> Key:
    if hidden is None:
        return key
    return lambda rows, columns: key(rows, columns).masked_fill_(hidden(rows, columns), torch.inf)


def _reaching(least: Tensor, groups: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """The columns of those scores of one row, in groups, that are not below ``least``, ascending."""
    grouped, maxima, rest = (part[0] for part in groups)
    chosen, count = (maxima >= least).nonzero()[:, 0], len(maxima)
    row, column = (grouped[:, chosen] >= least).nonzero().unbind(1)
    others = (rest >= least).nonzero()[:, 0] + grouped.shape[0] * count
    return torch.cat([row * count + chosen[column], others]).sort().values


def _thoroughly(key: Key, n: int, size: int, k: int, block: tuple[int, int], device: torch.device) -> Tensor:
    """The k smallest of all keys of ``n`` queries and ``size`` points, (n, k), ties by number; -1 for inf."""
    found = torch.full((n, k), -1, device=device)
    for first in range(0, n, block[0]):
        rows = slice(first, first + block[0])
        best = columns = None
        for start in range(0, size, block[1]):
            values, places = _smallest(key(rows, slice(start, start + block[1])), k)
            places = places + start
            if best is not None:
                values, places = torch.cat([best, values], dim=1), torch.cat([columns, places], dim=1)
            # Earlier blocks have the lower numbers, so a stable sort keeps ties in order.
            best, order = values.sort(dim=1, stable=True)
            best, columns = best[:, :k], places.gather(1, order[:, :k])
        if size:
            found[rows, : columns.shape[1]] = columns.masked_fill(best == torch.inf, -1)
    return found


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
