"""Figures of δ: what it measures on four points, what known spaces give, and what moves it."""

from collections.abc import Iterable
from textwrap import fill

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.geometry.hyperbolicity import hyperbolicity
from lib.papers.hyp_vit.hyperbolicity import controls

SHAPES = {"a tree": controls.TREE, "a flat square": controls.SQUARE}
PAIRS = ((1, 2), (2, 3), (1, 3))  # (x|y), (y|z), (x|z), seen from w = 0


def four_points() -> pd.DataFrame:
    """The Gromov products of the four points of each shape, seen from w, and δ (Equation 6).

    Columns shape, xy, yz, xz (the products), short (by how much (x|z) falls below the smaller of the other two), delta,
    diameter, relative; the last three with all base points.

    >>> four_points().round(2)[["shape", "xy", "yz", "xz", "short", "relative"]].values.tolist()
    [['a tree', 1.0, 2.0, 1.0, 0.0, 0.0], ['a flat square', 1.41, 1.41, 0.59, 0.83, 0.59]]
    """
    lines = []
    for shape, d in SHAPES.items():
        xy, yz, xz = (float(d[0, a] + d[0, b] - d[a, b]) / 2 for a, b in PAIRS)
        found = hyperbolicity(d)
        line = {"shape": shape, "xy": xy, "yz": yz, "xz": xz, "short": max(0.0, min(xy, yz) - xz)}
        lines.append(line | {"delta": found.delta, "diameter": found.diameter, "relative": found.relative})
    return pd.DataFrame(lines)


def drawn_points(rows: pd.DataFrame) -> Figure:
    """The tree and the square with their points, and the numbers of :func:`four_points` below each."""
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.1))
        _tree(axes[0])
        _square(axes[1])
        for axis, row in zip(axes, rows.itertuples(), strict=True):
            text = (
                f"(x|y) = {row.xy:.2f}   (y|z) = {row.yz:.2f}   (x|z) = {row.xz:.2f}\n"
                f"(x|z) falls short by {row.short:.2f}\n"
                f"δ = {row.delta:.2f}   diameter = {row.diameter:.2f}   relative δ = {row.relative:.2f}"
            )
            axis.set_title(row.shape)
            axis.text(0.5, -0.04, text, transform=axis.transAxes, ha="center", va="top", linespacing=1.5)
            axis.set_aspect("equal")
            axis.axis("off")
        plt.close(figure)
    return figure


def _tree(axis: plt.Axes) -> None:
    """Leaves w, x on the left and y, z on the right; the way that w shares with y and z is thick."""
    rise = 3**0.5 / 2
    left, right = (0.0, 0.0), (1.0, 0.0)
    leaves = {"w": (-0.5, -rise), "x": (-0.5, rise), "y": (1.5, rise), "z": (1.5, -rise)}
    for name, end in leaves.items():
        _edge(axis, left if name in "wx" else right, end)
    _edge(axis, left, right)
    axis.plot(*zip(leaves["w"], left, right, strict=True), color=style.PALETTE[1], linewidth=5, alpha=0.6, zorder=0)
    axis.text(0.5, -0.12, "(y|z)", ha="center", va="top", fontsize=9)
    _points(axis, leaves, away=0.18)
    axis.set(xlim=(-1.2, 2.2), ylim=(-1.2, 1.2))


def _square(axis: plt.Axes) -> None:
    corners = {"w": (0.0, 0.0), "x": (2.0, 0.0), "y": (2.0, 2.0), "z": (0.0, 2.0)}
    for a, b in ("wx", "xy", "yz", "zw"):
        _edge(axis, corners[a], corners[b])
    for a, b in ("wy", "xz"):
        _edge(axis, corners[a], corners[b], linestyle=":")
    _points(axis, corners, away=0.28, centre=(1.0, 1.0))
    axis.set(xlim=(-0.7, 2.7), ylim=(-0.5, 2.5))


def _edge(axis: plt.Axes, start: tuple[float, float], end: tuple[float, float], linestyle: str = "-") -> None:
    axis.plot(*zip(start, end, strict=True), color="black", linewidth=1.2, linestyle=linestyle)


def _points(axis: plt.Axes, points: dict, away: float, centre: tuple[float, float] = (0.5, 0.0)) -> None:
    for name, (x, y) in points.items():
        axis.plot(x, y, "o", color="black", markersize=6)
        across, up = (1 if x > centre[0] else -1), (1 if y > centre[1] else -1)
        axis.text(x + away * across, y + away * up * 0.5, name, ha="center", va="center", fontsize=11)


def yardstick(known: pd.DataFrame, ours: pd.DataFrame, printed: tuple[float, float]) -> Figure:
    """Relative δ of controls and encoders, and of Gaussian clouds over their length; the printed range as a band.

    Args:
        known: control, dim, relative, low, high; of controls.
        ours: encoder, dim (length of the features), relative, low, high.
        printed: the smallest and the largest published value.
    """
    with style.house():
        figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 4.0), width_ratios=[1.25, 1])
        names = [*known["control"], *map(style.legible, ours["encoder"])]
        places = dict(zip(names, range(len(names)), strict=True))
        _bars(left, known["relative"], [places[name] for name in known["control"]], known, 0, horizontal=True)
        for number, (name, row) in enumerate(ours.groupby("encoder", sort=False), start=1):
            _bars(left, row["relative"], [places[style.legible(name)]], row, number, horizontal=True)
        left.axhline(len(known) - 0.5, color="black", linewidth=0.6)
        left.set_yticks(range(len(names)), names)
        left.invert_yaxis()
        left.set(xlim=(-0.03, 1.0), xlabel="relative δ (0: a tree)")
        left.axvspan(*printed, color="0.8", zorder=0)
        clouds = known[known["control"].str.startswith("Gaussian")].sort_values("dim")
        right.plot(clouds["dim"], clouds["relative"], color=style.PALETTE[0], marker="o", label="Gaussian cloud")
        for number, row in enumerate(ours.itertuples(), start=1):
            _bars(right, [row.dim], [row.relative], ours[ours["encoder"] == row.encoder], number, label=row.encoder)
        right.axhspan(*printed, color="0.8", zorder=0, label="published, Table 1")
        ticks = _apart(clouds["dim"])
        right.set(xscale="log", xlabel="length of the feature (numbers)", ylabel="relative δ", ylim=(0, None))
        right.set_xticks(ticks, labels=[str(tick) for tick in ticks], rotation=45)
        right.minorticks_off()
        figure.legend(*right.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _apart(lengths: Iterable[int], least: float = 1.5) -> list[int]:
    """Lengths for the ticks of a logarithmic axis: none within a factor ``least`` of the one before.

    >>> _apart([2, 128, 156, 384])
    [2, 128, 384]
    """
    ticks: list[int] = []
    for length in sorted(set(lengths)):
        if not ticks or length >= least * ticks[-1]:
            ticks.append(length)
    return ticks


def _bars(axis, x, y, rows: pd.DataFrame, number: int, horizontal: bool = False, label: str | None = None) -> None:
    """Points with their interval, along x if ``horizontal``; hollow markers tell encoders from controls in grey."""
    error = [rows["relative"] - rows["low"], rows["high"] - rows["relative"]]
    axis.errorbar(
        x,
        y,
        **{"xerr" if horizontal else "yerr": error},
        linestyle="none",
        marker=style.MARKERS[number],
        color=style.PALETTE[number],
        markerfacecolor="white" if number else None,
        markersize=5,
        capsize=2,
        label=style.legible(label) if label else None,
    )


def procedure(ladder: pd.DataFrame, every_base: pd.DataFrame) -> Figure:
    """Relative δ over the images of a draw, and what each base point gives of the largest.

    Args:
        ladder: encoder, size, relative, low, high.
        every_base: encoder, draw, base, share.
    """
    encoders = list(ladder["encoder"].unique())
    with style.house():
        figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.2))
        for number, encoder in enumerate(encoders):
            rows = ladder[ladder["encoder"] == encoder]
            look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
            marker = {"marker": style.MARKERS[number], "markersize": 4}
            left.plot(rows["size"], rows["relative"], label=style.legible(encoder), **look, **marker)
            left.fill_between(rows["size"], rows["low"], rows["high"], color=style.PALETTE[number], alpha=0.2, lw=0)
            share = every_base[every_base["encoder"] == encoder]["share"].sort_values()
            below = [100 * (place + 1) / len(share) for place in range(len(share))]
            right.plot(share, below, **look)
        ticks = _apart(ladder["size"])
        left.set(xscale="log", xlabel="images of a draw", ylabel="relative δ", ylim=(0, None))
        left.set_xticks(ticks, labels=[f"{tick:,}" for tick in ticks])
        left.minorticks_off()
        right.axvline(0.5, color="black", linestyle=":", linewidth=0.9)
        right.text(0.505, 97, "no base point below", fontsize=8, va="top")
        right.set(xlabel="δ of one base point / largest of all", ylabel="base points (%)", xlim=(0.47, 1.01))
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=len(encoders))
        plt.close(figure)
    return figure


def copies(rows: pd.DataFrame) -> Figure:
    """Relative δ of the features and of their copies, a thin line per draw; a panel per encoder.

    rows: encoder, features (as drawn, from left to right), draw, relative.
    """
    encoders, names = (list(rows[column].unique()) for column in ("encoder", "features"))
    with style.house():
        figure, axes = plt.subplots(1, len(encoders), figsize=(style.WIDTH, 3.0), sharey=True, squeeze=False)
        for axis, encoder in zip(axes[0], encoders, strict=True):
            wide = rows[rows["encoder"] == encoder].pivot(index="draw", columns="features", values="relative")[names]
            for _, draw in wide.iterrows():
                axis.plot(range(len(names)), draw, color="0.6", linewidth=0.7)
            for place, name in enumerate(names):
                look = {"color": style.PALETTE[place], "marker": style.MARKERS[place], "markersize": 8}
                axis.plot(place, wide[name].mean(), linestyle="none", zorder=3, markeredgecolor="black", **look)
            axis.set_xticks(range(len(names)), [fill(name, 12) for name in names])
            axis.set(title=style.legible(encoder), xlim=(-0.5, len(names) - 0.5))
        axes[0][0].set(ylabel="relative δ", ylim=(0, None))
        plt.close(figure)
    return figure
