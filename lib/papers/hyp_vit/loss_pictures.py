"""The loss in pictures and under sliders: the small batch in the disk, the softmax of an anchor, the gradient."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from lib.figures import style
from lib.geometry import PoincareBall, clip
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.papers.hyp_vit import loss as numbers
from lib.widgets.board import Board
from lib.widgets.slider import Slider

EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5}
WIDEST = 6.5
"""Half the width of a picture of the flat plane, and the most that a ball of little curvature gets."""


def method(e: Tensor, labels: Tensor, c: float, clip_radius: float, share: Tensor) -> Figure:
    """From the head's output to the loss, in three panels: clipped, in the ball, the softmax of every anchor.

    Args:
        e: (n, 2) outputs, n at most 12; two of each class.
        labels: (n,) classes.
        c, clip_radius: c > 0.
        share: (n, n) of :func:`lib.papers.hyp_vit.loss.softmax`.
    """
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 2.9), width_ratios=(1, 1, 1.12))
        limit = 1.4 * e.abs().max().item()
        _frame(axes[0], limit, "e")
        axes[0].add_patch(Circle((0, 0), clip_radius, fill=False, linestyle="--", color=style.PALETTE[3]))
        for row, end in zip(e.tolist(), clip(e, clip_radius).tolist(), strict=True):
            axes[0].plot(*zip(row, end, strict=True), "-", color="0.5", linewidth=1)
        _points(axes[0], e, labels)
        axes[0].set_title(f"head's output e, clipped to r = {clip_radius:g}")
        disk(axes[1], numbers.place(e, c, clip_radius), labels, c, clip_radius)
        axes[1].set_title(f"exp$_0$: the ball, c = {c:g}")
        _heat(axes[2], share, numbers.names(labels))
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


def gradient(small: pd.DataFrame, done: pd.DataFrame, marks: Mapping[str, float]) -> Figure:
    """What is learnt from a batch of which all outputs have one length: along the output, sideways, and in all.

    Args:
        small: of :func:`lib.papers.hyp_vit.loss.gradient`, for the first two panels.
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
            for number, kind in enumerate(numbers.KINDS):
                line = rows[rows["kind"] == kind]
                height = 10 ** line[part] if part == "log10_total" else line[part]
                look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
                axis.plot(line["norm"], height, label=kind, **look, linewidth=2.4 if number == 0 else 1.3)
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


def explorer(c: float, temperature: float, clip_radius: float) -> Figure:
    """The board's picture: the small batch in the ball, and the softmax of the anchor; c ≥ 0."""
    e, labels = numbers.small_batch()
    z, rows = numbers.place(e, c, clip_radius), numbers.softmax_of_anchor(e, labels, c, clip_radius, temperature)
    with style.house():
        figure = Figure(figsize=(7.6, 4.0), layout="none")
        left, right = figure.add_axes((0.075, 0.12, 0.44, 0.80)), figure.add_axes((0.60, 0.12, 0.385, 0.80))
        disk(left, z, labels, c, clip_radius, anchor=numbers.ANCHOR)
        reach = f"reach {numbers.reach(c, clip_radius):.1f} % of the radius" if c else "flat, no rim"
        left.set_title(f"c·r² = {c * clip_radius**2:.3f}: {reach}")
        colours = [style.PALETTE[numbers.CLASSES.index(name[0])] for name in rows["image"]]
        hatches = ["////" if positive else "" for positive in rows["positive"]]
        right.bar(range(len(rows)), rows["share"], color=colours, hatch=hatches, edgecolor="black", linewidth=0.8)
        right.set_xticks(range(len(rows)), labels=rows["image"])
        right.set(ylim=(0, 100), xlabel="other image k (hatched: the positive)", ylabel="share of the softmax (%)")
        right.set_title(f"softmax of anchor {numbers.names(labels)[numbers.ANCHOR]}")
        right.grid(False, axis="x")
    return figure


def disk(axis: plt.Axes, z: Tensor, labels: Tensor, c: float, clip_radius: float, anchor: int | None = None) -> None:
    """Named points ``z: (n, 2)`` of the ball of curvature −c, the rim, and how far out clipping lets them."""
    radius = c**-0.5 if c else np.inf
    limit = 1.12 * min(radius, WIDEST)
    _frame(axis, limit, "z")
    if c:
        axis.add_patch(Circle((0, 0), radius, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
    out = radius * numbers.reach(c, clip_radius) / 100 if c else clip_radius
    axis.add_patch(Circle((0, 0), out, fill=False, linestyle="--", color=style.PALETTE[3], linewidth=1.2))
    if anchor is not None:
        axis.plot(*z[anchor].tolist(), "o", markersize=10.5, markerfacecolor="none", markeredgecolor="black")
    _points(axis, z, labels)


def _points(axis: plt.Axes, points: Tensor, labels: Tensor) -> None:
    """Points (n, 2), a colour and a marker for each class, and their names on the side away from the next point."""
    apart = torch.cdist(points, points).fill_diagonal_(torch.inf)
    away = torch.nn.functional.normalize(points - points[apart.argmin(dim=-1)], dim=-1)
    for name, label, point, side in zip(numbers.names(labels), labels.tolist(), points, away, strict=True):
        axis.plot(*point.tolist(), style.MARKERS[label], color=style.PALETTE[label], markersize=6, **EDGE)
        look = {"fontsize": 7, "ha": "center", "va": "center"}
        axis.annotate(name, point.tolist(), (12 * side).tolist(), textcoords="offset points", **look)


def _frame(axis: plt.Axes, limit: float, name: str) -> None:
    axis.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal")
    axis.set_xlabel(f"${name}_1$ (coordinate)")
    axis.set_ylabel(f"${name}_2$ (coordinate)", labelpad=0)
    axis.locator_params(nbins=5)
    axis.grid(False)


def describe(c: float, temperature: float, clip_radius: float) -> str:
    """The board's readout."""
    e, labels = numbers.small_batch()
    rows = numbers.overview(e, labels, c, clip_radius, temperature)
    seen = numbers.softmax_of_anchor(e, labels, c, clip_radius, temperature)
    positive = seen[seen["positive"]].iloc[0]
    z = numbers.place(e.requires_grad_(), c, clip_radius)
    loss = PairwiseCrossEntropy(PoincareBall(c), temperature)(z, labels)
    (slope,) = torch.autograd.grad(loss, e)
    lines = [
        f"curvature -{c:.2f}, radius {c**-0.5:.3f}" if c else "curvature 0: the flat plane, no rim",
        f"clipped to r = {clip_radius:.1f}   {(rows['length'] > clip_radius).sum():3d} of {len(rows)} outputs",
        f"farthest possible  {4 * clip_radius:9.2f}  (4r)",
        f"largest norm       {rows['norm'].max():9.2f} % of the radius",
        "",
        f"anchor {numbers.names(labels)[numbers.ANCHOR]}, positive {positive['image']}",
        f"  distance         {positive['apart']:9.4f}",
        f"  share of softmax {positive['share']:9.2f} %",
        "",
        f"loss of the batch  {loss:9.4f}",
        f"gradient norm      {slope.norm():9.4f}",
    ]
    return "\n".join(lines)


def explore() -> Board:
    """The board, with sliders ``c``, ``temperature`` and ``clip_radius``; it starts at the published values."""
    sliders = {
        "c": Slider("curvature c", np.linspace(0, 2, 41).round(2).tolist(), start=0.1),
        "temperature": Slider("temperature", np.linspace(0.05, 1, 20).round(2).tolist(), start=0.2),
        "clip_radius": Slider("clip radius r", np.linspace(0.5, 6, 56).round(1).tolist(), start=2.3),
    }
    return Board(sliders, explorer, describe, height=400)
