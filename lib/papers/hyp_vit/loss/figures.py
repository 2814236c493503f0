"""The loss of Hyp-ViT in pictures: the small batch in the disk, the softmax of an anchor, the rim, the gradient."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Patch
from torch import Tensor

from lib.figures import style
from lib.papers.hyp_vit.loss import tables

HATCHES = ("", "////", "xx")
EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5}
WIDEST = 6.5
"""Half the width of a picture of the flat plane, and the most that a ball of little curvature gets."""
ROLES = (
    ("not in the sum", "white", ""),
    ("another class, pushed away (−)", "#cfe3f2", "−"),
    ("the positive, pulled near (+)", style.PALETTE[1], "+"),
    ("own class, yet pushed away (×)", style.PALETTE[3], "×"),
)
"""Name, colour, and a sign that is read in grey too, in the order of :data:`lib.papers.hyp_vit.loss.tables.ROLES`."""


def method(e: Tensor, labels: Tensor, c: float, clip_radius: float, share: Tensor) -> Figure:
    """From the head's output to the loss, in three panels: clipped, in the ball, the softmax of every anchor.

    Args:
        e: (n, 2) outputs, n at most 12; two of each class.
        labels: (n,) classes.
        c, clip_radius: c > 0.
        share: (n, n) of :func:`lib.papers.hyp_vit.loss.tables.softmax`.
    """
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 2.9), width_ratios=(1, 1, 1.12))
        limit = 1.4 * e.abs().max().item()
        _frame(axes[0], limit, "e")
        axes[0].add_patch(Circle((0, 0), clip_radius, fill=False, linestyle="--", color=style.PALETTE[3]))
        for row, end in zip(e.tolist(), tables.clip(e, clip_radius).tolist(), strict=True):
            axes[0].plot(*zip(row, end, strict=True), "-", color="0.5", linewidth=1)
        _points(axes[0], e, labels)
        axes[0].set_title(f"head's output e, clipped to r = {clip_radius:g}")
        disk(axes[1], tables.place(e, c, clip_radius), labels, c, clip_radius)
        axes[1].set_title(f"exp$_0$: the ball, c = {c:g}")
        _heat(axes[2], share, tables.names(labels))
        axes[2].set_title("softmax (%), positive framed")
        plt.close(figure)
    return figure


def _heat(axis: plt.Axes, share: Tensor, names: Sequence[str]) -> None:
    """Shares (n, n) in percent, one row for each anchor; the positive's is framed."""
    percent = 100 * share.numpy()
    axis.imshow(np.ma.masked_array(percent, np.eye(len(percent), dtype=bool)), cmap="Blues", vmin=0, vmax=100)
    for row, column in np.argwhere(percent >= 0.5):
        colour = "white" if percent[row, column] > 60 else "black"
        axis.text(column, row, f"{percent[row, column]:.0f}", ha="center", va="center", fontsize=7, color=colour)
    for row in range(len(percent)):
        axis.add_patch(
            plt.Rectangle((row // 2 * 2 + (row + 1) % 2 - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="black")
        )
    axis.set_xticks(range(len(names)), labels=names)
    axis.set_yticks(range(len(names)), labels=names)
    axis.set_xlabel("other image k")
    axis.set_ylabel("anchor i")
    axis.grid(False)


def softmaxes(z: Tensor, labels: Tensor, c: float, clip_radius: float, rows: pd.DataFrame) -> Figure:
    """The batch in the disk with the anchor ringed, and its softmax for each distance, a bar for each temperature.

    Args:
        z: (n, 2) points of the ball of curvature −c, c > 0.
        labels: (n,) classes.
        rows: of :func:`lib.papers.hyp_vit.loss.tables.shares` with two distances.
    """
    with style.house():
        # Placed by hand: laid out by matplotlib, this figure came out in two versions that differ in the last bit.
        figure = plt.figure(figsize=(style.WIDTH, 2.9), layout="none")
        axes = [figure.add_axes((left, 0.16, 0.25, 0.75)) for left in (0.075, 0.42, 0.735)]
        disk(axes[0], z, labels, c, clip_radius, anchor=tables.ANCHOR)
        axes[0].set_title(f"anchor {tables.names(labels)[tables.ANCHOR]} (ringed)")
        for axis, (name, part) in zip(axes[1:], rows.groupby("distance", sort=False), strict=True):
            for number, (tau, bars) in enumerate(part.groupby("temperature", sort=False)):
                _bars(axis, bars, number, part["temperature"].nunique(), f"τ = {tau:g}")
            axis.set_title(f"$D_\\mathrm{{{name.removeprefix('D_')}}}$")
            axis.set_ylim(0, 100)
            axis.set_xlabel("other image (bold: positive)")
        axes[1].set_ylabel("share of the softmax (%)")
        axes[2].legend(loc="upper right")
        plt.close(figure)
    return figure


def _bars(axis: plt.Axes, rows: pd.DataFrame, number: int, of: int, label: str) -> None:
    """One group of bars, the ``number``-th ``of`` so many at each image; rows: columns image, positive, share."""
    width = 0.84 / of
    at = np.arange(len(rows)) + (number - (of - 1) / 2) * width
    look = {"color": style.PALETTE[number], "hatch": HATCHES[number], "edgecolor": "black", "linewidth": 0.5}
    axis.bar(at, rows["share"], width, label=label, **look)
    axis.set_xticks(range(len(rows)), labels=rows["image"])
    for tick, positive in zip(axis.get_xticklabels(), rows["positive"], strict=True):
        tick.set_fontweight("bold" if positive else "normal")
    axis.grid(False, axis="x")


def subsets(n: int, d: int, chosen: tuple[int, int]) -> Figure:
    """What is below the line of Equation 5 for the anchors of two subsets: as in section 2.2, and over the batch.

    n, d: classes, and images of each. chosen: which two subsets, from 0.
    """
    ticks = [f"{tables.CLASSES[row // d]}{row % d + 1}" for row in range(n * d)]
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 4.6), sharey=True)
        titles = (f"section 2.2: subsets {chosen[0] + 1} and {chosen[1] + 1}", "the same pairs, over the whole batch")
        for axis, whole, title in zip(axes, (False, True), titles, strict=True):
            grid = tables.below_the_line(n, d, chosen, whole)
            axis.imshow(grid, cmap=ListedColormap([colour for _, colour, _ in ROLES]), vmin=0, vmax=3)
            for row, column in np.argwhere(grid):
                axis.text(column, row, ROLES[grid[row, column]][2], ha="center", va="center", fontsize=9)
            axis.set_xticks(range(n * d), labels=ticks)
            axis.set_yticks(range(n * d), labels=ticks)
            axis.set_xticks(np.arange(n * d + 1) - 0.5, minor=True)
            axis.set_yticks(np.arange(n * d + 1) - 0.5, minor=True)
            axis.grid(False)
            axis.grid(which="minor", color="0.8", linewidth=0.6)
            axis.set(title=title, xlabel="other image k")
        axes[0].set_ylabel("anchor i")
        handles = [Patch(facecolor=c, edgecolor="0.5", label=name) for name, c, _ in ROLES]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def temperature(weights: pd.DataFrame, rows: pd.DataFrame) -> Figure:
    """The two temperatures on the sphere (erratum HV-8): the weight of an angle, and the softmax of the anchor.

    weights: of :func:`lib.papers.hyp_vit.loss.tables.turned`. rows: columns formula, image, positive, share.
    """
    with style.house():
        figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 2.8))
        for number, (formula, part) in enumerate(weights.groupby("formula", sort=False)):
            look = _line(number)
            if formula.startswith("code"):
                look = {"color": "black", "linestyle": "", "marker": "o", "markersize": 3.5, "markerfacecolor": "none"}
            left.plot(part["angle"], part["weight"], label=formula, **look)
        left.set(
            xlabel="angle from the anchor (degrees)", ylabel="weight (% of that at 0°)", xlim=(0, 90), ylim=(0, 102)
        )
        for number, (formula, part) in enumerate(rows.groupby("formula", sort=False)):
            _bars(right, part, number, rows["formula"].nunique(), formula)
        right.set(xlabel="other image (bold: positive)", ylabel="share of the softmax (%)", ylim=(0, 100))
        for axis in (left, right):
            axis.legend(loc="upper right")
        plt.close(figure)
    return figure


def rim(rows: pd.DataFrame, published: Mapping[str, float]) -> Figure:
    """How near the rim clipping lets points come: against r a line for every c, against c·r² one line for all.

    rows: of :func:`lib.papers.hyp_vit.loss.tables.reach`. published: one row of the same, which is marked.
    """
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 2.8), sharey=True)
        for axis, by in zip(axes, ("r", "c_r2"), strict=True):
            for number, (c, part) in enumerate(rows.groupby("c", sort=False)):
                axis.plot(part[by], part["share"], label=f"c = {c:g}", **_line(number))
            label = f"published: r = {published['r']:g}, c = {published['c']:g}"
            axis.plot(published[by], published["share"], "k*", markersize=9, label=label, zorder=3)
            axis.set_ylim(0, 102)
        axes[0].set(xlabel="clip radius r (length of e)", ylabel="norm of the point (% of radius)")
        axes[1].set(xlabel="c · r² (no unit, log scale)", xscale="log", xlim=(1e-2, 1e2))
        axes[0].set_xlim(0, rows["r"].max())
        axes[0].legend(loc="lower right")
        plt.close(figure)
    return figure


def gradient(small: pd.DataFrame, done: pd.DataFrame, marks: Mapping[str, float]) -> Figure:
    """What is learnt from a batch of which all outputs have one length: along the output, sideways, and in all.

    Args:
        small: of :func:`lib.papers.hyp_vit.loss.tables.gradient`, for the first two panels.
        done: the same of a batch that is sorted already, for the third.
        marks: names of lengths that a vertical line marks.
    """
    panels = [
        (small, "along", "small batch: along the output"),
        (small, "sideways", "small batch: sideways"),
        (done, "log10_total", "sorted batch"),
    ]
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.3))
        for axis, (rows, part, title) in zip(axes, panels, strict=True):
            for number, kind in enumerate(tables.KINDS):
                line = rows[rows["kind"] == kind]
                height = 10 ** line[part] if part == "log10_total" else line[part]
                axis.plot(line["norm"], height, label=kind, **_line(number), linewidth=2.4 if number == 0 else 1.3)
            for number, (name, norm) in enumerate(marks.items()):
                axis.axvline(norm, color=("0.4", "0.75")[number], linewidth=1, label=name, zorder=1)
            axis.set(title=title, xscale="log", xlabel="length |e| (log scale)")
            axis.set_xticks([0.1, 0.5, 2, 5, 20], labels=["0.1", "0.5", "2", "5", "20"])
            axis.minorticks_off()
            axis.grid(False, axis="x")
            axis.set_ylim(bottom=-0.04 * axis.get_ylim()[1])
        axes[2].set(yscale="log", ylim=(1e-8, 20), ylabel="norm of the whole gradient (log)")
        axes[0].set_ylabel("gradient in e, root mean square")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _line(number: int) -> dict[str, object]:
    """The look of the ``number``-th line: its colour and its dashes."""
    return {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}


def explorer(z: Tensor, labels: Tensor, c: float, clip_radius: float, rows: pd.DataFrame) -> Figure:
    """The board's picture: the batch in the ball, and the softmax of the anchor.

    z: (n, 2) points, c ≥ 0. rows: of :func:`lib.papers.hyp_vit.loss.tables.shares` for the anchor.
    """
    with style.house():
        figure = Figure(figsize=(7.6, 4.0), layout="none")
        left, right = figure.add_axes((0.075, 0.12, 0.44, 0.80)), figure.add_axes((0.60, 0.12, 0.385, 0.80))
        disk(left, z, labels, c, clip_radius, anchor=tables.ANCHOR)
        share = tables.reach([c], [clip_radius])["share"].item()
        reach = f"reach {share:.1f} % of the radius" if c else "flat, no rim"
        left.set_title(f"c·r² = {c * clip_radius**2:.3f}: {reach}")
        colours = [style.PALETTE[tables.CLASSES.index(name[0])] for name in rows["image"]]
        hatches = ["////" if positive else "" for positive in rows["positive"]]
        right.bar(range(len(rows)), rows["share"], color=colours, hatch=hatches, edgecolor="black", linewidth=0.8)
        right.set_xticks(range(len(rows)), labels=rows["image"])
        right.set(ylim=(0, 100), xlabel="other image k (hatched: the positive)", ylabel="share of the softmax (%)")
        right.set_title(f"softmax of anchor {tables.names(labels)[tables.ANCHOR]}")
        right.grid(False, axis="x")
    return figure


def disk(axis: plt.Axes, z: Tensor, labels: Tensor, c: float, clip_radius: float, anchor: int | None = None) -> None:
    """Named points ``z: (n, 2)`` of the ball of curvature −c, the rim, and how far out clipping lets them."""
    radius = c**-0.5 if c else np.inf
    limit = 1.12 * min(radius, WIDEST)
    _frame(axis, limit, "z")
    if c:
        axis.add_patch(Circle((0, 0), radius, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
    out = radius * tables.reach([c], [clip_radius])["share"].item() / 100 if c else clip_radius
    axis.add_patch(Circle((0, 0), out, fill=False, linestyle="--", color=style.PALETTE[3], linewidth=1.2))
    if anchor is not None:
        axis.plot(*z[anchor].tolist(), "o", markersize=10.5, markerfacecolor="none", markeredgecolor="black")
    _points(axis, z, labels)


def _points(axis: plt.Axes, points: Tensor, labels: Tensor) -> None:
    """Points (n, 2), a colour and a marker for each class, and their names on the side away from the next point."""
    apart = torch.cdist(points, points).fill_diagonal_(torch.inf)
    away = torch.nn.functional.normalize(points - points[apart.argmin(dim=-1)], dim=-1)
    for name, label, point, side in zip(tables.names(labels), labels.tolist(), points, away, strict=True):
        axis.plot(*point.tolist(), style.MARKERS[label], color=style.PALETTE[label], markersize=6, **EDGE)
        look = {"fontsize": 7, "ha": "center", "va": "center"}
        axis.annotate(name, point.tolist(), (12 * side).tolist(), textcoords="offset points", **look)


def _frame(axis: plt.Axes, limit: float, name: str) -> None:
    axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axis.set_xlabel(f"${name}_1$ (coordinate)")
    axis.set_ylabel(f"${name}_2$ (coordinate)", labelpad=0)
    axis.locator_params(nbins=5)
    axis.grid(False)
