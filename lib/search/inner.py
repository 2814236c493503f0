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
    """How points of ``geometry`` become vectors whose inner product is −key, about the centre ``centre: (d,)``."""

    geometry: Geometry
    centre: Tensor

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
        away = _flat(self.geometry, y) - self.centre
        return _narrow(factor * torch.cat([torch.ones_like(factor), away, _squared(away)], dim=1))

    def query(self, x: Points) -> Tensor:
        """``x: (q, d)`` points as (q, d + 2) float32 vectors; raises InputError as :meth:`gallery`."""
        x = as_tensor(x)
        _factor(self.geometry, x)
        away = _flat(self.geometry, x) - self.centre
        return _narrow(torch.cat([-_squared(away), 2 * away, -torch.ones_like(away[:, :1])], dim=1))

    def keys(self, x: Points, y: Points) -> Tensor:
        """The exact keys of ``x: (q, d)`` and each row's own ``y: (q, n, d)``, by differences in float64: (q, n)."""
        x, y = as_tensor(x), as_tensor(y)
        flat_y = _flat(self.geometry, y)
        return _squared(_flat(self.geometry, x).unsqueeze(1) - flat_y).squeeze(-1) * _gap(self.geometry, y).reciprocal()


def optimistic(query: Tensor, gallery: Tensor) -> tuple[Tensor, Tensor]:
    """The vectors with one number more, so that their product in float32 is never below the exact −key.

    Rounding q and a to float32 costs at most 2·2⁻²⁴ of ‖q‖‖a‖, adding up d + 3 products at most (d + 3)·2⁻²⁴ of it. The
    added number is twice that bound, which leaves room for its own rounding.
    """
    unit = 2 * (query.shape[1] + 3) * 2.0**-24
    norm_q, norm_a = (vectors.norm(dim=1, keepdim=True) for vectors in (query, gallery))
    return torch.cat([query, unit * norm_q], dim=1), torch.cat([gallery, norm_a], dim=1)


def on_sphere(vectors: Tensor) -> Tensor:
    """Gallery vectors (m, d + 2) as unit vectors (m, d + 3): [a, √(M² − ‖a‖²)]/M with M the largest ‖a‖.

    A query gets a 0 in the new place (:func:`beside_sphere`), so no order changes. But a *graph* of neighbours is built
    among the gallery vectors themselves, and the inner product of two of them says nothing about their distance: on
    the raw vectors HNSW finds hardly any of the nearest, on these most (Bachrach et al., 2014, reduce inner products
    so) where the norms are alike. Where they spread, the short vectors all lie near the pole and the graph loses them
    (``reports/bench/recall.md``): :class:`lib.search.index.FaissHnsw` therefore builds its graph among other vectors.
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
