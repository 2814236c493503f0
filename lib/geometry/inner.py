"""Distances of three geometries as inner products, so that whatever searches inner products searches them all.

For a fixed query x, d(x, y) grows with the key ‖x − y‖²·g(y), where g(y) = 1/(1 − c‖y‖²) in the ball and 1 elsewhere
(on the sphere x and y are scaled to length 1). With any centre m the key is −⟨q, a⟩ for the d + 2 numbers

    q = [−‖x − m‖², 2(x − m), −1],    a = g·[1, y − m, ‖y − m‖²].

The centre changes no key, but it keeps the three terms small that cancel in a near pair, and with them the rounding
error in float32, a few d·2⁻²⁴·‖q‖‖a‖ (:func:`optimistic`). An order by these products is therefore a *proposal*: take
some more candidates than asked for, and sort them by their distances.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall, Sphere, by_name
from lib.geometry.points import Points, as_tensor


@dataclass(frozen=True)
class InnerProduct:
    """How points of ``geometry`` become vectors whose inner product is −key, about the centre ``centre: (d,)``.

    With ``axes: (d, r)``, r orthonormal directions, only what lies along them is compared. The vectors then have r + 2
    numbers, and their inner product is −g‖x − y‖² of what lies along them, so never below −key.
    """

    geometry: Geometry
    centre: Tensor
    axes: Tensor | None = None

    @classmethod
    def about(cls, geometry: str | Geometry, gallery: Points) -> "InnerProduct":
        """With the mean of ``gallery: (m, d)`` as the centre; ``geometry`` or its name."""
        geometry = by_name(geometry)
        return cls(geometry, _flat(geometry, as_tensor(gallery)).mean(0))

    def gallery(self, y: Points) -> Tensor:
        """``y: (m, d)`` points as (m, d + 2) float32 vectors.

        Raises InputError where a point has no place: on the rim or beyond it, the zero vector on the sphere, and what
        is so far away that its square overflows.
        """
        y = as_tensor(y)
        factor = _factor(self.geometry, y)
        away = self.away(y)
        return _narrow(factor * torch.cat([torch.ones_like(factor), away, _squared(away)], dim=1))

    def query(self, x: Points) -> Tensor:
        """``x: (q, d)`` points as (q, d + 2) float32 vectors; raises InputError as :meth:`gallery`."""
        x = as_tensor(x)
        _factor(self.geometry, x)
        away = self.away(x)
        return _narrow(torch.cat([-_squared(away), 2 * away, -torch.ones_like(away[:, :1])], dim=1))

    def keys(self, x: Points, y: Points) -> Tensor:
        """The exact keys of ``x: (q, d)`` and each row's own ``y: (q, n, d)``, by differences in float64: (q, n)."""
        x, y = as_tensor(x), as_tensor(y)
        flat_y = _flat(self.geometry, y)
        return _squared(_flat(self.geometry, x).unsqueeze(1) - flat_y).squeeze(-1) * _gap(self.geometry, y).reciprocal()

    def flat(self, points: Tensor) -> Tensor:
        """``points: (..., d)`` as the key sees them, in float64: of length 1 on the sphere, else as they are."""
        return _flat(self.geometry, points)

    def away(self, points: Tensor) -> Tensor:
        """How far ``points: (n, d)`` are from the centre, along the axes if there are any, (n, d) or (n, r)."""
        away = self.flat(points) - self.centre
        return away if self.axes is None else away @ self.axes

    def factor(self, y: Tensor) -> Tensor:
        """g(y) of gallery points ``y: (..., d)``, (...)."""
        return _gap(self.geometry, y).reciprocal()


def optimistic(query: Tensor) -> Tensor:
    """Query vectors (q, d + 2) with one number more, (q, d + 3), for a gallery :func:`with_norms`.

    Their product in float32 is never below the exact −key. Rounding q and a to float32 costs at most 2·2⁻²⁴ of ‖q‖‖a‖,
    adding up d + 3 products at most (d + 3)·2⁻²⁴ of it. The added number is twice that bound, which leaves room for its
    own rounding.
    """
    return torch.cat([query, 2 * (query.shape[1] + 3) * 2.0**-24 * query.norm(dim=1, keepdim=True)], dim=1)


def with_norms(gallery: Tensor) -> Tensor:
    """Gallery vectors (m, d + 2) followed by their norms, (m, d + 3), for :func:`optimistic` queries."""
    return torch.cat([gallery, gallery.norm(dim=1, keepdim=True)], dim=1)


def groups_of(scores: Tensor, size: int = 64) -> tuple[Tensor, Tensor, Tensor]:
    """Scores (rows, width) as groups (rows, size, g), the largest of each, (rows, g), and what is left at the end.

    Looking for the maxima of groups is one quick pass, and few groups are looked at again. A size of 64
    suits a million scores, 16 suit 20,000.
    """
    whole = scores.shape[1] // size * size
    grouped = scores[:, :whole].unflatten(1, (size, whole // size))
    return grouped, grouped.amax(1), scores[:, whole:]


def largest(scores: Tensor, n: int, groups: tuple[Tensor, Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
    """The n largest of each row (all if there are fewer) and their columns, largest first.

    They lie in the n groups with the largest maxima; ``groups`` are those of the scores, if they are known.
    """
    rows, width = scores.shape
    grouped, maxima, rest = groups or groups_of(scores)
    size, count = grouped.shape[1:]
    if count <= n:
        return scores.topk(min(n, width), dim=1)
    chosen = maxima.topk(n, dim=1).indices
    members = grouped.gather(2, chosen[:, None].expand(-1, size, -1)).flatten(1)
    columns = (chosen[:, None] + torch.arange(size, device=scores.device)[:, None] * count).flatten(1)
    others = torch.arange(size * count, width, device=scores.device).expand(rows, -1)
    best, order = torch.cat([members, rest], dim=1).topk(n, dim=1)
    return best, torch.cat([columns, others], dim=1).gather(1, order)


def on_sphere(vectors: Tensor) -> Tensor:
    """Gallery vectors (m, d + 2) as unit vectors (m, d + 3): [a, √(M² − ‖a‖²)]/M with M the largest ‖a‖.

    A query gets a 0 in the new place (:func:`beside_sphere`), so no order changes. But a *graph* of neighbours is built
    among the gallery vectors themselves, and the inner product of two of them says nothing about their distance: on
    the raw vectors HNSW finds hardly any of the nearest, on these most (Bachrach et al., 2014, reduce inner products
    so) where the norms are alike. Where they spread, the short vectors all lie near the pole and the graph loses them
    (``reports/bench/recall.md``).
    """
    wide = vectors.double()
    squared = _squared(wide)
    largest = squared.max()
    return (torch.cat([wide, (largest - squared).clamp_min(0).sqrt()], dim=1) / largest.sqrt()).float()


def beside_sphere(vectors: Tensor) -> Tensor:
    """Query vectors (q, d + 2) as unit vectors (q, d + 3) for a gallery :func:`on_sphere`."""
    return torch.nn.functional.normalize(torch.nn.functional.pad(vectors, (0, 1)), dim=1)


def _flat(geometry: Geometry, points: Tensor) -> Tensor:
    return geometry.project(points.double()) if isinstance(geometry, Sphere) else points.double()


def _gap(geometry: Geometry, points: Tensor) -> Tensor:
    """1/g, (...)."""
    if isinstance(geometry, PoincareBall):
        return 1 - float(geometry.c) * points.double().square().sum(-1)
    return points.new_ones(points.shape[:-1], dtype=torch.float64)


def _factor(geometry: Geometry, points: Tensor) -> Tensor:
    """g, (m, 1)."""
    if isinstance(geometry, PoincareBall):
        geometry.check_inside(points)
    if isinstance(geometry, Sphere) and (zero := (points == 0).all(-1)).any():
        raise InputError(f"row {zero.nonzero()[0].item()} is zero and has no direction on the sphere; leave it out")
    return _gap(geometry, points).reciprocal().unsqueeze(1)


def _narrow(vectors: Tensor) -> Tensor:
    """As float32; raises InputError where that overflows, as inf − inf would order nothing."""
    narrow = vectors.float()
    if (beyond := ~narrow.isfinite().all(1)).any():
        row = beyond.nonzero()[0].item()
        raise InputError(f"row {row} is so far away that its square overflows float32 (or holds NaN); scale the points")
    return narrow


def _squared(x: Tensor) -> Tensor:
    return x.square().sum(-1, keepdim=True)
