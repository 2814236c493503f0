"""A quick search: 4 bits of every number propose, the true distance decides.

In the space of :mod:`lib.geometry.inner` a distance orders as ‖x − y‖²·g(y). FAISS compares short codes of the y
(product quantisation, 4 bits a number, its "fast scan"), which gives ‖x − y‖² to within the size of a code's cell. One
set of cells for all y would be too coarse at the rim; codes of the d + 2 numbers of an inner product are worse still:
their norms spread, and what they add up to cancels (``reports/bench/recall.md``). So the points lie in *rings*, in each
of which g at most doubles, and every ring has cells of its own. What the rings propose is sorted by ‖x − y‖²·g(y), and
the best of it by true distance.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.search import recall
from lib.search.index import Index, Kept, library

CANDIDATES = (128, 512, 2048)
"""How many are sorted by true distance for a query; the first of them that finds enough is kept."""

SMALL = 1000
"""A ring with fewer points keeps the points themselves: FAISS would have too few to learn cells from."""

LEARNT = 50_000
"""Points of a ring that its cells are learnt from."""

PARTS = ("rows", "factors", "codes")


@dataclass(frozen=True)
class Ring:
    """Points with a factor g from 2^number to 2^(number + 1): which of the gallery, (n,), their g and their codes."""

    number: int
    rows: Tensor
    factors: Tensor
    index: Any


class Quick(Index):
    """Short codes of all points are compared by FAISS, and the best of them by their true distance.

    Option of :meth:`build`: ``candidates``, how many are compared by true distance where 10 answers are asked for, and
    as many times more as more are. Without it the first of :data:`CANDIDATES` is taken that finds 99 % at every radius.
    """

    kind = "quick"
    way_out = "build with more candidates (8192), or search exactly, by lib.search.local.Exact"
    candidates: int = CANDIDATES[0]

    def _recall(self, points: Tensor) -> float:
        for candidates in self.tried[:-1]:
            self.candidates = candidates
            if (found := self._worst(points).recall) >= recall.GOOD:
                return found
        self.candidates = self.tried[-1]
        return super()._recall(points)

    def _empty(self, points: Tensor, candidates: int | None = None) -> tuple[Ring, ...]:
        checks.values(**{} if candidates is None else {"candidates": candidates})
        self.tried = CANDIDATES if candidates is None else (int(candidates),)
        faiss, rings = library("faiss"), []
        numbers, none = _numbers(self.form.factor(points)), torch.empty(0)
        for number in numbers.unique().tolist():
            those = self._flat(points[numbers == number])
            if len(those) < SMALL:
                index = faiss.IndexFlatL2(points.shape[1])
            else:
                index = faiss.IndexPQFastScan(points.shape[1], points.shape[1], 4)
                index.train(those[:: -(-len(those) // LEARNT)])
            rings.append(Ring(number, none.long(), none.double(), index))
        return tuple(rings)

    def _grown(self, structure: tuple[Ring, ...], points: Tensor) -> tuple[Ring, ...]:
        before = sum(len(ring.rows) for ring in structure)
        points = points[before:]
        factors, flat = self.form.factor(points), self._flat(points)
        numbers = torch.tensor([ring.number for ring in structure])
        place = (_numbers(factors)[:, None] - numbers).abs().argmin(1)  # the ring itself, or the nearest that there is
        rings = []
        for number, ring in enumerate(structure):
            new = (place == number).nonzero()[:, 0]
            index = _copy(ring.index)
            _put(index, flat[new.numpy()])
            rows, of_them = torch.cat([ring.rows, before + new]), torch.cat([ring.factors, factors[new]])
            rings.append(replace(ring, rows=rows, factors=of_them, index=index))
        return tuple(rings)

    def _shrunk(self, structure: tuple[Ring, ...], points: Tensor, keep: Tensor) -> tuple[Ring, ...]:
        now, rings = keep.cumsum(0) - 1, []
        for ring in structure:
            left = keep[ring.rows]
            rows, index = now[ring.rows[left]], ring.index
            if not left.all():
                index = _copy(index)
                index.reset()  # its cells stay
                _put(index, self._flat(points[rows]))
            rings.append(replace(ring, rows=rows, factors=ring.factors[left], index=index))
        return tuple(rings)

    def _find(self, kept: Kept, query: Tensor, k: int, open_to: Tensor | None) -> Tensor:
        self.form.query(query)  # names the query that has no place
        size = len(kept.points)
        best = n = min(max(k, -(-self.candidates * max(k, recall.K) // recall.K)), size)
        if open_to is not None:
            best = min(best, int(open_to.sum()))
            n = min(n * size // max(best, 1), size)
        while True:
            places, keys = self._proposed(kept, query, n)
            if open_to is None:
                break
            keys.masked_fill_(~open_to[places], torch.inf)
            if n == size or ((keys < torch.inf).sum(1) >= best).all():
                break
            n = min(4 * n, size)  # most of what is proposed to some query must not answer it
        chosen = keys.topk(min(max(best, k), keys.shape[1]), largest=False)
        places, order = places.gather(1, chosen.indices).sort(dim=1)
        closed = chosen.values.gather(1, order) == torch.inf
        return self._nearest_of(kept, query, k, places, closed)

    def _proposed(self, kept: Kept, query: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Up to n points of each ring for each query, and about what their keys are, (q, ...) each."""
        x, parts = self._flat(query), []
        for ring in kept.structure:
            if len(ring.rows):
                squared, at = (torch.from_numpy(found) for found in ring.index.search(x, min(n, len(ring.rows))))
                there = at.clamp_min(0)
                parts.append((ring.rows[there], (squared * ring.factors[there]).masked_fill(at < 0, torch.inf)))
        places, keys = (torch.cat(some, dim=1) for some in zip(*parts, strict=True))
        return places, keys

    def _flat(self, points: Tensor) -> np.ndarray:
        return self.form.flat(points).float().numpy()

    def _tensors(self, kept: Kept) -> dict[str, Tensor]:
        tensors = {"rings": torch.tensor([ring.number for ring in kept.structure])}
        for ring in kept.structure:
            codes = torch.from_numpy(library("faiss").serialize_index(ring.index))
            tensors |= {
                f"{name} {ring.number}": part
                for name, part in zip(PARTS, (ring.rows, ring.factors, codes), strict=True)
            }
        return tensors | {"candidates": torch.tensor(self.candidates)}

    def _structure(self, tensors: dict[str, Tensor]) -> tuple[Ring, ...]:
        self.candidates, rings = int(tensors["candidates"]), []
        for number in tensors["rings"].tolist():
            rows, factors, codes = (tensors[f"{name} {number}"] for name in PARTS)
            rings.append(Ring(number, rows, factors, library("faiss").deserialize_index(codes.numpy())))
        return tuple(rings)


def _numbers(factors: Tensor) -> Tensor:
    """The rings that points with these factors g belong to, (m,)."""
    return factors.log2().floor().long()


def _copy(index: Any) -> Any:
    """A copy of FAISS's index that may change: somebody may be searching the old one."""
    return library("faiss").clone_index(index)


def _put(index: Any, points: np.ndarray) -> None:
    if len(points):  # of none FAISS's fast scan dies
        index.add(points)
