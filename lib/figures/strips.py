"""A query and what the archive answered, image beside image (Hyper-DINO, Figs. 4 and 5)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from lib.errors import InputError
from lib.figures import style

# Inches: the gap between images, the room for the three lines above one, the room between two queries, and what the
# four lines of a long name above the first query need more.
GAP, TITLE, BETWEEN, TOP = 0.07, 0.31, 0.16, 0.14
LEGEND = 0.32
FLAT = 0.6  # height of a frame to its width where there is no picture in any
# To an inch: enough pixels for the page, and the file stays small; as many letters as fit.
PIXELS, LETTERS = {"query": 85, "answer": 127}, {"query": 19, "answer": 24}
RIGHT = {"edgecolor": style.PALETTE[0], "linestyle": "-", "linewidth": 1.2}
WRONG = {"edgecolor": style.PALETTE[3], "linestyle": (0, (2, 1)), "linewidth": 2.2}
CROSS, DOT, SAME = "×", "●", "identical"


@dataclass(frozen=True)
class Answer:
    """One reference image: its class, its distance to the query (None: not shown), and what is to be marked.

    ``right`` is None where nobody knows the query's class; the answer then has no frame. Without an image (photographs
    that may not be published) its place stays grey, and is lower if no other has one.
    """

    image: Image.Image | None
    label: str
    distance: float | None
    right: bool | None
    identical: bool = False
    own_group: bool = False


@dataclass(frozen=True)
class Strip:
    """A query with the title above it, and its answers, nearest first."""

    query: Image.Image | None
    title: str
    answers: Sequence[Answer]


def bare(shown: Sequence[Strip]) -> list[Strip]:
    """The same without pictures, for photographs that may not be published."""
    return [replace(row, query=None, answers=[replace(answer, image=None) for answer in row.answers]) for row in shown]


def strips(shown: Sequence[Strip], group_kind: str = "image", columns: int = 10) -> Figure:
    """Each query at the left, its answers in rows of ``columns`` at the right, distance and class above each.

    A right class has a thin solid frame; a wrong one a thick dashed frame and a cross, so that grey print tells them
    apart as well. The same picture as the query says so; a dot marks another image of the query's own group, which is
    a ``group_kind`` (``"image"``: there are no groups).

    Raises:
        InputError: if there is no strip, or a strip without answers.
    """
    if not shown or not all(strip.answers for strip in shown):
        raise InputError("nothing to draw: give at least one query, each with at least one answer")
    # The query is two answers and the line between them high; with that, the width decides the size of an answer.
    rows = [max(2, -(-len(strip.answers) // columns)) for strip in shown]
    side = (style.WIDTH - TITLE - (columns + 2) * GAP) / (columns + 2)
    pictures = any(image for strip in shown for image in (strip.query, *(answer.image for answer in strip.answers)))
    tall = side if pictures else FLAT * side
    step = tall + TITLE
    height = TOP + sum(rows) * step + len(rows) * BETWEEN + LEGEND
    with style.house():
        figure = plt.figure(figsize=(style.WIDTH, height))
        figure.set_layout_engine("none")  # every place is given here
        top = height - TOP
        for strip, n in zip(shown, rows, strict=True):
            big = 2 * side + TITLE
            box = (0.02, top - 2 * step, big, 2 * tall + TITLE)
            title = style.legible(strip.title, round(LETTERS["query"] * big))
            _image(figure, strip.query, PIXELS["query"], box, title, 6.5)
            for place, answer in enumerate(strip.answers):
                row, column = divmod(place, columns)
                left = big + 2 * GAP + column * (side + GAP)
                _answer(figure, answer, (left, top - (row + 1) * step, side, tall))
            top -= n * step + BETWEEN
        answers = [answer for strip in shown for answer in strip.answers]
        known = any(answer.right is not None for answer in answers)
        _legend(figure, group_kind, any(answer.identical for answer in answers), known)
        plt.close(figure)
    return figure


def _image(figure: Figure, image: Image.Image | None, pixels: int, box: tuple, title: str, size: float) -> plt.Axes:
    """``image`` in ``box`` (left, bottom, width, height in inches), its sides in proportion, under its title.

    pixels: to an inch of the box's width.
    """
    width, height = figure.get_size_inches()
    axis = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
    small = Image.new("RGB", (1, 1), "#e8e8e8") if image is None else image.copy()
    small.thumbnail((round(pixels * box[2]),) * 2)
    axis.imshow(small, interpolation="none", aspect="auto" if image is None else "equal")
    axis.set_title(title, fontsize=size, pad=2.5, linespacing=0.95)
    axis.set_axis_off()
    return axis


def _answer(figure: Figure, answer: Answer, box: tuple) -> None:
    distance = [] if answer.distance is None else [f"{answer.distance:.3f}"]
    title = "\n".join([*distance, _wrapped(answer.label, round(LETTERS["answer"] * box[2]))])
    axis = _image(figure, answer.image, PIXELS["answer"], box, title, 5.5)
    if answer.right is not None:
        frame = RIGHT if answer.right else WRONG
        axis.add_patch(Rectangle((0, 0), 1, 1, transform=axis.transAxes, fill=False, clip_on=False, zorder=4, **frame))
    if answer.right is False:
        _mark(axis, 0.93, 0.93, CROSS, va="top", ha="right")
    if answer.own_group:
        _mark(axis, 0.07, 0.93, DOT, va="top", ha="left")
    if answer.identical:
        _mark(axis, 0.5, 0.07, SAME, va="bottom", ha="center")


def _mark(axis: plt.Axes, x: float, y: float, text: str, **where: str) -> None:
    box = {"boxstyle": "square,pad=0.15", "facecolor": "white", "edgecolor": "none"}
    axis.text(x, y, text, transform=axis.transAxes, fontsize=6, fontweight="bold", color="black", bbox=box, **where)


def _wrapped(label: str, letters: int) -> str:
    """``label`` in at most two lines, of about so many letters.

    >>> _wrapped("papillary_carcinoma", 12).split("\\n")
    ['papillary', 'carcinoma']
    """
    return style.legible(" ".join(label.replace("_", " ").split()), letters, 2)


def _legend(figure: Figure, group_kind: str, identical: bool, framed: bool) -> None:
    """What the frames and marks mean, at the foot of the figure; identical, framed: whether pictures are."""
    width, height = figure.get_size_inches()
    axis = figure.add_axes((0, 0, 1, LEGEND / height))
    axis.set(xlim=(0, width), ylim=(0, LEGEND))
    axis.set_axis_off()
    left, middle = 0.1, 0.13
    for frame, text in ((RIGHT, "class of the query"), (WRONG, f"{CROSS} another class")) if framed else ():
        axis.add_patch(Rectangle((left, middle - 0.07), 0.14, 0.14, fill=False, **frame))
        axis.text(left + 0.22, middle, text, va="center", fontsize=7)
        left += 1.5
    marks = [f"{SAME}: the same picture as the query"] if identical else []
    if framed and group_kind != "image":
        marks.append(f"{DOT} same {group_kind} as the query")
    axis.text(left, middle, "     ".join(marks), va="center", fontsize=7)
