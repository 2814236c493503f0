"""The hyperboloid: where the hyperbolic distance is an inner product, and back to the ball.

A point x of the ball of curvature −c is lifted to (t, s), s = 2x/(1 − c‖x‖²) and t = (1 + c‖x‖²)/(√c(1 − c‖x‖²)), with
−t² + ‖s‖² = −1/c. There cosh(√c·d(x, y)) = −c⟨x, y⟩ with ⟨x, y⟩ = −t_x t_y + s_x·s_y (Ratcliffe, *Foundations of
Hyperbolic Manifolds*, Section 4.5). This is for index structures that only know inner products; to *measure* a distance
use :class:`lib.geometry.PoincareBall`, as the inner product of two near points cancels.

geoopt's ``Lorentz(k)`` has k = 1/c.
"""

import torch
from torch import Tensor

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.geometry.numerics import root, shortened
from lib.geometry.points import Points, floating


def lift(x: Points, c: float) -> Tensor:
    """Points ``x: (..., d)`` of the ball as points ``(..., d + 1)`` of the hyperboloid, time first.

    Raises InputError for c ≤ 0 (the flat space has no hyperboloid) and for points on the rim or beyond it.

    >>> lift(torch.tensor([[0.0, 0.0], [0.5, 0.0]], dtype=torch.float64), c=1.0)
    tensor([[1.0000, 0.0000, 0.0000],
            [1.6667, 1.3333, 0.0000]], dtype=torch.float64)
    """
    c = _positive(c)
    (x,) = floating(x)
    PoincareBall(c).check_inside(x, "point")
    squared = c * x.square().sum(-1, keepdim=True)
    # The floor is for a point so near the rim that its sum of squares is rounded to 1.
    return torch.cat([(1 + squared) / c**0.5, 2 * x], dim=-1) / (1 - squared).clamp_min(torch.finfo(x.dtype).eps)


def lower(point: Points, c: float) -> Tensor:
    """Points ``(..., d + 1)`` of the hyperboloid as points ``(..., d)`` of the ball: x = s/(1 + √c·t).

    The time is recomputed from the space components, so that rounding cannot move a point off the hyperboloid.
    """
    c = _positive(c)
    space = shortened(floating(point)[0][..., 1:])
    return space / (1 + root(1 + c * space.square().sum(-1, keepdim=True)))


def _positive(c: float) -> float:
    if not 0 < c < float("inf"):
        raise InputError(f"c = {c:g}: the hyperboloid needs a finite c > 0")
    return c
