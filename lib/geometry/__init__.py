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
equal points, at the origin, at the rim, beyond it, and in c at c = 0.

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
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import numerics

RIM_MARGIN = {torch.float32: 1e-3, torch.float64: 1e-5}
"""``PoincareBall.project`` keeps √c‖x‖ ≤ 1 − margin. Up to there rounding of 1 − c‖x‖² costs a distance at most
about 1e-4 of its value in float32, and 1e-11 in float64; closer to the rim it soon costs everything."""


class Geometry(Protocol):
    """A space: what losses, heads, metrics and search need to know of it."""

    name: ClassVar[str]

    def pairwise(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances of all pairs; ``x: (..., n, d)``, ``y: (..., m, d)`` points, returns ``(..., n, m)``."""

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        """Distances row by row; ``x, y: (..., d)`` points, returns ``(...)``."""

    def exp0(self, v: Tensor, /) -> Tensor:
        """Points ``(..., d)`` from tangent vectors ``v: (..., d)`` at the origin."""

    def log0(self, x: Tensor, /) -> Tensor:
        """Tangent vectors ``(..., d)`` at the origin from points ``x: (..., d)``."""

    def project(self, x: Tensor) -> Tensor:
        """``x: (..., d)`` brought back into the space."""

    def mean(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """Closed-form mean of points ``x: (..., n, d)`` with ``weights: (..., n)`` ≥ 0, returns ``(..., d)``.

        Without weights all points count alike.
        Raises InputError for a negative weight, or where the weights of a mean add up to 0.
        """

    def rank_key(self, query: Tensor, gallery: Tensor) -> Tensor:
        """A number that grows with the distance within each row, without transcendental functions.

        ``query: (..., q, d)``, ``gallery: (..., m, d)`` points, returns ``(..., q, m)``. Keys of different rows
        cannot be compared.
        """

    def order_by_distance(self, query: Tensor, gallery: Tensor, k: int | None = None) -> Tensor:
        """Gallery indices, nearest first, equal distances by index.

        ``query: (..., q, d)``, ``gallery: (..., m, d)`` points, 1 ≤ k ≤ m (all m if None), returns ``(..., q, k)``.
        Raises InputError if the gallery has fewer than k points.
        """
        size = gallery.shape[-2]
        if k is not None and k not in range(1, size + 1):
            raise InputError(f"k = {k} does not fit a gallery of {size} points: choose 1 <= k <= {size}")
        return self.rank_key(query, gallery).sort(dim=-1, stable=True).indices[..., :k]


@dataclass(frozen=True)
class Euclidean(Geometry):
    """Flat space: d(x, y) = ‖x − y‖; ``exp0``, ``log0`` and ``project`` change nothing."""

    name: ClassVar[str] = "euclidean"

    def pairwise(self, x: Tensor, y: Tensor) -> Tensor:
        return numerics.chords(*_floating(x, y))

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        return numerics.chord_of_rows(*_floating(x, y))

    def project(self, x: Tensor) -> Tensor:
        return _floating(x)[0]

    exp0 = log0 = project

    def mean(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """The weighted average, which is the Fréchet mean of flat space."""
        x, weights = _weighted(x, weights)
        return (weights * x).sum(-2) / weights.sum(-2)

    def rank_key(self, query: Tensor, gallery: Tensor) -> Tensor:
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

    def pairwise(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * torch.atan2(*self._half_angles(numerics.chords, x, y))

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * torch.atan2(*self._half_angles(numerics.chord_of_rows, x, y))

    def project(self, x: Tensor) -> Tensor:
        """``x: (..., d)`` scaled to unit length; zero stays zero."""
        (x,) = _floating(x)
        norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return x / norm.masked_fill(norm == 0, 1.0)

    exp0 = log0 = project

    def mean(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """The weighted sum of the unit vectors, scaled to unit length (zero if they cancel).

        Of two equally weighted points it is the midpoint; in general it is not the Fréchet mean, which minimises
        the sum of squared angles and has no closed form.
        """
        x, weights = _weighted(x, weights)
        return self.project((weights * self.project(x)).sum(-2))

    def rank_key(self, query: Tensor, gallery: Tensor) -> Tensor:
        sine, cosine = self._half_angles(numerics.chords, query, gallery)
        return sine / (sine + cosine)

    def _half_angles(self, chord: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Twice the sine and the cosine of half the angle."""
        x, y = (self.project(points) for points in _floating(x, y))
        # The floor is for two zero vectors, as atan2(0, 0) has no gradient; it moves an angle of π by eps.
        return chord(x, y), chord(x, -y).clamp_min(torch.finfo(x.dtype).eps)


@dataclass(frozen=True)
class PoincareBall(Geometry):
    """Hyperbolic space of curvature −c as the ball of radius 1/√c.

    ``c`` ≥ 0 is a number or a 0-dimensional tensor, which may require a gradient. Raises InputError if ``c`` is
    negative, not finite, or a tensor with dimensions.

    d(x, y) = (2/√c)·asinh(√c·‖x − y‖ / √((1 − c‖x‖²)(1 − c‖y‖²))). This equals (2/√c)·artanh(√c‖(−x) ⊕ y‖) of
    Hyper-DINO (Section 2.3) and Hyp-ViT (Equation 2, where the minus sign is missing), but costs n×m numbers
    instead of the n×m×d of a broadcast Möbius sum, and unlike acosh(1 + …) it has a gradient at x = y.

    The relative error of a float32 distance is at most 1e-6 + (e(x) + e(y))/2 with what rounding costs the conformal
    factor, e(x) = (d + 2)·2⁻²⁴·c‖x‖²/(1 − c‖x‖²): the chord decides near the centre, the rim near the rim.

    Points are expected inside the ball: ``project`` what ``exp0`` returns, which rounding can put onto the rim.
    """

    c: float | Tensor = 1.0
    name: ClassVar[str] = "poincare"

    def __post_init__(self) -> None:
        if not isinstance(self.c, Tensor):
            checks.number("c", self.c)
        c = torch.as_tensor(self.c).detach()
        if c.ndim:
            raise InputError(f"c must be one number, but it has the shape {tuple(c.shape)}")
        if not 0 <= c < math.inf:
            raise InputError(
                f"c = {float(c):g} cannot be used: the curvature is -c, so hand in a finite c >= 0 "
                "(1 for the unit ball, 0 for the flat limit)"
            )

    def pairwise(self, x: Tensor, y: Tensor) -> Tensor:
        x, y = _floating(x, y)
        return self._distance(numerics.chords(x, y), self._gap(x).unsqueeze(-1), self._gap(y).unsqueeze(-2))

    def between(self, x: Tensor, y: Tensor) -> Tensor:
        x, y = _floating(x, y)
        return self._distance(numerics.chord_of_rows(x, y), self._gap(x), self._gap(y))

    def exp0(self, v: Tensor) -> Tensor:
        """tanh(√c‖v‖)·v/(√c‖v‖) for tangent vectors ``v: (..., d)``, at distance 2‖v‖ from the origin.

        Hyper-DINO, Section 2.2, with c = 1; Hyp-ViT, Equation 3, at the origin.
        """
        (v,) = _floating(v)
        return v * numerics.over_root(torch.tanh, numerics.TANH, self._squared(v).unsqueeze(-1))

    def log0(self, x: Tensor) -> Tensor:
        """artanh(√c‖x‖)·x/(√c‖x‖) for points ``x: (..., d)``, the inverse of ``exp0``.

        c‖x‖² is kept ≤ 1 − eps, as artanh is infinite on the rim; the factor x still passes a gradient there.
        """
        (x,) = _floating(x)
        inside = self._squared(x).clamp_max(1 - torch.finfo(x.dtype).eps)
        return x * numerics.over_root(torch.atanh, numerics.ARTANH, inside.unsqueeze(-1))

    def project(self, x: Tensor, margin: float | None = None) -> Tensor:
        """``x: (..., d)`` scaled back to √c‖x‖ = 1 − ``margin`` where it is longer, else unchanged to the bit.

        ``margin`` defaults to ``RIM_MARGIN`` of the dtype. Hyper-DINO, Section 2.2 (r = 1 − δ).
        """
        (x,) = _floating(x)
        limit = (1 - (RIM_MARGIN[x.dtype] if margin is None else margin)) ** 2
        squared = self._squared(x).unsqueeze(-1)
        return torch.where(squared > limit, x * (limit / squared.clamp_min(limit)).sqrt(), x)

    def mean(self, x: Tensor, weights: Tensor | None = None) -> Tensor:
        """The gyromidpoint ½ ⊗ (Σ wλx / Σ w(λ − 1)), with λ the conformal factor.

        Of two equally weighted points it is the midpoint; in general it is not the Fréchet mean, which minimises
        the sum of squared distances and has no closed form.

        With p = w/(1 − c‖x‖²), P = Σp, W = Σw, x̄ = Σpx/P and V = Σp‖x − x̄‖² it is written as
        2P·x̄ / (2P − W + √(W² + 4cPV)): a sum of positive terms only, so nothing cancels near the rim.
        """
        x, weights = _weighted(x, weights)
        p = weights / self._gap(x).unsqueeze(-1)
        total, total_p = weights.sum(-2), p.sum(-2)
        centre = (p * x).sum(-2) / total_p
        spread = (p * (x - centre.unsqueeze(-2)).square()).sum((-2, -1)).unsqueeze(-1)
        return 2 * total_p * centre / (2 * total_p - total + (total**2 + 4 * self.c * total_p * spread).sqrt())

    def rank_key(self, query: Tensor, gallery: Tensor) -> Tensor:
        """‖x − y‖²/(1 − c‖y‖²): the distance grows with it, the factor of the query is the same in a row."""
        query, gallery = _floating(query, gallery)
        return numerics.chords(query, gallery).square() / self._gap(gallery).unsqueeze(-2)

    def conformal_factor(self, x: Tensor) -> Tensor:
        """λ(x) = 2/(1 − c‖x‖²) of points ``x: (..., d)``, returns ``(...)``: how much longer steps are at x."""
        return 2 / self._gap(*_floating(x))

    def _squared(self, x: Tensor) -> Tensor:
        return self.c * x.square().sum(-1)

    def _gap(self, x: Tensor) -> Tensor:
        """1 − c‖x‖², at least eps: on the rim it is 0 and beyond it negative, which would give inf and NaN.

        Below eps it would be rounding noise, so the floor moves no point that can be told from the rim. Where it
        holds, a distance still has the gradient of ‖x − y‖, so that a point beyond the rim can come back.
        """
        return (1 - self._squared(x)).clamp_min(torch.finfo(x.dtype).eps)

    def _distance(self, chord: Tensor, gap_x: Tensor, gap_y: Tensor) -> Tensor:
        if isinstance(self.c, Tensor) or self.c < 0.01:  # smooth in c, through c = 0
            stretched = chord * (gap_x.rsqrt() * gap_y.rsqrt())
            return 2 * stretched * numerics.over_root(torch.asinh, numerics.ASINH, self.c * stretched.square())
        root = math.sqrt(self.c)
        return numerics.Asinh.apply(chord * (root * gap_x.rsqrt() * gap_y.rsqrt())).mul_(2 / root)


def by_name(name: str, c: float = 1.0) -> Geometry:
    """The geometry called "euclidean", "sphere" or "poincare" (with ``c``); InputError for any other name."""
    makers = {"euclidean": Euclidean, "sphere": Sphere, "poincare": functools.partial(PoincareBall, c)}
    if name not in makers:
        raise InputError(f'unknown geometry "{name}": choose one of {", ".join(makers)}')
    return makers[name]()


def clip(v: Tensor, radius: float) -> Tensor:
    """``v: (..., d)`` shortened to norm ``radius`` > 0 where it is longer, else unchanged to the bit.

    A feature that is clipped before ``exp0`` stays off the rim, where gradients vanish (Hyp-ViT, Section 2.4).
    Raises InputError for a radius that is not positive.
    """
    if not radius > 0:
        raise InputError(f"a clip radius of {radius:g} would leave no feature; choose a radius > 0 (Hyp-ViT: 2.3)")
    return v * (radius / torch.linalg.vector_norm(v, dim=-1, keepdim=True).clamp_min(radius))


def _floating(*tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors in their common dtype, but at least float32, and contiguous.

    The memory layout decides the order of summation, and equal points need norms that are equal to the last bit.
    """
    dtype = functools.reduce(torch.promote_types, (tensor.dtype for tensor in tensors), torch.float32)
    return tuple(tensor.to(dtype).contiguous() for tensor in tensors)


def _weighted(x: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Points ``(..., n, d)`` and their weights as ``(..., n, 1)``."""
    x, weights = _floating(x, x.new_ones(x.shape[:-1]) if weights is None else weights)
    if (weights < 0).any() or (weights.sum(-1) == 0).any():
        raise InputError("a mean needs weights >= 0 that do not all vanish; leave out groups without any point")
    return x, weights.unsqueeze(-1)
