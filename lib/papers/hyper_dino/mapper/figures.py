"""The contrastive loss of Hyper-DINO: which pairs it still moves, and how it falls."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from lib.figures import style

MARKERS = (*style.MARKERS, "X", "p")
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
        figure = Figure(figsize=(7.6, 4.0), layout="none")
        disk = figure.add_axes((0.085, 0.12, 0.44, 0.836))
        _disk(disk, points, labels, classes, np.stack([points[first[active]], points[second[active]]], axis=1))
        _histogram(figure.add_axes((0.60, 0.12, 0.385, 0.63)), apart, same, margin)
        figure.legend(*disk.get_legend_handles_labels(), loc=(0.59, 0.79), ncols=3, columnspacing=1, handletextpad=0.3)
        for axis in figure.axes:
            axis.locator_params(nbins=5)
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
    """Training loss over iterations (Hyper-DINO's Fig. 2): a line per head, the mean of the folds in its band.

    Args:
        rows: columns head, fold, epoch, iteration, loss. The band goes from the lowest to the highest fold. Folds are
            averaged by epoch, which may take them a different number of iterations; it is drawn at their mean.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(0.8 * style.WIDTH, 3.2))
        for number, (head, part) in enumerate(rows.groupby("head", sort=False)):
            folds = part.groupby("epoch")["loss"].agg(["mean", "min", "max"])
            folds.index = part.groupby("epoch")["iteration"].mean()
            colour = style.PALETTE[number]
            axis.fill_between(folds.index, folds["min"], folds["max"], color=colour, alpha=0.2, linewidth=0)
            axis.plot(folds.index, folds["mean"], color=colour, dashes=style.DASHES[number] or (None, None), label=head)
        axis.set_yscale("log")
        axis.set_xlim(left=0)
        axis.set_xlabel("training iterations (batches)")
        axis.set_ylabel("mean loss of an epoch (log scale)")
        axis.legend(loc="upper right")
        plt.close(figure)
    return figure
