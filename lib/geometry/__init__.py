"""Points and distances in three spaces behind one interface: flat space, the sphere, the Poincaré ball.

**Curvature, here and everywhere in this project.** The ball has curvature −c with c ≥ 0, radius 1/√c and the
conformal factor λ(x) = 2/(1 − c‖x‖²), which is 2 at the origin. So

* d(0, x) = (2/√c)·artanh(√c‖x‖), and d(0, exp0(v)) = 2‖v‖ whatever c is: a tangent vector of norm r goes to a
  point at distance 2r, and a feature clipped to norm r before ``exp0`` stays within 2r of the origin;
* c → 0 is smooth and gives 2‖x − y‖, twice the :class:`Euclidean` distance; c = 0 itself is allowed. (The
  authors' code of Hyp-ViT reads c = 0 as a switch to the sphere; here it is the flat limit.)

Hyper-DINO (Section 2) has c = 1. Hyp-ViT (Section 2.1) prints −c² for the curvature; its formulas and code mean
−c, as here.

**Numerics.** Integers, float16 and bfloat16 are computed and returned in float32; float32 and float64 stay what
they are. d(x, x) is exactly 0, near-duplicates keep the accuracy of their dtype, and gradients are finite at
equal points, at the origin, at the rim, beyond it, and in c at c = 0. What is too long to be squared (2e19 in
float32) is brought to the rim in its own direction by the maps and the means; its distances are not finite.

NumPy arrays and lists are taken where tensors are.

Sources: Ungar, *A Gyrovector Space Approach to Hyperbolic Geometry* (2008), for the gyromidpoint; Ratcliffe,
*Foundations of Hyperbolic Manifolds* (Section 4.5), for the distance; Ganea et al., *Hyperbolic Neural Networks*
(2018), for the maps at the origin; Hyper-DINO, Sections 2.2 and 2.3; Hyp-ViT, Equations 1 to 4.

>>> origin, point = torch.zeros(2), torch.tensor([0.5, 0.0])
>>> round(float(PoincareBall(c=1.0).between(origin, point)), 4)  # 2 artanh(1/2) = ln 3
1.0986
>>> round(float(PoincareBall(c=0.0).between(origin, point)), 4)
1.0
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry.interface import Geometry
from lib.geometry.numerics import chord_of_rows, chords, shortened, shortening
from lib.geometry.poincare import RIM_MARGIN, PoincareBall
from lib.geometry.points import Points, floating, rows, sets, weighted

__all__ = ["RIM_MARGIN", "Euclidean", "Geometry", "PoincareBall", "Sphere", "by_name", "clip"]


@dataclass(frozen=True)
class Euclidean(Geometry):
    """Flat space: d(x, y) = ‖x − y‖; ``exp0``, ``log0`` and ``project`` change nothing."""

    name: ClassVar[str] = "euclidean"

    def pairwise(self, x: Points, y: Points) -> Tensor:
        return chords(*sets(x, y))

    def between(self, x: Points, y: Points) -> Tensor:
        return chord_of_rows(*rows(x, y))

    def project(self, x: Points) -> Tensor:
        return floating(x)[0]

    exp0 = log0 = project

    def mean(self, x: Points, weights: Points | None = None) -> Tensor:
        """The weighted average, which is the Fréchet mean of flat space."""
        x, weights = weighted(x, weights)
        return (weights * x).sum(-2) / weights.sum(-2)

    def rank_key(self, query: Points, gallery: Points) -> Tensor:
        return self.pairwise(query, gallery)


@dataclass(frozen=True)
class Sphere(Geometry):
    """Directions: d(x, y) is the angle between x and y in radians, whatever their lengths.

    By 2·atan2(‖x̂ − ŷ‖, ‖x̂ + ŷ‖), accurate near 0 and near π, where arccos loses half the digits and its gradient
    is infinite. The spherical dissimilarity of Hyp-ViT (Equation 4), 2 − 2cos = ‖x̂ − ŷ‖², is *not* this distance:
    it orders alike, but is its square near 0. A zero vector has no direction; it is π/2 away from every direction
    and 0 from another zero vector. There is no origin: ``exp0``, ``log0`` and ``project`` all scale to unit length.
    """

    name: ClassVar[str] = "sphere"

    def pairwise(self, x: Points, y: Points) -> Tensor:
        return 2 * torch.atan2(*self._half_angles(chords, *sets(x, y)))

    def between(self, x: Points, y: Points) -> Tensor:
        return 2 * torch.atan2(*self._half_angles(chord_of_rows, *rows(x, y)))

    def project(self, x: Points) -> Tensor:
        """``x: (..., d)`` scaled to unit length; zero stays zero."""
        (x,) = floating(x)
        factor = shortening(x)
        norm = torch.linalg.vector_norm(x * factor, dim=-1, keepdim=True)
        # The product once more, not kept: the gradients of x then add up in the order of the plain x/‖x‖, to the bit.
        return x * factor / norm.masked_fill(norm == 0, 1.0)

    exp0 = log0 = project

    def mean(self, x: Points, weights: Points | None = None) -> Tensor:
        """The weighted sum of the unit vectors, scaled to unit length (zero if they cancel).

        Of two equally weighted points it is the midpoint; in general it is not the Fréchet mean, which minimises
        the sum of squared angles and has no closed form.
        """
        x, weights = weighted(x, weights)
        return self.project((weights * self.project(x)).sum(-2))

    def rank_key(self, query: Points, gallery: Points) -> Tensor:
        sine, cosine = self._half_angles(chords, *sets(query, gallery))
        return sine / (sine + cosine)

    def _half_angles(self, chord: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Twice the sine and the cosine of half the angle."""
        x, y = self.project(x), self.project(y)
        # The floor is for two zero vectors, as atan2(0, 0) has no gradient; it moves an angle of π by eps.
        return chord(x, y), chord(x, -y).clamp_min(torch.finfo(x.dtype).eps)


def by_name(name: str | Geometry, c: float = 1.0) -> Geometry:
    """The geometry called "euclidean", "sphere" or "poincare" (with ``c``); a geometry stays what it is.

    Raises InputError for any other name, and for what is no geometry.

    >>> by_name("poincare"), by_name(Sphere())
    (PoincareBall(c=1.0), Sphere())
    """
    makers = {"euclidean": Euclidean, "sphere": Sphere, "poincare": functools.partial(PoincareBall, c)}
    if isinstance(name, str):
        if name not in makers:
            raise InputError(f'unknown geometry "{name}": choose one of {", ".join(makers)}')
        return makers[name]()
    if isinstance(name, type) or not hasattr(name, "rank_key"):
        raise InputError(f"{name!r} is no geometry: hand in Euclidean(), Sphere() or PoincareBall(c), or one's name")
    return name


def clip(v: Points, radius: float) -> Tensor:
    """``v: (..., d)`` shortened to norm ``radius`` > 0 where it is longer, else unchanged to the bit.

    A feature that is clipped before ``exp0`` stays off the rim (Hyp-ViT, Section 2.4).
    Raises InputError for a radius that is not positive.
    """
    checks.positive("clip radius", radius)
    v = shortened(*floating(v))
    return v * (radius / torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp_min(radius))
