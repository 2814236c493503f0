"""The Poincaré ball; :mod:`lib.geometry` says what holds for it and the other spaces."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry.interface import Geometry
from lib.geometry.numerics import ARTANH, ASINH, TANH, Asinh, chord_of_rows, chords, over_root, root, shortened
from lib.geometry.points import Points, floating, rows, sets, weighted

RIM_MARGIN = {torch.float32: 1e-3, torch.float64: 1e-5}
"""``PoincareBall.project`` keeps √c‖x‖ ≤ 1 − margin. Up to there rounding of 1 − c‖x‖² costs a distance at most
about 1e-4 of its value in float32, and 1e-11 in float64; closer to the rim it soon costs everything."""


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

    def pairwise(self, x: Points, y: Points) -> Tensor:
        x, y = sets(x, y)
        if isinstance(self.c, Tensor):
            return self._distance(chords(x, y), self._gap(x).unsqueeze(-1), self._gap(y).unsqueeze(-2))
        return chords(x, y, self.c)

    def between(self, x: Points, y: Points) -> Tensor:
        x, y = rows(x, y)
        return self._distance(chord_of_rows(x, y), self._gap(x), self._gap(y))

    def exp0(self, v: Points) -> Tensor:
        """tanh(√c‖v‖)·v/(√c‖v‖) for tangent vectors ``v: (..., d)``, at distance 2‖v‖ from the origin.

        Hyper-DINO, Section 2.2, with c = 1; Hyp-ViT, Equation 3, at the origin.
        """
        v = shortened(*floating(v), self.c)
        return v * over_root(torch.tanh, TANH, self._squared(v).unsqueeze(-1))

    def log0(self, x: Points) -> Tensor:
        """artanh(√c‖x‖)·x/(√c‖x‖) for points ``x: (..., d)``, the inverse of ``exp0``.

        c‖x‖² is kept ≤ 1 − eps, as artanh is infinite on the rim; the factor x still passes a gradient there.
        """
        x = self._returned(*floating(x))
        inside = self._squared(x).clamp_max(1 - torch.finfo(x.dtype).eps)
        return x * over_root(torch.atanh, ARTANH, inside.unsqueeze(-1))

    def project(self, x: Points, margin: float | None = None) -> Tensor:
        """``x: (..., d)`` scaled back to √c‖x‖ = 1 − ``margin`` where it is longer, else unchanged to the bit.

        ``margin`` defaults to ``RIM_MARGIN`` of the dtype. Hyper-DINO, Section 2.2 (r = 1 − δ).
        """
        x = shortened(*floating(x), self.c)
        limit = (1 - (RIM_MARGIN[x.dtype] if margin is None else margin)) ** 2
        squared = self._squared(x).unsqueeze(-1)
        return torch.where(squared > limit, x * (squared.clamp_min(limit) / limit).rsqrt(), x)

    def mean(self, x: Points, weights: Points | None = None) -> Tensor:
        """The gyromidpoint ½ ⊗ (Σ wλx / Σ w(λ − 1)), with λ the conformal factor.

        Of two equally weighted points it is the midpoint; in general it is not the Fréchet mean, which minimises
        the sum of squared distances and has no closed form.

        With p = (w/Σw)/(1 − c‖x‖²), P = Σp, x̄ = Σpx/P and V = Σp‖x − x̄‖² it is written as
        2P·x̄ / (2P − 1 + √(1 + 4cPV)): a sum of positive terms only, so nothing cancels near the rim.
        """
        x, weights = weighted(x, weights)
        x = self._returned(x)
        p = weights / weights.sum(-2, keepdim=True) / self._gap(x).unsqueeze(-1)
        total_p = p.sum(-2)
        centre = (p * x).sum(-2) / total_p
        spread = (p * (x - centre.unsqueeze(-2)).square()).sum((-2, -1)).unsqueeze(-1)
        return 2 * total_p * centre / (2 * total_p - 1 + root(1 + 4 * self.c * total_p * spread))

    def rank_key(self, query: Points, gallery: Points) -> Tensor:
        """‖x − y‖²/(1 − c‖y‖²): the distance grows with it, the factor of the query is the same in a row."""
        query, gallery = sets(query, gallery)
        return chords(query, gallery).square() / self._gap(gallery).unsqueeze(-2)

    def conformal_factor(self, x: Points) -> Tensor:
        """λ(x) = 2/(1 − c‖x‖²) of points ``x: (..., d)``, returns ``(...)``: how much longer steps are at x."""
        return 2 / self._gap(*floating(x))

    def check_inside(self, x: Points, what: str = "row") -> None:
        """Raise InputError for the first of the points ``x: (..., d)`` that no distance can be told of.

        It lies on the rim as far as its dtype can tell, beyond it, or holds NaN. What ``exp0`` sends to the rim lands
        within 3 eps of it, on either side. ``what`` names a row in the message.
        """
        (x,) = floating(x)
        # A float32 sum of squares is less exact than the points are, a float64 copy of them would fill the memory.
        gap = 1 - float(self.c) * torch.linalg.vector_norm(x.detach(), dim=-1, dtype=torch.float64).square()
        if (bad := ~(gap >= 3 * torch.finfo(x.dtype).eps)).any():
            row = ", ".join(map(str, bad.nonzero()[0].tolist()))
            raise InputError(f"{what} {row} lies on the rim of the ball or beyond it (or is NaN): project first")

    def _returned(self, x: Tensor) -> Tensor:
        """``x`` with what is far beyond the rim brought back by ``project``, else equal to the bit.

        From c‖x‖² = 1/eps on, nothing is left of the 1 in 1 − c‖x‖², and soon the squares overflow.
        """
        x = shortened(x, self.c)
        beyond = self._squared(x).unsqueeze(-1) * torch.finfo(x.dtype).eps > 1
        return torch.where(beyond, self.project(x), x)

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
            return 2 * stretched * over_root(torch.asinh, ASINH, self.c * stretched.square())
        scale = math.sqrt(self.c)
        return Asinh.apply(chord * (scale * gap_x.rsqrt() * gap_y.rsqrt())).mul_(2 / scale)
