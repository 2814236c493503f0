"""Embeddings on the disk, a head of two numbers, and a grid of images."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from PIL import Image

from lib.figures import style

SHOWN = 8
"""Categories that have a colour and a mark of their own; the others are grey."""
MARKERS = (*style.MARKERS, "X", "p")
TILE = 32


def disks(rows: pd.DataFrame, circles: Mapping[str, float] | None = None) -> Figure:
    """A unit disk per picture.

    Args:
        rows: columns picture, x, y (in the unit disk), category; the :data:`SHOWN` largest categories of a picture are
            marked.
        circles: of each picture, the radius of a dashed circle around the centre.
    """
    names = list(dict.fromkeys(rows["picture"]))
    with style.house():
        figure, axes = plt.subplots(
            1, len(names), figsize=(style.WIDTH, 0.86 * style.WIDTH / len(names) + 0.9), squeeze=False
        )
        for axis, name in zip(axes[0], names, strict=True):
            part = rows[rows["picture"] == name]
            _rim(axis, (circles or {}).get(name))
            marked = part["category"].value_counts(sort=True).sort_index().nlargest(SHOWN, keep="first").index
            others = part[~part["category"].isin(marked)]
            axis.plot(others["x"], others["y"], ".", color="0.7", markersize=2, rasterized=True)
            for number, category in enumerate(sorted(marked)):
                points = part[part["category"] == category]
                look = {"color": style.PALETTE[number], "markeredgecolor": "black", "markeredgewidth": 0.3}
                label = style.legible(category.rpartition("/")[2].replace("_", " "))
                axis.plot(points["x"], points["y"], MARKERS[number], markersize=3.5, label=label, **look)
            axis.set_title(name)
            axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=2, fontsize=6, handletextpad=0.1)
        plt.close(figure)
    return figure


def _rim(axis: plt.Axes, circle: float | None) -> None:
    axis.add_patch(Circle((0, 0), 1, facecolor="0.97", edgecolor="black", linewidth=1.2, zorder=0))
    if circle:
        axis.add_patch(Circle((0, 0), circle, fill=False, edgecolor="black", linestyle="--", linewidth=0.8))
    axis.set_xlim(-1.04, 1.04)
    axis.set_ylim(-1.04, 1.04)
    axis.set_aspect("equal")
    axis.set_axis_off()


def grid(rows: np.ndarray, columns: np.ndarray, images: Sequence[Image.Image] | None, codes: np.ndarray) -> Figure:
    """Images in their places of a grid; without ``images`` a colour per category, in shades that repeat."""
    height, width = rows.max() + 1, columns.max() + 1
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, style.WIDTH * height / width))
        if images is None:
            sheet = np.full((height, width), np.nan)
            sheet[rows, columns] = codes % 20
            axis.imshow(sheet, cmap="cividis", interpolation="nearest")
        else:
            sheet = np.full((height * TILE, width * TILE, 3), 255, np.uint8)
            for row, column, image in zip(rows, columns, images, strict=True):
                place = np.s_[row * TILE : (row + 1) * TILE, column * TILE : (column + 1) * TILE]
                sheet[place] = np.asarray(image.convert("RGB").resize((TILE, TILE)))
            axis.imshow(sheet, interpolation="nearest")
        axis.set_axis_off()
        plt.close(figure)
    return figure
