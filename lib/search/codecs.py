"""How an embedding is stored, and what that costs in distance.

=================  =====================  ==========================================================
codec              bytes of d numbers     stored
=================  =====================  ==========================================================
float32            4 d                    the point of the ball
float16 ball       2 d                    the point of the ball, rounded towards the origin
float16 tangent    2 d                    its tangent vector at the origin, log0 of the point
=================  =====================  ==========================================================

Rounding a point of the ball to the *nearest* float16 can carry it onto the rim, from √c‖x‖ = 0.9998 on; so a float16
ball point is rounded towards the origin. A tangent vector has no rim: half its digits are lost at any length, and
exp0 leads back inside.

A distance of two points changes by no more than both move (triangle inequality), and :func:`largest_move` bounds how
far a point moves.
"""

import math
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.geometry.points import Points, as_tensor

Codec = Literal["float32", "float16 ball", "float16 tangent"]
CODECS: tuple[Codec, ...] = ("float32", "float16 ball", "float16 tangent")

_UNIT = 2.0**-11
"""Relative rounding error of float16, to nearest; towards the origin it is twice that."""

_SMALLEST = 2.0**-24
"""Numbers below 2⁻¹⁴ have this absolute error instead."""


def encode(x: Points, codec: Codec, c: float) -> np.ndarray:
    """Points ``x: (n, d)`` of the ball of curvature −c as (n, d) float32 or float16.

    Raises InputError for an unknown codec, NaN, points on the rim or beyond it, and numbers too large for float16, as
    there can be where c is small.
    """
    _known(codec)
    x, ball = as_tensor(x), PoincareBall(c)
    ball.check_inside(x)
    if codec == "float32":
        return x.float().numpy()
    values = (ball.log0(x.double()) if codec == "float16 tangent" else x.double()).numpy()
    largest = float(np.abs(values).max(initial=0))
    checks.fits(f"numbers stored as {codec}", largest, 16, 'scale them, or store them as "float32"')
    return _towards_zero(values) if codec == "float16 ball" else values.astype(np.float16)


def decode(stored: ArrayLike, codec: Codec, c: float) -> Tensor:
    """The points (n, d) float32 that ``stored`` stands for, inside the ball."""
    _known(codec)
    values = torch.from_numpy(np.asarray(stored).astype(np.float32))
    if codec != "float16 tangent":
        return values
    ball = PoincareBall(c)
    return ball.project(ball.exp0(values.double()), margin=2.0**-22).float()


def largest_move(radius: float, dim: int, codec: Codec, c: float = 1.0) -> float:
    """An upper bound of the distance between a point at √c‖x‖ = ``radius`` < 1 and what ``decode`` returns.

    A Euclidean step of length e at radius r, inwards or sideways, is no longer than (2/√c)·asinh(e/(1 − r²)) when e is
    measured in units of the radius of the ball. In the tangent space a step of relative length u moves a point by at
    most u·‖v‖ along and u·‖v‖ across the radius; across, exp0 stretches it by sinh(2t)/(2t) with t = artanh r.

    Raises InputError for a radius that is not from 0 to below 1, a dim below 1, and c = 0: flat space has no rim that a
    radius could be a share of.
    """
    _known(codec)
    checks.number("radius", radius, least=0, most=1 - 2.0**-53)
    checks.whole("dim", dim)
    checks.positive("c", c)
    root = math.sqrt(c)
    gap = 1 - radius**2
    float32 = 2.0**-24 * radius + root * math.sqrt(dim) * 2.0**-150
    if codec == "float32":
        step = float32 / gap
    elif codec == "float16 ball":
        step = (2 * _UNIT * radius + root * math.sqrt(dim) * _SMALLEST + float32) / gap
    else:
        way = math.atanh(radius)  # √c‖v‖
        tangent = _UNIT * way + root * math.sqrt(dim) * _SMALLEST
        stretch = math.sinh(2 * (way + tangent)) / (2 * (way + tangent)) if way else 1.0
        # What decode rounds to float32 or projects to 1 − 2⁻²² lies within a few float32 steps of the point.
        return 2 / root * (tangent * stretch * 1.001 + math.asinh(8 * 2.0**-24 / gap))
    return 2 / root * math.asinh(step)


def _towards_zero(values: np.ndarray) -> np.ndarray:
    nearest = values.astype(np.float16)
    beyond = np.abs(nearest.astype(values.dtype)) > np.abs(values)
    return np.where(beyond, np.nextafter(nearest, np.float16(0)), nearest)


def _known(codec: str) -> None:
    if codec not in CODECS:
        raise InputError(f'unknown codec "{codec}": choose one of {", ".join(CODECS)}')
