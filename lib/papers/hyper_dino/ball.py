"""Notebook 11, the Poincaré ball (section 2.2): geodesics and tilings, where a loss rests, what float16 costs.

Points of the plane are complex numbers here, because the Möbius sum of two of them is one fraction,
x ⊕ y = (x + y)/(1 + c·x̄·y), which has no trouble at c = 0.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from lib.errors import InputError
from lib.figures import style
from lib.geometry import PoincareBall, clip
from lib.widgets.board import Board
from lib.widgets.slider import Slider

UNIT = PoincareBall(1.0)
OTHER = (-0.3, 0.4)
"""The sliders' fixed second point; inside the ball for every curvature."""


def plus(x: np.ndarray | complex, y: np.ndarray | complex, c: float = 1.0) -> np.ndarray:
    """The Möbius sum x ⊕ y of complex points of the ball of curvature −c.

    >>> complex(plus(0.5, 0.5))
    (0.8+0j)
    """
    return (x + y) / (1 + c * np.conj(x) * y)


def geodesic(x: complex, y: complex, c: float = 1.0, n: int = 60) -> np.ndarray:
    """``n`` points of the shortest way from x to y, at equal distances from each other.

    The way from the origin to −x ⊕ y is a straight line; adding x on the left carries it to its place.
    """
    ball = PoincareBall(c)
    step = ball.log0(_vectors(plus(-x, y, c)))
    return plus(x, _complex(ball.exp0(torch.linspace(0, 1, n, dtype=torch.float64)[:, None] * step)), c)


def circle(centre: complex, distance: float, c: float = 1.0, n: int = 90) -> np.ndarray:
    """``n`` points at hyperbolic ``distance`` from ``centre``, the first one again at the end."""
    around = np.exp(1j * np.linspace(0, 2 * np.pi, n))
    return plus(centre, _complex(PoincareBall(c).exp0(_vectors(distance / 2 * around))), c)


def reflect(points: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """``points`` of the unit disk mirrored in the geodesic through a and b: moved to the origin, it is a diameter."""
    direction = plus(-a, b)
    return plus(a, direction / np.conj(direction) * np.conj(plus(-a, points)))


def tiling(p: int, q: int, generations: int) -> np.ndarray:
    """Regular ``p``-gons, ``q`` around every vertex: the central one mirrored in its sides, ``generations`` times.

    Returns (tiles, p) complex vertices in the unit disk, the central tile first; InputError if {p, q} does not tile the
    hyperbolic plane, which needs 1/p + 1/q < 1/2.
    """
    if 2 * (p + q) >= p * q:
        raise InputError(f"{{{p},{q}}} does not tile the hyperbolic plane: choose p and q with 1/p + 1/q < 1/2")
    # A vertex is at distance R from the centre with cosh R = cot(π/p)·cot(π/q), that is at radius tanh(R/2).
    cosh = 1 / (np.tan(np.pi / p) * np.tan(np.pi / q))
    ring = [np.sqrt((cosh - 1) / (cosh + 1)) * np.exp(2j * np.pi * np.arange(p) / p)]
    tiles = {0j: ring[0]}
    for _ in range(generations):
        mirrored = [reflect(tile, tile[k], tile[(k + 1) % p]) for tile in ring for k in range(p)]
        new = {complex(np.round(tile.mean(), 9)) + 0: tile for tile in mirrored}
        ring = [tile for centre, tile in new.items() if centre not in tiles]
        tiles |= new
    return np.stack(list(tiles.values()))


def margin_at_rest(classes: int, m0: float, alpha: float) -> float:
    """The margin m = m0 + α·(C − 1)/C·m that C balanced, collapsed classes at mutual distance m keep (HD-8)."""
    return m0 / (1 - alpha * (classes - 1) / classes)


def simplex(classes: int, distance: float) -> Tensor:
    """``classes`` points around the origin of the unit ball, each pair at ``distance``; (C, C) float64.

    At radius ρ two points are s = ρ·√(2C/(C − 1)) apart on paper; sinh(d/2) = s/(1 − ρ²) gives ρ.
    """
    directions = torch.eye(classes, dtype=torch.float64) - 1 / classes
    side, sinh = np.sqrt(2 * classes / (classes - 1)), np.sinh(distance / 2)
    radius = 2 * sinh / (np.hypot(side, 2 * sinh) + side)
    return radius * directions / directions.norm(dim=-1, keepdim=True)


def radius_at_rest(classes: int, m0: float, alpha: float) -> float:
    """Norm at which collapsed classes are exactly at the margin, so that nothing pushes them any more (HD-8).

    >>> round(radius_at_rest(8, 0.5, 0.1), 3)
    0.178
    """
    return simplex(classes, margin_at_rest(classes, m0, alpha))[0].norm().item()


def rounding(radii: Sequence[float], dim: int = 32, pairs: int = 4000, seed: int = 0) -> pd.DataFrame:
    """The relative error of a distance between two points of one norm after rounding both to float16 (HD-10).

    Both distances are taken in float64, so that nothing but the rounding of the points is seen. A pair with a point
    that rounds onto or beyond the rim has no distance any more; it is counted and left out, as is a pair of one point.

    Columns radius, median, low, high (parts per million; 5 and 95 percent of the pairs), lost (percent of points at
    norm ≥ 1).
    """
    rng = np.random.default_rng(seed)
    directions = torch.from_numpy(rng.normal(size=(2, pairs, dim)))
    directions /= directions.norm(dim=-1, keepdim=True)
    rows = []
    for radius in radii:
        exact = radius * directions
        rounded = exact.half().double()
        inside = rounded.norm(dim=-1) < 1
        true, after = UNIT.between(*exact), UNIT.between(*rounded)
        error = 1e6 * ((after - true).abs() / true)[inside.all(0) & (true > 0)]
        low, median, high = np.quantile(error, [0.05, 0.5, 0.95])
        lost = 100 * (1 - inside.double().mean().item())
        rows.append({"radius": radius, "median": median, "low": low, "high": high, "lost": lost})
    return pd.DataFrame(rows)


def figure_rounding(rows: pd.DataFrame, resting: float) -> Figure:
    """The rows of :func:`rounding` in percent, towards the rim on the right; ``resting``: a radius to mark."""
    with style.house():
        figure, axis = plt.subplots(figsize=(0.62 * style.WIDTH, 2.9))
        gap = 1 - rows["radius"]
        axis.fill_between(gap, rows["low"] / 1e4, rows["high"] / 1e4, alpha=0.25, label="90 % of pairs")
        axis.plot(gap, rows["median"] / 1e4, "-o", markersize=4, label="median")
        axis.axvline(1 - resting, color="black", linestyle="--", label=f"classes at rest ({resting:.3f})")
        axis.set(xscale="log", yscale="log", xlabel="1 − norm of both points", ylabel="relative error of distance (%)")
        axis.invert_xaxis()
        axis.legend(loc="lower right")
        plt.close(figure)
    return figure


def overview(ends: np.ndarray, centres: np.ndarray, distance: float, tiles: np.ndarray) -> Figure:
    """The unit disk three times: geodesics between (n, 2) ``ends``, circles around (n,) ``centres``, (n, p) tiles."""
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 2.7))
        titles = ("shortest ways", f"circles at distance {distance:g}", "equal tiles")
        for axis, title in zip(axes, titles, strict=True):
            _frame(axis, 1.04)
            axis.add_patch(Circle((0, 0), 1, fill=False, edgecolor="black", linewidth=1.2))
            axis.set_title(title)
        axes[0].add_collection(_lines([geodesic(*pair) for pair in ends], color=style.PALETTE[0], linewidth=1.4))
        axes[0].add_collection(_lines(ends, color="0.4", linewidth=0.9, linestyle=":"))
        axes[0].plot(ends.real, ends.imag, "o", color="black", markersize=3)
        axes[1].add_collection(_lines([circle(z, distance) for z in centres], color=style.PALETTE[1], linewidth=1.4))
        axes[1].plot(centres.real, centres.imag, "+", color="black", markersize=5)
        axes[2].add_collection(_lines(_sides(tiles), color=style.PALETTE[2], linewidth=0.7, rasterized=True))
        plt.close(figure)
    return figure


def measure(c: float, clip_radius: float, x: float, y: float) -> tuple[Tensor, Tensor, Tensor]:
    """The point (x, y), put back into the ball if it lies outside; its tangent vector; where clipping brings it.

    Clipping (Hyp-ViT, section 2.4) shortens log0 of the point to ``clip_radius``; exp0 brings it back.
    """
    ball = PoincareBall(c)
    point = ball.project(torch.tensor([x, y], dtype=torch.float64))
    tangent = ball.log0(point)
    return point, tangent, ball.exp0(clip(tangent, clip_radius))


def draw(c: float, clip_radius: float, x: float, y: float) -> Figure:
    """The disk of curvature −c with the point, the way from it to the fixed one, and where clipping puts it."""
    point, _, clipped = (complex(*vector.tolist()) for vector in measure(c, clip_radius, x, y))
    other = complex(*OTHER)
    curves = [(circle(0, d, c), {"color": "0.75", "linewidth": 0.8}, "distance 1, 2, 3, 4") for d in (1, 2, 3, 4)]
    around = {"color": style.PALETTE[1], "linewidth": 1.4}
    curves += [(circle(centre, 0.5, c), around, "distance 0.5") for centre in (0, point, other)]
    curves += [(circle(0, 2 * clip_radius, c), {"color": style.PALETTE[3], "linestyle": "--"}, "clip radius")]
    curves += [(np.array([point, other]), {"color": "0.35", "linestyle": ":"}, "straight line")]
    curves += [(geodesic(point, other, c), {"color": style.PALETTE[0], "linewidth": 2}, "shortest way")]
    curves += [(np.array([other]), {"color": "black", "marker": "s"}, "fixed point")]
    hollow = {"color": "black", "marker": "o", "markerfacecolor": "white", "markersize": 8}
    curves += [(np.array([clipped]), hollow, "clipped point")]
    curves += [(np.array([point]), {"color": "black", "marker": "o", "markersize": 5}, "point")]
    with style.house():
        figure = Figure(figsize=(4.4, 5.0), layout="none")
        axis = figure.add_axes((0.15, 0.09, 0.83, 0.73))
        _frame(axis, 1.5)
        if c > 0:  # the flat plane has no rim
            axis.add_patch(Circle((0, 0), c**-0.5, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
        handles = {label: axis.plot(z.real, z.imag, label=label, **look)[0] for z, look, label in curves}
        figure.legend(handles.values(), handles, loc="upper center", ncols=3, fontsize=8, columnspacing=1.2)
    return figure


def describe(c: float, clip_radius: float, x: float, y: float) -> str:
    """The readout: the hyperbolic number beside what it is in flat space."""
    ball = PoincareBall(c)
    point, tangent, clipped = measure(c, clip_radius, x, y)
    moved = "" if torch.equal(point, torch.tensor([x, y], dtype=torch.float64)) else " (put back inside the rim)"
    other = torch.tensor(OTHER, dtype=torch.float64)
    flat = {"origin": 2 * point.norm(), "other": 2 * (other - point).norm()}
    lines = [
        f"curvature -{c:.2f}, radius {c**-0.5:.3f}" if c else "curvature 0: the flat plane, no rim",
        f"point ({point[0]:6.3f}, {point[1]:6.3f}){moved}",
        "",
        "                       hyperbolic      flat (c = 0)",
        f"from the origin        {ball.between(torch.zeros_like(point), point):10.4f}   {flat['origin']:13.4f}",
        f"from ({OTHER[0]}, {OTHER[1]})       {ball.between(other, point):10.4f}   {flat['other']:13.4f}",
        f"conformal factor       {ball.conformal_factor(point):10.4f}   {2:13.4f}",
        f"norm of tangent vector {tangent.norm():10.4f}   {point.norm():13.4f}",
        f"  clipped to {clip_radius:<4.2f}      {clip(tangent, clip_radius).norm():10.4f}",
        f"  and mapped back      ({clipped[0]:6.3f}, {clipped[1]:6.3f})",
    ]
    return "\n".join(lines)


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


def _sides(tiles: np.ndarray) -> list[np.ndarray]:
    """The sides of ``tiles: (n, p)`` as curves; one that two tiles share is there once."""
    ends = np.stack([tiles, np.roll(tiles, -1, axis=1)], axis=-1).reshape(-1, 2)
    middles = {complex(np.round(side.mean(), 9)) + 0: side for side in ends}
    return [geodesic(*side, n=7) for side in middles.values()]


def _frame(axis: plt.Axes, limit: float) -> None:
    axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
    axis.grid(False)


def _lines(curves: Sequence[np.ndarray], **look: object) -> LineCollection:
    return LineCollection([np.column_stack([curve.real, curve.imag]) for curve in curves], **look)


def _vectors(points: np.ndarray | complex) -> Tensor:
    return torch.view_as_real(torch.from_numpy(np.array(points, dtype=complex)))


def _complex(vectors: Tensor) -> np.ndarray:
    return torch.view_as_complex(vectors.contiguous()).numpy()
