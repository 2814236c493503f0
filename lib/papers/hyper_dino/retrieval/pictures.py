"""Pictures that explain: the whole method, two ways to draw folds, AP@k on one list of answers."""

from collections.abc import Callable, Mapping, Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, Polygon, Rectangle
from PIL import Image

from lib.figures import style

# What a step of the method learns from; frames tell it in grey print.
LOOKS = {
    "nothing of yours": {"facecolor": "white", "edgecolor": "0.35", "linestyle": "--", "linewidth": 1.0},
    "training images": {"facecolor": "0.9", "edgecolor": "0.2", "linestyle": "-", "linewidth": 1.0},
    "training images and their classes": {"facecolor": "0.72", "edgecolor": "black", "linewidth": 2.0},
}
FRAME = {"facecolor": "white", "edgecolor": "0.35", "linewidth": 1.0}
BLANK = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
HIT, MISS = "✓", "×"
PIXELS = 48


def method(steps: pd.DataFrame) -> Figure:
    """The way of an image to the list of answers, step by step from left to right.

    steps: rows in their order, columns glyph (one of :data:`GLYPHS`), step (what it is), numbers (what comes out) and
    learns_from (one of :data:`LOOKS`).
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 2.3))
        axis.set(xlim=(-0.5, len(steps) - 0.5), ylim=(-0.85, 0.75), aspect="equal")
        axis.set_axis_off()
        for place, row in enumerate(steps.itertuples()):
            GLYPHS[row.glyph](axis, place, LOOKS[row.learns_from])
            axis.text(place, 0.42, row.step, ha="center", va="bottom", fontsize=7.5)
            axis.text(place, -0.42, row.numbers, ha="center", va="top", fontsize=7, color="0.25")
            if place:
                _arrow(axis, (place - 0.65, 0), (place - 0.35, 0))
        handles = [Rectangle((0, 0), 1, 1, **look) for look in LOOKS.values()]
        labels = [f"learns from {name}" for name in LOOKS]
        figure.legend(handles, labels, loc="outside lower center", ncols=len(LOOKS))
        plt.close(figure)
    return figure


def _arrow(axis: plt.Axes, start: tuple, end: tuple) -> None:
    axis.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=8, color="0.2", shrinkA=0, shrinkB=0))


def _images(axis: plt.Axes, x: float, look: Mapping) -> None:
    for shift in (0.07, 0.0, -0.07):
        axis.add_patch(Rectangle((x - 0.2 + shift, -0.2 + shift), 0.4, 0.4, **FRAME))


def _funnel(axis: plt.Axes, x: float, look: Mapping) -> None:
    axis.add_patch(Polygon([(x - 0.28, -0.34), (x - 0.28, 0.34), (x + 0.28, 0.16), (x + 0.28, -0.16)], **look))


def _axes(axis: plt.Axes, x: float, look: Mapping) -> None:
    axis.add_patch(Rectangle((x - 0.28, -0.28), 0.56, 0.56, **look))
    for right, up in ((0.2, 0.12), (-0.07, 0.12)):
        _arrow(axis, (x - right, -up), (x + right, up))


def _ball(axis: plt.Axes, x: float, look: Mapping) -> None:
    axis.add_patch(Circle((x, 0), 0.32, **look))
    for right, up, marker in ((0.17, 0.1, "o"), (-0.16, 0.12, "s"), (0.0, -0.2, "^")):
        axis.plot([x + right, x + 0.75 * right], [up, up + 0.06], marker, color="black", markersize=3)


def _list(axis: plt.Axes, x: float, look: Mapping) -> None:
    for rank in range(4):
        axis.add_patch(Rectangle((x - 0.08, 0.16 - 0.16 * rank), 0.3, 0.12, **FRAME))
        axis.text(x - 0.14, 0.22 - 0.16 * rank, str(rank + 1), ha="right", va="center", fontsize=6)


GLYPHS: dict[str, Callable[[plt.Axes, float, Mapping], None]] = {
    "images": _images,
    "network": _funnel,
    "axes": _axes,
    "ball": _ball,
    "list": _list,
}


def folds(rows: pd.DataFrame, pictures: Mapping[int, Image.Image], group_kind: str) -> Figure:
    """Some images of some groups, a row each, and the fold that each image asks in; a panel per rule.

    Args:
        rows: columns rule, group, place (in the row), image and fold (number).
        pictures: image → its picture; where there is none its place stays grey.
        group_kind: what a group is.
    """
    rules, groups = rows["rule"].unique(), rows["group"].unique()
    with style.house():
        height = 0.6 + 0.9 * style.WIDTH / len(rules) / (rows["place"].max() + 1) * len(groups)
        figure, axes = plt.subplots(1, len(rules), figsize=(style.WIDTH, height), sharey=True, squeeze=False)
        for axis, rule in zip(axes[0], rules, strict=True):
            for row in rows[rows["rule"] == rule].itertuples():
                _tile(axis, pictures.get(row.image), row.place, list(groups).index(row.group), row.fold)
            axis.set(xlim=(-0.5, rows["place"].max() + 0.5), ylim=(len(groups) - 0.5, -0.5), title=f"folds {rule}")
            axis.set_xticks([])
            axis.set_yticks(range(len(groups)), [style.legible(group) for group in groups])
            axis.grid(False)
            axis.spines[:].set_visible(False)
        axes[0][0].set_ylabel(group_kind)
        figure.supxlabel("number and frame: the fold in which the image is a query", fontsize=8)
        plt.close(figure)
    return figure


def _tile(axis: plt.Axes, picture: Image.Image | None, x: int, y: int, fold: int) -> None:
    """One image at place (x, y), framed in the colour of its fold."""
    look = {"edgecolor": style.PALETTE[fold % len(style.PALETTE)], "linewidth": 2.5}
    if picture is not None:
        axis.imshow(_small(picture), extent=(x - 0.44, x + 0.44, y + 0.44, y - 0.44), interpolation="none")
    axis.add_patch(Rectangle((x - 0.44, y - 0.44), 0.88, 0.88, facecolor="none" if picture else "0.91", **look))
    axis.text(x, y, str(fold + 1), ha="center", va="center", fontsize=7, fontweight="bold", bbox=BLANK)


def _small(picture: Image.Image) -> Image.Image:
    small = picture.copy()
    small.thumbnail((PIXELS, PIXELS))
    return small


def precisions(rows: pd.DataFrame, pictures: Sequence[Image.Image | None], values: Mapping[str, float]) -> Figure:
    """One list of answers, the precision at each rank, and AP@k under every denominator.

    Args:
        rows: by rank: rank, label, right (bool), precision (of the ranks so far).
        pictures: of the query, then of every answer; None leaves the place grey.
        values: what AP@k is divided by → AP@k.
    """
    with style.house():
        shape = {"figsize": (style.WIDTH, 3.8), "height_ratios": (1, 1.6), "sharex": True}
        figure, (top, below) = plt.subplots(2, 1, **shape)
        for place, picture in enumerate(pictures):
            _answer(top, picture, place, rows["label"].iloc[place - 1] if place else "query")
        for row in rows.itertuples():
            look = {"color": style.PALETTE[0] if row.right else style.PALETTE[3], "fontweight": "bold"}
            top.text(row.rank, -0.66, HIT if row.right else MISS, ha="center", va="center", **look)
        top.set_xlim(-0.6, len(rows) + 0.6)
        top.update_datalim([(0, -0.85), (0, 0.85)])
        top.set_aspect("equal", adjustable="datalim")
        top.autoscale(axis="y")
        top.set_axis_off()
        _precision(below, rows)
        text = "\n".join(f"AP@{len(rows)} = sum of bars ÷ {name} = {value:.3f}" for name, value in values.items())
        below.set_xlabel(f"rank\n{text}", linespacing=1.5)
        plt.close(figure)
    return figure


def _answer(axis: plt.Axes, picture: Image.Image | None, x: int, label: str) -> None:
    if picture is None:
        axis.add_patch(Rectangle((x - 0.4, -0.4), 0.8, 0.8, facecolor="0.91"))
    else:
        axis.imshow(_small(picture), extent=(x - 0.4, x + 0.4, -0.4, 0.4), interpolation="none")
    name = style.legible(label.replace("_", " "), 12)
    axis.text(x, 0.5, name, ha="center", va="bottom", fontsize=6, linespacing=0.95)


def _precision(axis: plt.Axes, rows: pd.DataFrame) -> None:
    """Precision over the rank: bars where an answer is right, whose sum is what AP divides."""
    right = rows[rows["right"]]
    axis.plot(rows["rank"], rows["precision"], color="0.5", linewidth=1)
    axis.bar(right["rank"], right["precision"], width=0.5, color=style.PALETTE[0], alpha=0.6)
    for row in right.itertuples():
        axis.text(row.rank, row.precision + 0.03, f"{row.precision:.2f}", ha="center", va="bottom", fontsize=7)
    axis.set(ylim=(0, 1.25), ylabel="precision so far")
    axis.set_yticks([0, 0.5, 1])
    axis.set_xticks(rows["rank"])
