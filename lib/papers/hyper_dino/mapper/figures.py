"""The contrastive loss of Hyper-DINO: which pairs it still moves, how it falls, and where embeddings begin and end."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from numpy.typing import ArrayLike

from lib.figures import style
from lib.geometry import PoincareBall
from lib.training.methods import RIM

MARKERS = (*style.MARKERS, "X", "p")
NORMS = (0.3, 0.7, 0.9, 0.99)  # ticks, as shares of the ball's radius
DISKS = (0.25, 0.5, 1.0)  # half widths of the disk's picture: the smallest that holds all points
RANGES = (1, 2, 4, 8, 16)  # ends of the distance axis, likewise


def pairs(
    points: np.ndarray, labels: np.ndarray, classes: Sequence[str], distance: np.ndarray, margin: float
) -> Figure:
    """The embedding in the disk with the pairs that are still pushed, and the distances of all pairs.

    Args:
        points: (n, 2) in the unit disk.
        labels: (n,) integers that index ``classes``.
        classes: at most 8 names.
        distance: (n, n) between the points.
        margin: a pair of two classes that is nearer than this is pushed; it is drawn as a thin line.
    """
    first, second = np.triu_indices(len(points), k=1)
    same = labels[first] == labels[second]
    apart = distance[first, second]
    active = ~same & (apart < margin)
    with style.house():
        figure = plt.figure(figsize=(7.6, 4.0), layout="none")  # of pyplot: a notebook can show it
        disk = figure.add_axes((0.085, 0.12, 0.44, 0.836))
        _disk(disk, points, labels, classes, np.stack([points[first[active]], points[second[active]]], axis=1))
        _histogram(figure.add_axes((0.60, 0.12, 0.385, 0.63)), apart, same, margin)
        figure.legend(*disk.get_legend_handles_labels(), loc=(0.59, 0.79), ncols=3, columnspacing=1, handletextpad=0.3)
        for axis in figure.axes:
            axis.locator_params(nbins=5)
        plt.close(figure)
    return figure


def _disk(axis: plt.Axes, points: np.ndarray, labels: np.ndarray, classes: Sequence[str], lines: np.ndarray) -> None:
    axis.add_patch(Circle((0, 0), 1, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
    axis.add_collection(LineCollection(lines, color="0.35", linewidth=0.4, alpha=0.6, zorder=1))
    axis.plot([], [], "-", color="0.35", linewidth=1, label="still pushed")
    for code, name in enumerate(classes):
        x, y = points[labels == code].T
        look = {"color": style.PALETTE[code], "markeredgecolor": "black", "markeredgewidth": 0.5}
        axis.plot(x, y, MARKERS[code], **look, label=style.legible(name))
    limit = next((edge for edge in DISKS if np.linalg.norm(points, axis=1).max() < edge), 1.0)
    axis.set_xlim(-1.03 * limit, 1.03 * limit)
    axis.set_ylim(-1.03 * limit, 1.03 * limit)
    axis.set_aspect("equal")
    axis.set_xlabel("$h_1$ (coordinate)")
    axis.set_ylabel("$h_2$ (coordinate)", labelpad=-2)
    axis.grid(False)


def _histogram(axis: plt.Axes, apart: np.ndarray, same: np.ndarray, margin: float) -> None:
    end = next((edge for edge in RANGES if max(apart.max(), margin) <= edge), max(apart.max(), margin))
    bins = np.linspace(0, end, 41)
    for chosen, label, colour, hatch in ((same, "one class", 0, ""), (~same, "two classes", 1, "////")):
        share = np.full(chosen.sum(), 100 / chosen.sum())
        axis.hist(
            apart[chosen],
            bins,
            weights=share,
            histtype="stepfilled",
            facecolor=(*style.PALETTE[colour], 0.45),
            edgecolor=style.PALETTE[colour],
            hatch=hatch,
            label=label,
        )
    axis.axvline(margin, color="black", linestyle="--", linewidth=1.4, label="margin m")
    axis.set_xlim(0, end)
    axis.set_xlabel("hyperbolic distance of a pair")
    axis.set_ylabel("pairs (%)")
    axis.legend(loc="upper right", frameon=True, framealpha=0.9)


def loss_curves(rows: pd.DataFrame) -> Figure:
    """Training loss over iterations (Hyper-DINO's Fig. 2): a panel per start, a line per head, its seeds in its band.

    Args:
        rows: columns start, head, seed, iteration, loss. The band goes from the lowest to the highest seed.
    """
    begins = rows["start"].unique()
    with style.house():
        figure, axes = plt.subplots(1, len(begins), figsize=(style.WIDTH, 2.9), sharey=True, squeeze=False)
        for axis, begin in zip(axes[0], begins, strict=True):
            for number, (head, part) in enumerate(rows[rows["start"] == begin].groupby("head", sort=False)):
                seeds = part.groupby("iteration")["loss"].agg(["mean", "min", "max"])
                look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
                axis.fill_between(seeds.index, seeds["min"], seeds["max"], color=look["color"], alpha=0.2, linewidth=0)
                axis.plot(seeds.index, seeds["mean"], label=head, **look)
            axis.set(title=begin, yscale="log", xlabel="training iterations (batches)")
            axis.set_xlim(left=0)
        axes[0][0].set_ylabel("mean loss of an epoch (log scale)")
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def starts(rows: pd.DataFrame, geometry: PoincareBall, delta: float, resting: float) -> Figure:
    """Norms of the training images of every head before and after training, a panel per start.

    Args:
        rows: columns start, method, and before and after, each alone and with _low and _high.
        geometry: the ball; the axis is spaced by the distance from its centre.
        delta: points are kept within 1 - delta of the ball's radius.
        resting: a norm to mark.
    """
    begins, methods = rows["start"].unique(), rows["method"].unique()
    radius = geometry.c**-0.5
    ticks = [share * radius for share in NORMS if share < 1 - delta] + [(1 - delta) * radius]

    def place(norm: ArrayLike) -> np.ndarray:
        return geometry.between(torch.zeros(1), torch.tensor(np.reshape(norm, (-1, 1)))).numpy()

    with style.house():
        size = (style.WIDTH, 1.3 + 0.3 * len(methods))
        figure, axes = plt.subplots(1, len(begins), figsize=size, sharex=True, sharey=True, squeeze=False)
        for axis, begin in zip(axes[0], begins, strict=True):
            part = rows[rows["start"] == begin].set_index("method").loc[methods]
            for number, (when, fill) in enumerate({"before": "white", "after": style.PALETTE[0]}.items()):
                heights = np.arange(len(methods)) + 0.36 * number - 0.18
                look = {"color": style.PALETTE[0], "linewidth": 1.4}
                axis.hlines(heights, place(part[f"{when}_low"]), place(part[f"{when}_high"]), **look)
                look = {"color": style.PALETTE[0], "markerfacecolor": fill, "markersize": 5}
                axis.plot(place(part[when]), heights, MARKERS[number], label=f"{when} training", **look)
            axis.axvspan(*place([RIM * (1 - delta) * radius, (1 - delta) * radius]), color="0.85", label="rim")
            axis.axvline(place(resting)[0], color="black", linestyle="--", linewidth=1, label="classes at rest")
            axis.set_xticks(place(ticks), labels=[f"{tick:.3g}" for tick in ticks])
            axis.set(title=begin, xlabel="norm of the embedding")
        axes[0][0].set_yticks(range(len(methods)), labels=methods)
        axes[0][0].invert_yaxis()
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure
