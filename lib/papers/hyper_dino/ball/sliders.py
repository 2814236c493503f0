"""A point in the Poincaré disk: sliders for the curvature, the clip radius and the point."""

from typing import NamedTuple

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lib.geometry import PoincareBall, clip
from lib.papers.hyper_dino.ball import figures
from lib.widgets.board import Board
from lib.widgets.slider import Slider

OTHER = (-0.3, 0.4)
"""The fixed second point; inside the ball for every curvature of the slider."""


class Reading(NamedTuple):
    """Everything the picture shows, in float64; hyperbolic and Euclidean lengths, points of shape (2,)."""

    point: Tensor
    from_origin: Tensor
    from_other: Tensor
    conformal_factor: Tensor
    euclidean_from_origin: Tensor
    euclidean_from_other: Tensor
    tangent_norm: Tensor
    clipped_norm: Tensor
    clipped: Tensor


def read(c: float, clip_radius: float, x: float, y: float) -> Reading:
    """Measure the point (x, y) in the ball of curvature −c.

    A point on or beyond the rim is projected into the ball first. Clipping (Hyp-ViT, section 2.4) happens in the
    tangent space: log0 of the point is shortened to ``clip_radius`` where it is longer, and exp0 brings it back.
    """
    ball = PoincareBall(c)
    origin, other = torch.zeros(2, dtype=torch.float64), torch.tensor(OTHER, dtype=torch.float64)
    point = ball.project(torch.tensor([x, y], dtype=torch.float64))
    tangent = ball.log0(point)
    clipped = clip(tangent, clip_radius)
    return Reading(
        point,
        ball.between(origin, point),
        ball.between(other, point),
        ball.conformal_factor(point),
        point.norm(),
        (other - point).norm(),
        tangent.norm(),
        clipped.norm(),
        ball.exp0(clipped),
    )


def draw(c: float, clip_radius: float, x: float, y: float) -> Figure:
    """The picture, see :func:`lib.papers.hyper_dino.ball.figures.explorer`."""
    reading = read(c, clip_radius, x, y)
    point, clipped = complex(*reading.point.tolist()), complex(*reading.clipped.tolist())
    return figures.explorer(c, point, complex(*OTHER), clip_radius, clipped)


def describe(c: float, clip_radius: float, x: float, y: float) -> str:
    """The readout."""
    r = read(c, clip_radius, x, y)
    ball = f"curvature -{c:.2f}, radius {c**-0.5:.3f}" if c else "curvature 0: the flat plane, no rim"
    moved = "" if torch.equal(r.point, torch.tensor([x, y], dtype=torch.float64)) else " (put back inside the rim)"
    lines = [
        ball,
        f"point {_pair(r.point)}{moved}",
        "",
        "                       hyperbolic      flat (c = 0)",
        "distance                            2 x Euclidean",
        f"from the origin        {r.from_origin:10.4f}   {2 * r.euclidean_from_origin:13.4f}",
        f"from ({OTHER[0]}, {OTHER[1]})       {r.from_other:10.4f}   {2 * r.euclidean_from_other:13.4f}",
        "",
        f"conformal factor       {r.conformal_factor:10.4f}   {2:13.4f}",
        f"norm of tangent vector {r.tangent_norm:10.4f}   {r.euclidean_from_origin:13.4f}",
        f"  clipped to {clip_radius:<4.2f}      {r.clipped_norm:10.4f}",
        f"  and mapped back      {_pair(r.clipped)}",
    ]
    return "\n".join(lines)


def _pair(point: Tensor) -> str:
    return f"({point[0]:6.3f}, {point[1]:6.3f})"


def explore() -> Board:
    """The board, with sliders ``c``, ``clip_radius``, ``x`` and ``y``."""
    across = np.linspace(-1, 1, 41).round(2).tolist()
    sliders = {
        "c": Slider("curvature c", np.linspace(0, 2, 41).round(2).tolist(), start=1.0),
        "clip_radius": Slider("clip radius", np.linspace(0.1, 2.5, 25).round(1).tolist(), start=0.6),
        "x": Slider("point, x1", across, start=0.6),
        "y": Slider("point, x2", across, start=0.3),
    }
    return Board(sliders, draw, describe, height=500)
