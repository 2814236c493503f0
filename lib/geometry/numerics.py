"""What the distances are made of: chords of all pairs, and functions that are smooth where they look singular."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

# Taylor coefficients of f(√z)/√z.
ASINH = (1, -1 / 6, 3 / 40, -5 / 112, 35 / 1152, -63 / 2816, 231 / 13312, -143 / 10240)
TANH = (1, -1 / 3, 2 / 15, -17 / 315, 62 / 2835, -1382 / 155925, 21844 / 6081075, -929569 / 638512875)
ARTANH = tuple(1 / (2 * n + 1) for n in range(8))

LONG = {torch.float32: 2.0**50, torch.float64: 2.0**500}
"""A row of entries up to this can be squared and added up in any number of dimensions. tanh has long been 1 there."""


def shortening(x: Tensor, c: float | Tensor = 1.0) -> Tensor:
    """Factors (..., 1) that bring every row of ``x: (..., d)`` to entries of at most :data:`LONG`; mostly exactly 1.

    In float32 the square of 2e19 is infinite, and dividing by it would send the longest of all rows to the origin. In a
    ball of curvature −c with c > 1 it is c‖x‖² that must not overflow, so there the limit is LONG/√c, rounded down to a
    power of two, which float32 holds exactly. The factors take no gradient: what comes after depends on the direction
    of such a row alone.
    """
    curvature = float(c.detach() if isinstance(c, Tensor) else c)
    limit = LONG[x.dtype] / 2 ** math.ceil(math.log2(max(1.0, curvature)) / 2)
    return limit / x.detach().abs().amax(-1, keepdim=True).clamp_min(limit)


def shortened(x: Tensor, c: float | Tensor = 1.0) -> Tensor:
    """``x: (..., d)`` with rows that are too long made shorter (:func:`shortening`), others equal to the bit."""
    return x * shortening(x, c)


def root(x: Tensor) -> Tensor:
    """√x for x ≥ 0, with the same bits on every processor; the gradient at 0 is not defined.

    ``torch.sqrt`` is MKL's, whose last bit depends on the processor, however it is pinned (:mod:`lib.pins`);
    ``torch.rsqrt`` is torch's own.
    """
    return x.rsqrt().reciprocal()


def over_root(function: Callable[[Tensor], Tensor], series: tuple[float, ...], z: Tensor) -> Tensor:
    """``function(√z)/√z`` for z ≥ 0, by its Taylor series near 0, where it is 0/0 and its derivative cancels.

    As a function of z = c‖·‖² it is smooth at 0, so no square root of c or of a squared norm needs a guard.
    Eight terms below z = 0.01 are exact to float64 in value and to 1e-13 in slope.
    """
    small = z < 0.01
    length = root(z.masked_fill(small, 1.0))
    near = z.masked_fill(~small, 0.0)
    taylor = functools.reduce(lambda value, coefficient: value * near + coefficient, reversed(series))
    return torch.where(small, taylor, function(length) / length)


def chords(x: Tensor, y: Tensor) -> Tensor:
    """‖x − y‖ of all pairs, accurate for near-duplicates too."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])  # torch's imports sympy, half a second
    # Not by address: ``x.detach()`` shares it, but takes no gradient.
    return _Chords.apply(x.expand(*batch, -1, -1), y.expand(*batch, -1, -1), x is y)


class _Chords(torch.autograd.Function):
    """‖x − y‖ of all pairs, with a gradient by matrix products: Σⱼ gᵢⱼ (xᵢ − yⱼ)/‖xᵢ − yⱼ‖ = xᵢ Σⱼ cᵢⱼ − Σⱼ cᵢⱼ yⱼ.

    Autograd through ``cdist`` takes several times longer and no second derivative is needed here. The products are
    taken in float64, as the difference of two long sums would drown the gradient of near-duplicates in rounding.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, one_set: bool) -> Tensor:
        ctx.one_set = one_set
        many = x.dtype == torch.float32 and x.shape[-1] > 64
        chord = _by_products(x, y, one_set) if many else _by_differences(x, y)
        ctx.save_for_backward(x, y, chord)
        return chord

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None]:
        x, y, chord = ctx.saved_tensors
        # Equal points have no direction: 0, as cdist has it. This is gradient / chord without a slow comparison.
        share = gradient * chord / (chord.square() + torch.finfo(chord.dtype).tiny)
        if ctx.one_set:
            return _pull(share + share.mT, x, x), None, None
        return _pull(share, x, y), _pull(share.mT, y, x), None


class Asinh(torch.autograd.Function):
    """asinh(u) for u ≥ 0 as log1p(u + u²/(1 + √(1 + u²))): as exact, and ten times faster than ``torch.asinh``."""

    @staticmethod
    def forward(ctx: Any, u: Tensor) -> Tensor:
        squared = u.square()
        hypotenuse = root(1 + squared)
        ctx.save_for_backward(hypotenuse)
        larger = hypotenuse + 1 if ctx.needs_input_grad[0] else hypotenuse.add_(1)
        return squared.div_(larger).add_(u).log1p_()

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return gradient / ctx.saved_tensors[0]


def _pull(share: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """Σⱼ cᵢⱼ (xᵢ − yⱼ), in float64 and returned as ``x``."""
    share, wide_x, wide_y = share.double(), x.double(), y.double()
    return (wide_x * share.sum(-1).unsqueeze(-1) - share @ wide_y).to(x.dtype)


def _by_differences(x: Tensor, y: Tensor) -> Tensor:
    """By matrix product in their own precision, near-duplicates would be rounding noise."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


_NEAR = 1e-7
"""Below this part of the squared norms, a squared distance is taken from differences."""


def _by_products(x: Tensor, y: Tensor, one_set: bool) -> Tensor:
    """√(‖x‖² + ‖y‖² − 2⟨x, y⟩) of float32 points in float64: faster than differences for many dimensions.

    Rounding costs ‖x − y‖² at most about d·2⁻⁵³(‖x‖² + ‖y‖²). Pairs nearer than 3e-4 of their norms are computed
    from differences, so up to d = 1,000 the relative error of a chord stays below 1e-6 (measured: 1e-7).
    """
    wide_x, wide_y = x.double(), y.double()
    norm_x, norm_y = (wide.square().sum(-1, keepdim=True) for wide in (wide_x, wide_y))
    squared = norm_x + norm_y.mT
    if squared.ndim == 2:  # one pass over the n×m numbers; a batch has no fast product of this kind
        squared.addmm_(wide_x, wide_y.mT, alpha=-2)
    else:
        squared.sub_((wide_x @ wide_y.mT).mul_(2))
    if one_set:
        squared.diagonal(dim1=-2, dim2=-1).copy_(2 * norm_x.squeeze(-1))  # not near: set to 0 below
    if squared.numel() and squared.amin() < _NEAR * (norm_x.amax() + norm_y.amax()):  # most sets hold no near pair
        near = (squared < _NEAR * norm_x + _NEAR * norm_y.mT).nonzero(as_tuple=True)
        if near[0].numel() * x.shape[-1] > squared.numel():  # collapsed points: their differences would fill memory
            return _by_differences(x, y)
        *batch, row, column = near
        squared[near] = (wide_x[*batch, row] - wide_y[*batch, column]).square().sum(-1)
    if one_set:
        squared.diagonal(dim1=-2, dim2=-1).zero_()
    return root(squared.to(x.dtype))


def chord_of_rows(x: Tensor, y: Tensor) -> Tensor:
    """‖x − y‖ row by row."""
    return torch.linalg.vector_norm(x - y, dim=-1)
