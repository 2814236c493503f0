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


FLAT = 2.0**-49
"""Of √c: curvatures below its square cannot be told from 0, and nothing is divided by 0."""


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
    return x.rsqrt().reciprocal() if x.device.type == "cpu" else x.sqrt()


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


def chords(x: Tensor, y: Tensor, c: float | None = None) -> Tensor:
    """‖x − y‖ of all pairs, accurate for near-duplicates too; with a number ``c`` ≥ 0 their distances in the ball."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])  # torch's imports sympy, half a second
    # Not by address: ``x.detach()`` shares it, but takes no gradient.
    return _Pairs.apply(x.expand(*batch, -1, -1), y.expand(*batch, -1, -1), x is y, c)


class _Pairs(torch.autograd.Function):
    """Chords s of all pairs, with a gradient by matrix products: Σⱼ gᵢⱼ (xᵢ − yⱼ)/sᵢⱼ = xᵢ Σⱼ cᵢⱼ − Σⱼ cᵢⱼ yⱼ.

    Or distances in the ball, in one step, as a GPU waits for every kernel. With hₓ = 1/(1 − c‖x‖²), a = hₓh_y·s² and
    z = √(a/(1 + ca)), which is tanh(√c·d/2)/√c, the distance is d = log(1 + 2c(a + z(1 + ca)/√c))/√c. No term is
    negative, so nothing cancels, for c → 0 neither. The slope of d in s is 2z/s, and its gradient in x has 2z·chₓ times
    x besides.

    Autograd through ``cdist`` takes several times longer, and no second derivative is needed here.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, one_set: bool, c: float | None) -> Tensor:
        ctx.one_set = one_set
        if c is None:
            chord = _by_differences(x, y) if _plainly(x) else root(_squared(x, y, one_set))
            ctx.save_for_backward(x, y, chord)
            return chord
        squared, eps = _squared(x, y, one_set), torch.finfo(x.dtype).eps  # see PoincareBall._gap
        norms = [points.square().sum(-1, keepdim=True) for points in ((x,) if one_set else (x, y))]
        h = [torch.rsub(norm, 1, alpha=c).clamp_min_(eps).reciprocal_() for norm in norms]
        a = (squared * h[0]).mul_(h[-1].mT)
        grown = torch.rsub(a, 1, alpha=-c)
        z = root(a / grown)
        if any(ctx.needs_input_grad):
            along = [2 * c * each * (each < 1 / eps) for each in h]
            ctx.save_for_backward(x, y, z, squared, along[0], along[-1])
        scale = max(math.sqrt(c), FLAT)
        return a.addcmul_(grown, z, value=1 / scale).mul_(2 * scale**2).log1p_().mul_(1 / scale)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, None, None]:
        x, y, z, *ball = ctx.saved_tensors
        share, tiny = gradient * z, torch.finfo(z.dtype).tiny
        if ctx.one_set:
            share = share + share.mT.contiguous()
        squared, along_x, along_y = ball or (z.square(), 0, 0)
        if ball:
            along_x = along_x * share.sum(-1, keepdim=True)
            along_y = None if ctx.one_set else along_y * share.sum(-2).unsqueeze(-1)
        # Equal points have no direction: 0, as cdist has it. This is gradient / chord without a slow comparison.
        share.div_(torch.rsub(squared, tiny, alpha=-0.5) if ball else squared + tiny)
        near = _taken_out(share, squared, x, y)
        # In float32 the difference of two long sums would drown the gradient of near-duplicates in rounding.
        dtype = x.dtype if near else torch.float64
        share, wide_x = share.to(dtype), x.to(dtype)
        wide_y = wide_x if ctx.one_set else y.to(dtype)
        slopes = [_pull(share, wide_x, wide_y, along_x).to(x.dtype)]
        if not ctx.one_set:
            slopes.append(_pull(share.mT, wide_y, wide_x, along_y).to(x.dtype))
        for slope, (places, pulls) in zip(slopes, near or (), strict=False):
            slope.index_put_(places, pulls, accumulate=True)
        return slopes[0], None if ctx.one_set else slopes[1], None, None


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


def _pull(share: Tensor, x: Tensor, y: Tensor, along: Tensor | int) -> Tensor:
    """Σⱼ cᵢⱼ (xᵢ − yⱼ) + alongᵢ·xᵢ."""
    return _less_products(x * (share.sum(-1, keepdim=True) + along), 1, share, y.mT)


def _taken_out(share: Tensor, squared: Tensor, x: Tensor, y: Tensor) -> list[tuple[Any, Tensor]] | None:
    """Rows and columns of pairs nearer than a tenth of their norms, with ±cᵢⱼ(xᵢ − yⱼ); ``share`` becomes 0 there.

    So the others can be added up in float32, three times faster on a CPU. None where near ones are too many, and on a
    GPU, where they could not be told without waiting, and float64 costs little.
    """
    if _plainly(x) or x.device.type != "cpu" or x.shape[-1] > y.shape[-2]:  # a set's pairs with themselves are too many
        return None
    norm_x, norm_y = (0.01 * points.square().sum(-1, keepdim=True) for points in (x, y))
    near = (squared < norm_x + norm_y.mT).nonzero(as_tuple=True)
    if near[0].numel() * x.shape[-1] > squared.numel():
        return None
    *batch, row, column = near
    pulls = share[near].unsqueeze(-1) * (x[*batch, row] - y[*batch, column])
    share[near] = 0
    return [((*batch, row), pulls), ((*batch, column), -pulls)]


def _plainly(x: Tensor) -> bool:
    """Whether chords are taken from differences: in float64, and of few dimensions on a CPU, where that is faster."""
    return x.dtype == torch.float64 or (x.device.type == "cpu" and x.shape[-1] <= 64)


def _squared(x: Tensor, y: Tensor, one_set: bool) -> Tensor:
    if _plainly(x):
        return _by_differences(x, y).square()
    return _by_products(x, y, one_set) if x.device.type == "cpu" else _by_parts(x, y, one_set)


def _by_differences(x: Tensor, y: Tensor) -> Tensor:
    """By matrix product in their own precision, near-duplicates would be rounding noise."""
    return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


_NEAR = 1e-7
"""Below this part of the squared norms, a squared distance is taken from differences."""
_CELLS = 2**19
"""Squared distances in float64 at a time: they stay in the processor's cache."""


def _by_products(x: Tensor, y: Tensor, one_set: bool) -> Tensor:
    """‖x‖² + ‖y‖² − 2⟨x, y⟩ of float32 points in float64: faster than differences for many dimensions.

    Rounding costs ‖x − y‖² at most about d·2⁻⁵³(‖x‖² + ‖y‖²). Pairs nearer than 3e-4 of their norms are computed
    from differences, so up to d = 1,000 the relative error of a chord stays below 1e-6 (measured: 1e-7).
    """
    wide_x, wide_y = x.double(), y.double()
    norm_x, norm_y = (wide.square().sum(-1, keepdim=True) for wide in (wide_x, wide_y))
    squared = x.new_empty(*x.shape[:-1], y.shape[-2])
    height = max(1, _CELLS // max(1, squared[..., :1, :].numel()))
    for rows in (slice(start, start + height) for start in range(0, x.shape[-2], height)):
        sums = norm_x[..., rows, :] + norm_y.mT
        squared[..., rows, :] = _less_products(sums, 2, wide_x[..., rows, :], wide_y)
    norm_x, norm_y = norm_x.to(x.dtype), norm_y.to(x.dtype)
    if one_set:
        squared.diagonal(dim1=-2, dim2=-1).copy_(norm_x.squeeze(-1))  # not near: set to 0 below
    if squared.numel() and squared.amin() < _NEAR * (norm_x.amax() + norm_y.amax()):  # most sets hold no near pair
        near = (squared < _NEAR * norm_x + _NEAR * norm_y.mT).nonzero(as_tuple=True)
        if near[0].numel() * x.shape[-1] > squared.numel():  # collapsed points: their differences would fill memory
            return _by_differences(x, y).square()
        *batch, row, column = near
        squared[near] = (wide_x[*batch, row] - wide_y[*batch, column]).square().sum(-1).to(x.dtype)
    if one_set:
        squared.diagonal(dim1=-2, dim2=-1).zero_()
    return squared


def _by_parts(x: Tensor, y: Tensor, one_set: bool) -> Tensor:
    """As :func:`_by_products`, for GPUs: no value is looked at, so no kernel is waited for.

    Every row is cut in two, x = r + f. r has so few bits that its products, and sums of them, are exact in float64; f
    is about a millionth of x. With p = x + r, ‖x − y‖² is ‖r − r'‖², exactly, and ⟨f − f', p − p'⟩, whose rounding is a
    millionth of that of a plain product. Pairs at 1e-7 of their norms keep their digits; below 1e-9 they are equal.
    """
    bits = (47 - (x.shape[-1] - 1).bit_length()) // 2
    points = (x,) if one_set else (x, y)
    sizes, wide = [each.shape[-2] for each in points], (x if one_set else torch.cat(points, -2)).double()
    largest = torch.linalg.vector_norm(wide, torch.inf, -1, keepdim=True)
    rough = torch.add(wide, largest, alpha=2.0 ** (53 - bits)).sub_(largest, alpha=2.0 ** (53 - bits))  # rounds to bits
    fine, both = wide - rough, wide + rough
    norm, more = rough.square().sum(-1, keepdim=True), (fine * both).sum(-1, keepdim=True)
    left, right = torch.cat([fine, both], -1).split(sizes, -2)[0], torch.cat([both, fine], -1).split(sizes, -2)[-1]
    rough, norm, more = (values.split(sizes, -2) for values in (rough, norm, more))
    squared = _less_products(norm[0] + norm[-1].mT, 2, rough[0], rough[-1])
    squared = _less_products(squared.add_(more[0]).add_(more[-1].mT), 1, left, right)
    least = norm[0] * (x.shape[-1] ** 0.5 * 2.0 ** -(48 + bits))  # ten times what rounding leaves of equal points
    squared = torch.mul(squared, squared > least, out=x.new_empty(squared.shape))
    if one_set:
        squared.diagonal(dim1=-2, dim2=-1).zero_()
    return squared


def _less_products(sums: Tensor, times: int, x: Tensor, y: Tensor) -> Tensor:
    """``sums`` − times·⟨x, y⟩ in place: of two sets in one pass over the n×m numbers, a batch has no such product."""
    return sums.addmm_(x, y.mT, alpha=-times) if sums.ndim == 2 else sums.sub_(x @ y.mT, alpha=times)


def chord_of_rows(x: Tensor, y: Tensor) -> Tensor:
    """‖x − y‖ row by row."""
    return torch.linalg.vector_norm(x - y, dim=-1)
