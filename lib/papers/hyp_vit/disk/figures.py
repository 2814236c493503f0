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
TILE = 20
"""Pixels of an image in the grid: enough to see what lies beside what, and the file stays small."""
WIDE = 4.0  # inches: the side of the grid
TITLE, LINE = 0.35, 0.14  # inches: a title with the space around it, and a line of a legend


def disks(rows: pd.DataFrame, circles: Mapping[str, float] | None = None) -> Figure:
    """A unit disk per picture.

    Args:
        rows: columns picture, x, y (in the unit disk), category; the :data:`SHOWN` largest categories of a picture are
            marked.
        circles: of each picture, the radius of a dashed circle around the centre.
    """
    names = list(dict.fromkeys(rows["picture"]))
    marked = {name: _largest(part["category"]) for name, part in rows.groupby("picture")}
    alike = len(set(marked.values())) == 1
    legend = 4 if alike else 2 if len(names) < 3 else 1  # columns: a legend no wider than what it stands below
    height = style.WIDTH / len(names) + TITLE + LINE * -(-SHOWN // legend)
    with style.house():
        figure, axes = plt.subplots(1, len(names), figsize=(style.WIDTH, height), squeeze=False)
        for axis, name in zip(axes[0], names, strict=True):
            _disk(axis, rows[rows["picture"] == name], marked[name], (circles or {}).get(name))
            axis.set_title(name)
            axis.set_anchor("N")  # what room there is to spare is below, where the legend hangs
            if not alike:
                axis.legend(loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=legend, fontsize=6, handletextpad=0.1)
        if alike:
            figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=legend, fontsize=6)
        plt.close(figure)
    return figure


def _largest(categories: pd.Series) -> tuple[str, ...]:
    """The :data:`SHOWN` categories with most images, of equal ones the first by name; in the order of their names."""
    return tuple(sorted(categories.value_counts().sort_index().nlargest(SHOWN, keep="first").index))


def _disk(axis: plt.Axes, part: pd.DataFrame, marked: Sequence[str], circle: float | None) -> None:
    _rim(axis, circle)
    others = part[~part["category"].isin(marked)]
    axis.plot(others["x"], others["y"], ".", color="0.7", markersize=2, rasterized=True)
    for number, category in enumerate(marked):
        points = part[part["category"] == category]
        look = {"color": style.PALETTE[number], "markeredgecolor": "black", "markeredgewidth": 0.3}
        label = _short(style.legible(category.rpartition("/")[2].replace("_", " ")))
        axis.plot(points["x"], points["y"], MARKERS[number], markersize=3.5, label=label, **look)


def _short(name: str, most: int = 24) -> str:
    """A name that leaves the disks their room.

    >>> _short("Black throated Blue Warbler of the East")
    'Black throated Blue War…'
    """
    return name if len(name) <= most else f"{name[: most - 1]}…"


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
        figure, axis = plt.subplots(figsize=(WIDE, WIDE * height / width))
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
