"""What stands in the tables and pictures is what was put in."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lib.datasets.categories import Halves
from lib.datasets.table import ImageTable
from lib.papers.hyp_vit.disk import figures, tables
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

CODES = np.repeat(np.arange(10), 2)
NAMES = np.array([f"organ/kind_{code}" for code in CODES])
PARTS = Halves(NAMES, CODES, np.arange(10), np.arange(10, 20), np.arange(10, 20), 0)


def test_three_heads_differ_in_clipping_and_length():
    hyp, unclipped, two = tables.heads(Settings(), 40, 16, ByClass(2, 4))
    assert (hyp.recipe.dim_out, unclipped.recipe.dim_out, two.recipe.dim_out) == (16, 16, 2)
    assert hyp.head == two.head and unclipped.head.clip_radius is None


def test_points_are_placed_under_their_kind():
    points, rows = {"unseen": np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])}, {"unseen": np.array([19, 0, 18])}
    placed = tables.placed(points, rows, NAMES)
    assert placed["kind"].tolist() == ["organ/kind_9", "organ/kind_0", "organ/kind_9"]
    assert placed["y"].tolist() == [0.2, 0.4, 0.6]


def test_kinds_are_labels_where_these_are_fewer_than_categories():
    files = [f"{number}.png" for number in range(20)]
    rows = pd.DataFrame({"image_id": files, "path": files, "label": ["a", "b"] * 10, "group": NAMES})
    images = ImageTable("mine", ".", rows.assign(family=["x"] * 20), "image")
    assert tables.kinds(images, PARTS, "label")[0] == "label"
    assert tables.kinds(images, PARTS, "family", "label")[1].tolist() == ["x"] * 20
    assert tables.kinds(images, PARTS, "genus", "group")[0] == "category"  # no such column; as many as categories
    of, kind = tables.kinds(images, PARTS)
    assert of == "category" and kind.tolist() == NAMES.tolist()
    assert tables.marks(of, kind, np.arange(20)) == "Marks: the 8 largest, by category; grey dots: all others."


def test_which_part_is_at_the_bound_is_counted():
    bound = np.tanh(0.1**0.5 * 2.3) / 0.1**0.5
    trainings = [torch.tensor([[bound, 0.0], [0.0, 1.0]]), torch.tensor([[bound, 0.0], [0.0, bound]])]
    (line,) = tables.bound_sentences({"Hyp": trainings}, Settings())
    assert line == (
        "Hyp: 75.0 % at the bound of 62.1 % (50.0 to 100.0 over 2 trainings), the innermost of all at 31.6 %"
    )


def test_a_picture_is_told_with_and_without_a_ball():
    once, first, second, ends, _ = tables.disk_sentences(ROWS)
    assert once == tables.ONCE and "seen once, and not tested" in once
    assert "unseen: embeddings rest at 62.1 % of the radius, the picture begins at 85.0 %" in first
    assert second.startswith("noise: the picture begins at 80.0 %") and "5.0 are true (by chance 0.17)" in second
    assert (
        "of at most 1.40 of the own category 60.0 % are among them (in the embedding 61.0 %, by chance 5.0 %)" in second
    )
    assert ends.endswith("they begin at 80.0 to 85.0 % and end at 91.0 to 92.0 %, that of noise at 91.0 %")
    shown = tables.compared_layout(ROWS)
    assert "| noise | 600 | – | 80.0 % | 91.0 % (90.0 to 95.0) | 50.0 % (1.7) | 1.40 | 61.0 % | 60.0 % |" in shown
    assert "| +0.45 (+0.80) |" in shown


ROW = {"picture": "unseen", "images": 600, "rest": 62.1, "begun": 85.0, "shown": 92.0, "shown_low": 90.0}
ROW |= {"shown_high": 95.0, "kept": 50.0, "same": 61.0, "same_shown": 60.0, "chance": 5.0, "at_most": 1.4}
ROW |= {"mixed": 0.45, "mixed_most": 0.8}
ROWS = pd.DataFrame([ROW, ROW | {"picture": "noise", "rest": np.nan, "begun": 80.0, "shown": 91.0}])


def test_radii_are_told_beside_those_without_a_head_and_their_bounds():
    rows = pd.DataFrame({"picture": ["unseen", "unseen, no head", "noise"], "mixed": [0.53, 0.43, np.nan]})
    told = tables.radii(rows.assign(mixed_most=[0.9, 0.8, np.nan]))
    assert told.endswith("are tied: unseen +0.53 (+0.90), without a head +0.43 (+0.80); noise – (–)")


def test_what_a_picture_is_read_for_is_told_in_short():
    rows = pd.concat([ROWS, ROWS[:1].assign(picture="unseen, no head", same_shown=64.0, shown=90.0)])
    radius, own = tables.in_short(rows)
    assert radius.endswith("unseen 92.0 %; noise 91.0 %; unseen, no head 90.0 %")
    assert own.endswith("possible: unseen 60.0 % with the head, 64.0 % without")


def test_eight_kinds_have_a_mark_and_the_rim_is_drawn():
    rows = pd.DataFrame({"picture": "unseen", "x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "kind": NAMES})
    figure = figures.disks(rows, {"unseen": 0.621})
    (axis,) = figure.axes
    assert len(figure.legends[0].get_texts()) == figures.SHOWN
    assert sorted(patch.radius for patch in axis.patches) == [0.621, 1]
    plt.close(figure)


def test_pictures_of_the_same_kinds_share_a_legend():
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "kind": NAMES})
    for second, shared in ((NAMES, 1), (NAMES[::-1].copy() + "x", 0)):
        both = pd.concat([rows.assign(picture="a"), rows.assign(picture="b", kind=second)])
        figure = figures.disks(both)
        assert len(figure.legends) == shared and all((axis.legend_ is None) == bool(shared) for axis in figure.axes)
        plt.close(figure)


@pytest.mark.parametrize(("pictures", "alike"), [(2, False), (2, True), (3, False), (3, True)])
def test_every_entry_of_a_legend_is_inside_the_figure_and_below_its_own_disk(pictures, alike):
    """With names as long as they are shown, in one, two or four columns."""
    names = [f"{letter} throated Blue Warbler of the East" for letter in "abcdefghij"]
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "kind": np.repeat(names, 2)})
    several = [rows.assign(picture=f"picture {n}") for n in range(pictures)]
    if not alike:
        several = [part.assign(kind=f"{n} " + part["kind"]) for n, part in enumerate(several)]
    figure = figures.disks(pd.concat(several))
    figure.draw_without_rendering()
    shown = [axis.legend_ for axis in figure.axes if axis.legend_] + figure.legends
    boxes = [legend.get_window_extent() for legend in shown]
    assert len(boxes) == (1 if alike else pictures) and all(len(one.get_texts()) == figures.SHOWN for one in shown)
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    assert all(box.y1 <= axis.get_window_extent().y0 + 1 for box in boxes for axis in figure.axes)
    plt.close(figure)


def test_few_kinds_have_one_mark_in_all_pictures():
    """A kind that a picture lacks must not move the marks of the others there."""
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 12), "kind": list("abcd" * 3)})
    figure = figures.disks(pd.concat([rows.assign(picture="all"), rows[rows["kind"] != "b"].assign(picture="some")]))
    drawn = [{line.get_marker(): len(line.get_xdata()) for line in axis.lines} for axis in figure.axes]
    shapes = [look["marker"] for look in figures.LOOKS[:4]]
    assert [drawn[0][shape] for shape in shapes] == [3, 3, 3, 3] and [drawn[1][shape] for shape in shapes] == [
        3,
        0,
        3,
        3,
    ]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list("abcd")
    plt.close(figure)


def test_marks_differ_without_colour():
    looks = [(look["marker"], look.get("markerfacecolor") == "white") for look in figures.LOOKS]
    assert (
        len({shape for shape, _ in looks}) == figures.SHOWN and 0 < sum(hollow for _, hollow in looks) < figures.SHOWN
    )


def test_the_grid_holds_every_image_in_its_place():
    rows, columns = np.array([0, 0, 1]), np.array([0, 1, 0])
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    figure = figures.grid(rows, columns, [Image.new("RGB", (50, 40), colour) for colour in colours], ["a", "b", "b"])
    sheet, half = np.asarray(figure.axes[0].get_images()[0].get_array()), figures.TILE // 2
    places = zip(rows * figures.TILE + half, columns * figures.TILE + half, strict=True)
    assert [tuple(sheet[place]) for place in places] == colours and not figure.legends
    plt.close(figure)


def test_without_images_the_grid_has_a_mark_for_each_and_a_legend():
    kinds = [*"aabbccddeeffgghh", "i"]  # one kind too many: the smallest is grey
    rows, columns = np.divmod(np.arange(17), 5)
    figure = figures.grid(rows, columns, None, kinds)
    figure.draw_without_rendering()
    others, *marked = figure.axes[0].lines
    assert (others.get_xdata().tolist(), others.get_ydata().tolist()) == ([1], [3])
    assert marked[1].get_xdata().tolist() == [2, 3] and marked[1].get_ydata().tolist() == [0, 0]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list("abcdefgh")
    assert legend.get_window_extent().y1 <= figure.axes[0].get_window_extent().y0 + 1
    plt.close(figure)
