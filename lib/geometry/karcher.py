"""A step towards a mean of the ball from any point of it, by geoopt's exponential and logarithmic maps."""

import warnings

import torch
from torch import Tensor

from lib.geometry.poincare import PoincareBall

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    from geoopt.manifolds.stereographic import math as gyro


def step(ball: PoincareBall, at: Tensor, points: Tensor, length: float = 1.0) -> Tensor:
    """exp_at(length · mean of log_at(points)), for ``at: (d,)`` and ``points: (n, d)`` of the ball, c > 0.

    With length 1 it is one of Karcher's iterations towards the Fréchet mean (Climbing the Label Tree, Equation 3), with
    a shorter one a moving average (Equation 10).

    >>> zero, one = torch.zeros(2), torch.tensor([[0.5, 0.0]])
    >>> step(PoincareBall(1.0), zero, one), step(PoincareBall(1.0), zero, one, 0.5)  # half of the distance 2 artanh ½
    (tensor([0.5000, 0.0000]), tensor([0.2679, 0.0000]))
    """
    return steps(ball, at[None], points, torch.zeros(len(points), dtype=torch.long), length)[0]


def steps(ball: PoincareBall, at: Tensor, points: Tensor, nodes: Tensor, length: float = 1.0) -> Tensor:
    """:func:`step` of each of ``at: (A, d)`` towards the mean of its ``points: (n, d)``, at once.

    nodes: (n,) from 0 to A − 1, whose point each is; what has no point stays where it is, to the bit.

    Computed in float64, as geoopt's maps need it near the rim, and returned in the dtype of ``at``.
    """
    start, points = at.double(), points.double()
    k = -start.new_tensor(ball.c)
    often = torch.bincount(nodes, minlength=len(at))[:, None]
    way = torch.zeros_like(start).index_add_(0, nodes, gyro.logmap(start[nodes], points, k=k)) / often.clamp_min(1)
    return torch.where(often > 0, ball.project(gyro.expmap(start, length * way, k=k)).to(at), at)
