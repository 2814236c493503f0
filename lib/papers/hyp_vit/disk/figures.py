"""Embeddings on the disk."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Circle

from lib.figures import style

FULL = {"linestyle": "none", "markeredgecolor": "black", "markeredgewidth": 0.4}
HOLLOW = {"linestyle": "none", "markerfacecolor": "white", "markeredgewidth": 0.9}  # thinner, it had no colour
LOOKS = (
    FULL | {"marker": "o", "markerfacecolor": style.PALETTE[0]},
    HOLLOW | {"marker": "s", "markeredgecolor": style.PALETTE[1]},
    FULL | {"marker": "^", "markerfacecolor": style.PALETTE[2]},
    HOLLOW | {"marker": "x", "markeredgecolor": style.PALETTE[3]},
    HOLLOW | {"marker": "v", "markeredgecolor": style.PALETTE[4]},
    FULL | {"marker": "D", "markerfacecolor": style.PALETTE[8]},
    HOLLOW | {"marker": "+", "markeredgecolor": "black"},
    FULL | {"marker": "*", "markerfacecolor": style.PALETTE[6]},
)
"""The marks of kinds, told apart in grey as well: by shape, and by being full, hollow or a cross."""
SHOWN = len(LOOKS)
"""Kinds that have a mark of their own; the others are grey dots."""
DENSE = 300
"""Points of a kind beyond which they are drawn smaller, and as pixels in a vector graphic."""
TITLE, LINE = 0.35, 0.14  # inches: a title with the space around it, and a line of a legend


def disks(rows: pd.DataFrame, circles: Mapping[str, float] | None = None) -> Figure:
    """A unit disk per picture.

    Args:
        rows: columns picture, x, y (in the unit disk), kind; the :data:`SHOWN` largest kinds of a picture are marked,
            the same in all pictures where these have no more kinds together.
        circles: of each picture, the radius of a dashed circle around the centre.
    """
    names = list(dict.fromkeys(rows["picture"]))
    everywhere = largest(rows["kind"]) if rows["kind"].nunique() <= SHOWN else ()
    marked = {name: everywhere or largest(part["kind"]) for name, part in rows.groupby("picture")}
    alike = len(set(marked.values())) == 1
    legend = 4 if alike else 2 if len(names) < 3 else 1  # columns: a legend no wider than what it stands below
    height = style.WIDTH / len(names) + TITLE + LINE * -(-SHOWN // legend)
    with style.house():
        figure, axes = plt.subplots(1, len(names), figsize=(style.WIDTH, height), squeeze=False)
        for axis, name in zip(axes[0], names, strict=True):
            _rim(axis, (circles or {}).get(name))
            part = rows[rows["picture"] == name]
            handles = _points(axis, part["x"], part["y"], part["kind"], marked[name], size=4.0, crowded=0.7)
            axis.set_title(name)
            axis.set_anchor("N")  # what room there is to spare is below, where the legend hangs
            if not alike:
                place = {"loc": "upper center", "bbox_to_anchor": (0.5, 0.0)}
                axis.legend(handles=handles, ncols=legend, fontsize=6, handletextpad=0.1, **place)
        if alike:
            figure.legend(handles=handles, loc="outside lower center", ncols=legend, fontsize=6)
        plt.close(figure)
    return figure


def largest(kinds: pd.Series) -> tuple[str, ...]:
    """The :data:`SHOWN` kinds with most images, of equal ones the first by name; in the order of their names."""
    return tuple(sorted(kinds.value_counts().sort_index().nlargest(SHOWN, keep="first").index))


def _points(
    axis: plt.Axes, x: pd.Series, y: pd.Series, kinds: pd.Series, marked: Sequence[str], size: float, crowded: float = 1
) -> list[Line2D]:
    """Draw points, small kinds above large ones and what has no mark below all; returns what a legend shows.

    size: of a mark, in points; crowded: what it is multiplied by where a kind has more than :data:`DENSE` points.
    """
    others = ~kinds.isin(marked)
    axis.plot(x[others], y[others], ".", color="0.7", markersize=size / 2, rasterized=True)
    handles = []
    for number, kind in enumerate(marked):
        here, label = kinds == kind, _short(style.legible(kind.rpartition("/")[2].replace("_", " ")))
        dense = bool(here.sum() > DENSE)
        axis.plot(
            x[here],
            y[here],
            **LOOKS[number],
            markersize=size * (crowded if dense else 1),
            rasterized=dense,
            zorder=3 - here.mean(),
        )
        handles.append(Line2D([], [], **LOOKS[number], markersize=4.5, label=label))
    return handles


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
