"""The Poincaré ball in two dimensions: geodesics, circles, tilings, and the pictures made of them.

Points of the plane are complex numbers here, because the Möbius sum of two of them is one fraction,
x ⊕ y = (x + y)/(1 + c·x̄·y) (Hyper-DINO, section 2.3, in two dimensions), which has no trouble at c = 0.
"""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from lib.errors import InputError
from lib.figures import style
from lib.geometry import PoincareBall

VIEW = 1.5  # half the width of the explorer's picture, in coordinates of the ball
DISTANCES = (1, 2, 3, 4)  # of its grey circles from the origin


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
    """Regular ``p``-gons, ``q`` around every vertex, made by mirroring the central one in its sides again and again.

    Args:
        p, q: of the Schläfli symbol {p, q}.
        generations: how many rings around the central tile.

    Returns:
        (tiles, p) complex vertices in the unit disk, the central tile first.

    Raises:
        InputError: if {p, q} does not tile the hyperbolic plane, which needs 1/p + 1/q < 1/2.
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


def overview(ends: np.ndarray, centres: np.ndarray, distance: float, tiles: np.ndarray) -> Figure:
    """The unit disk three times: shortest ways, circles of one size, tiles of one size.

    Args:
        ends: (n, 2) complex ends of geodesics, drawn with the straight lines between the same ends.
        centres: (n,) complex centres of circles.
        distance: their hyperbolic radius.
        tiles: (n, p) complex vertices.
    """
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 2.7))
        for axis, title in zip(
            axes, ("shortest ways", f"circles at distance {distance:g}", "equal tiles"), strict=True
        ):
            _frame(axis, 1.04)
            axis.add_patch(Circle((0, 0), 1, fill=False, edgecolor="black", linewidth=1.2))
            axis.set_title(title)
            axis.set_xlabel("$x_1$ (coordinate)")
        axes[0].set_ylabel("$x_2$ (coordinate)")
        axes[0].add_collection(_lines([geodesic(*pair) for pair in ends], color=style.PALETTE[0], linewidth=1.4))
        axes[0].add_collection(_lines(ends, color="0.4", linewidth=0.9, linestyle=":"))
        axes[0].plot(ends.real, ends.imag, "o", color="black", markersize=3)
        axes[1].add_collection(_lines([circle(z, distance) for z in centres], color=style.PALETTE[1], linewidth=1.4))
        axes[1].plot(centres.real, centres.imag, "+", color="black", markersize=5)
        axes[2].add_collection(_lines(_sides(tiles), color=style.PALETTE[2], linewidth=0.7, rasterized=True))
        plt.close(figure)
    return figure


def explorer(c: float, point: complex, other: complex, clip_radius: float, clipped: complex) -> Figure:
    """The disk of curvature −c with a point, the way from it to another one, and where clipping puts it.

    Args:
        c: 0 is the flat plane, which has no rim.
        point, other: two points; both and the origin get a circle of distance 1/2.
        clip_radius: longest tangent vector; the dashed circle is what it leaves within reach.
        clipped: the point after clipping, drawn hollow where it differs.
    """
    with style.house():
        figure = Figure(figsize=(4.4, 5.0), layout="none")
        axis = figure.add_axes((0.15, 0.09, 0.83, 0.73))
        _frame(axis, VIEW)
        if c > 0:
            axis.add_patch(Circle((0, 0), c**-0.5, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
        for distance in DISTANCES:
            axis.plot(*_xy(circle(0, distance, c)), color="0.75", linewidth=0.8, label="distance 1, 2, 3, 4")
        for centre in (0, point, other):
            axis.plot(*_xy(circle(centre, 0.5, c)), color=style.PALETTE[1], linewidth=1.4, label="distance 0.5")
        axis.plot(*_xy(circle(0, 2 * clip_radius, c)), "--", color=style.PALETTE[3], linewidth=1.4, label="clip radius")
        axis.plot(*_xy([point, other]), ":", color="0.35", linewidth=1.2, label="straight line")
        axis.plot(*_xy(geodesic(point, other, c)), "-", color=style.PALETTE[0], linewidth=2, label="shortest way")
        axis.plot(*_xy([other]), "s", color="black", markersize=6, label="fixed point")
        axis.plot(*_xy([clipped]), "o", color="black", markerfacecolor="white", markersize=8, label="clipped point")
        axis.plot(*_xy([point]), "o", color="black", markersize=5, label="point")
        axis.set_xlabel("$x_1$ (coordinate)")
        axis.set_ylabel("$x_2$ (coordinate)")
        axis.locator_params(nbins=6)
        handles, labels = axis.get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        figure.legend(shown.values(), shown, loc="upper center", ncols=3, fontsize=8, columnspacing=1.2)
    return figure


def rounding(rows: pd.DataFrame, resting: float) -> Figure:
    """What float16 costs a distance, by how near the rim the points are (erratum HD-10).

    Args:
        rows: columns radius, median, low, high (relative errors in parts per million, drawn in percent; low and high
            bound 90 percent of the pairs).
        resting: the radius at which the loss leaves the classes (erratum HD-8), marked by a line.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(0.62 * style.WIDTH, 2.9))
        gap = 1 - rows["radius"]
        low, median, high = (rows[name] / 1e4 for name in ("low", "median", "high"))
        axis.fill_between(gap, low, high, color=style.PALETTE[0], alpha=0.25, label="90 % of pairs")
        axis.plot(gap, median, "-o", color=style.PALETTE[0], markersize=4, label="median")
        axis.axvline(
            1 - resting, color="black", linestyle="--", linewidth=1.2, label=f"classes at rest ({resting:.3f})"
        )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.invert_xaxis()
        shown = [value for value in rows["radius"] if value in (0.5, 0.9, 0.99, 0.999, 0.9999)]
        axis.set_xticks([1 - value for value in shown], labels=[f"{value:g}" for value in shown])
        axis.minorticks_off()
        axis.set_xlabel("norm of both points (rim at 1)")
        axis.set_ylabel("relative error of distance (%)")
        axis.legend(loc="lower right")
        plt.close(figure)
    return figure


def _sides(tiles: np.ndarray) -> list[np.ndarray]:
    """The sides of ``tiles: (n, p)`` as curves; one that two tiles share is there once."""
    ends = np.stack([tiles, np.roll(tiles, -1, axis=1)], axis=-1).reshape(-1, 2)
    middles = {complex(np.round(side.mean(), 9)) + 0: side for side in ends}
    return [geodesic(*side, n=7) for side in middles.values()]


def _frame(axis: plt.Axes, limit: float) -> None:
    axis.set_xlim(-limit, limit)
    axis.set_ylim(-limit, limit)
    axis.set_aspect("equal")
    axis.grid(False)


def _lines(curves: Sequence[np.ndarray], **look: object) -> LineCollection:
    return LineCollection([np.column_stack(_xy(curve)) for curve in curves], **look)


def _xy(points: Sequence[complex] | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    points = np.asarray(points)
    return points.real, points.imag


def _vectors(points: np.ndarray | complex) -> torch.Tensor:
    return torch.view_as_real(torch.from_numpy(np.asarray(points, dtype=complex)))


def _complex(vectors: torch.Tensor) -> np.ndarray:
    return torch.view_as_complex(vectors.contiguous()).numpy()
