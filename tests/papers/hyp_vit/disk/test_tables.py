"""What stands in the tables and pictures is what was put in."""

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

from lib.datasets.categories import Halves
from lib.geometry import PoincareBall
from lib.papers.hyp_vit.disk import figures, tables
from lib.papers.hyp_vit.disk.layout import Cloud
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

CODES = np.repeat(np.arange(10), 2)
NAMES = np.array([f"organ/kind_{code}" for code in CODES])
PARTS = Halves(NAMES, CODES, np.arange(10), np.arange(10, 20), np.arange(10, 20), 0)


def test_three_heads_differ_in_clipping_and_length():
    hyp, unclipped, two = tables.heads(Settings(), 40, 16, ByClass(2, 4))
    assert (hyp.recipe.dim_out, unclipped.recipe.dim_out, two.recipe.dim_out) == (16, 16, 2)
    assert hyp.head == two.head and unclipped.head.clip_radius is None


def test_points_are_placed_under_the_name_of_their_category():
    cloud = Cloud(torch.zeros(3, 2), PoincareBall(), np.array([9, 0, 9]))
    rows = tables.placed({"unseen": np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])}, {"unseen": cloud}, PARTS)
    assert rows["category"].tolist() == ["organ/kind_9", "organ/kind_0", "organ/kind_9"]
    assert rows["y"].tolist() == [0.2, 0.4, 0.6]


def test_the_ball_is_drawn_with_radius_one():
    rows = tables.plane({"all": (torch.tensor([[2.0, 0.0]]), np.array([4]))}, 0.25, PARTS)
    assert rows[["x", "y", "category"]].values.tolist() == [[1.0, 0.0, "organ/kind_2"]]


def test_which_part_is_at_the_bound_is_counted():
    bound = np.tanh(0.1**0.5 * 2.3) / 0.1**0.5
    trainings = [torch.tensor([[bound, 0.0], [0.0, 1.0]]), torch.tensor([[bound, 0.0], [0.0, bound]])]
    (line,) = tables.bound_sentences({"Hyp": trainings}, Settings())
    assert line == (
        "Hyp: 75.0 % at the bound of 62.1 % (50.0 to 100.0 over 2 trainings), the innermost of all at 31.6 %"
    )


def test_a_picture_is_told_with_and_without_a_ball():
    row = {"picture": "unseen", "images": 600, "rest": 62.1, "begun": 85.0, "shown": 92.0, "shown_low": 90.0}
    row |= {"shown_high": 95.0, "kept": 50.0, "same": 61.0, "same_shown": 60.0, "chance": 5.0, "mixed": 0.45}
    rows = pd.DataFrame([row, row | {"picture": "noise", "rest": np.nan}])
    once, first, second, _ = tables.disk_sentences(rows)
    assert once == tables.ONCE and "seen once, and not tested" in once
    assert "unseen: embeddings rest at 62.1 % of the radius, the picture begins at 85.0 %" in first
    assert (
        second.startswith("noise: the picture begins at 85.0 %")
        and "5.0 are true (by chance 0.17), 6.0 of the own category" in second
    )
    assert "| noise | 600 | – | 85.0 % | 92.0 % (90.0 to 95.0) | 50.0 % (1.7) |" in tables.compared_layout(rows)


def test_radii_are_told_beside_those_without_a_head():
    rows = pd.DataFrame({"picture": ["unseen", "unseen, no head", "noise"], "mixed": [0.53, 0.43, np.nan]})
    assert tables.radii(rows).endswith("more mixed neighbours: unseen +0.53 (without a head +0.43), noise –")


def test_eight_categories_have_a_mark_and_the_rim_is_drawn():
    rows = pd.DataFrame({"picture": "unseen", "x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "category": NAMES})
    figure = figures.disks(rows, {"unseen": 0.621})
    (axis,) = figure.axes
    assert len(axis.get_legend_handles_labels()[1]) == figures.SHOWN
    assert sorted(patch.radius for patch in axis.patches) == [0.621, 1]
    plt.close(figure)


def test_pictures_of_the_same_categories_share_a_legend():
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "category": NAMES})
    for second, shared in ((NAMES, 1), (NAMES[::-1].copy() + "x", 0)):
        both = pd.concat([rows.assign(picture="a"), rows.assign(picture="b", category=second)])
        figure = figures.disks(both)
        assert len(figure.legends) == shared and all((axis.legend_ is None) == bool(shared) for axis in figure.axes)
        plt.close(figure)


@pytest.mark.parametrize(("pictures", "alike"), [(2, False), (2, True), (3, False), (3, True)])
def test_every_entry_of_a_legend_is_inside_the_figure_and_below_its_own_disk(pictures, alike):
    """With names as long as they are shown, in one, two or four columns."""
    names = [f"{letter} throated Blue Warbler of the East" for letter in "abcdefghij"]
    rows = pd.DataFrame({"x": 0.1, "y": np.linspace(-0.9, 0.9, 20), "category": np.repeat(names, 2)})
    several = [rows.assign(picture=f"picture {n}") for n in range(pictures)]
    if not alike:
        several = [part.assign(category=f"{n} " + part["category"]) for n, part in enumerate(several)]
    figure = figures.disks(pd.concat(several))
    figure.draw_without_rendering()
    shown = [axis.legend_ for axis in figure.axes if axis.legend_] + figure.legends
    boxes = [legend.get_window_extent() for legend in shown]
    assert len(boxes) == (1 if alike else pictures) and all(len(one.get_texts()) == figures.SHOWN for one in shown)
    assert all(box.x0 >= 0 and box.y0 >= 0 and box.x1 <= figure.bbox.x1 for box in boxes)
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    assert all(box.y1 <= axis.get_window_extent().y0 + 1 for box in boxes for axis in figure.axes)
    plt.close(figure)


@pytest.mark.parametrize("with_images", [True, False])
def test_the_grid_holds_every_image_in_its_place(with_images):
    rows, columns, codes = np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([1, 2, 2])
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    images = [Image.new("RGB", (50, 40), colour) for colour in colours] if with_images else None
    figure = figures.grid(rows, columns, images, codes)
    sheet = np.asarray(figure.axes[0].get_images()[0].get_array())
    if with_images:
        half = figures.TILE // 2
        assert [
            tuple(sheet[r * figures.TILE + half, c * figures.TILE + half]) for r, c in zip(rows, columns, strict=True)
        ] == colours
    else:
        assert sheet[0].tolist() == [1, 2] and sheet[1, 0] == 2
    plt.close(figure)
