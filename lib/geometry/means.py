"""The Fréchet mean of the ball: the point with the least sum of squared distances.

It has no closed form. :meth:`lib.geometry.PoincareBall.mean` is the gyromidpoint, which has one, and equals it for two
points; the further a set spreads, the more they differ.
"""

import math
import warnings

import torch
from torch import Tensor

from lib.geometry import PoincareBall
from lib.geometry.points import Points, as_tensor

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    from geoopt.manifolds.stereographic import math as gyro

TOLERANCE = 1e-9
"""Length of the mean tangent vector, in units of distance, at which a point counts as the mean."""


class NotConverged(RuntimeError):
    """Karcher's iterations ended before the stop rule was met."""


def frechet_mean(
    x: Points, c: float, weights: Points | None = None, tolerance: float = TOLERANCE, max_steps: int = 1000
) -> Tensor:
    """argmin over m of Σ wᵢ d(m, xᵢ)², by Karcher's iterations in float64 from the gyromidpoint.

    A step follows v = Σ wᵢ log_m(xᵢ) (weights that add up to 1), shortened by the largest curvature that the sum can
    have, Σ wᵢ √c dᵢ coth(√c dᵢ), so that the sum of squares falls at every step and no line search is needed.

    Args:
        x: points (..., n, d) of the ball, one set per batch entry.
        c: curvature −c, c ≥ 0; 0 gives the average.
        weights: (..., n), ≥ 0, not all 0 in a set; alike if None.
        tolerance: stop when ‖v‖ is below it in every set, as a distance.
        max_steps: give up after so many steps.

    Returns:
        (..., d) in the dtype of ``x``. Its gradient in ``x`` and ``weights`` is the one of the exact mean (implicit
        function theorem: one Newton step from the converged point), not that of the iterations.

    Raises:
        InputError: for points on or beyond the rim, or weights as above. NotConverged: see ``max_steps``.

    >>> pair = torch.tensor([[0.0, 0.0], [0.8, 0.0]])
    >>> [round(v, 4) for v in frechet_mean(pair, c=1.0).tolist()]  # halfway: artanh(0.8)/2 = artanh(0.5)
    [0.5, 0.0]
    """
    ball, x = PoincareBall(c), as_tensor(x)
    weights = None if weights is None else as_tensor(weights, "weights")
    start = ball.mean(x.detach().double(), None if weights is None else weights.detach().double())
    if c == 0:
        return ball.mean(x, weights)
    ball.check_inside(x, "point")
    wide = x.double()
    shares = wide.new_ones(wide.shape[:-1]) if weights is None else weights.double()
    shares = (shares / shares.sum(-1, keepdim=True)).unsqueeze(-1)
    with torch.no_grad():
        mean = _karcher(wide, shares, start, ball, tolerance, max_steps)
    return _newton(wide, shares, mean, c).to(x.dtype)


def _karcher(x: Tensor, shares: Tensor, mean: Tensor, ball: PoincareBall, tolerance: float, max_steps: int) -> Tensor:
    root, k = math.sqrt(ball.c), mean.new_tensor(-ball.c)
    for _ in range(max_steps):
        pull = (shares * gyro.logmap(mean.unsqueeze(-2), x, k=k)).sum(-2)
        length = ball.conformal_factor(mean) * pull.norm(dim=-1)
        if length.max() < tolerance:
            return mean
        reach = root * ball.between(mean.unsqueeze(-2), x)
        # t·coth(t) is 1 at t = 0, where it is 0/0 in numbers.
        stiff = torch.where(reach > 1e-4, reach / torch.tanh(reach).clamp_min(1e-4), 1.0)
        mean = gyro.expmap(mean, pull / (shares.squeeze(-1) * stiff).sum(-1, keepdim=True), k=k)
    raise NotConverged(
        f"the mean still moves by {length.max().item():.1e} after {max_steps} steps (tolerance {tolerance:g}); "
        "allow more steps, or project the points further from the rim"
    )


def _newton(x: Tensor, shares: Tensor, mean: Tensor, c: float) -> Tensor:
    """The converged mean as a function of ``x`` and ``shares``: m − (∂v/∂m)⁻¹ v(m, x), where v(m, x) is almost 0."""
    if not (torch.is_grad_enabled() and (x.requires_grad or shares.requires_grad)):
        return mean

    def pull(at: Tensor, points: Tensor, weights: Tensor) -> Tensor:
        return (weights * gyro.logmap(at.unsqueeze(-2), points, k=at.new_tensor(-c))).sum(-2)

    at = mean.detach().requires_grad_()
    rows = pull(at, x.detach(), shares.detach()).unbind(-1)
    slope = torch.stack([torch.autograd.grad(row.sum(), at, retain_graph=True)[0] for row in rows], dim=-2)
    return mean - torch.linalg.solve(slope, pull(mean, x, shares))
