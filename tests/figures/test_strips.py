"""Strips show every answer in order, and tell right from wrong and twins from the rest without colour."""

import itertools

import matplotlib.colors as colors
import numpy as np
import pytest
from PIL import Image

from lib.errors import InputError
from lib.figures import strips
from lib.figures.strips import Answer, Strip


def image(value: int = 128, size: tuple[int, int] = (96, 96)) -> Image.Image:
    return Image.new("RGB", size, (value, value, value))


ANSWERS = [
    Answer(image(), "stroma", 0.0, right=True, identical=True),
    Answer(image(), "papillary_carcinoma", 0.25, right=False),
    Answer(image(), "stroma", 1.5, right=True, own_group=True),
]


def tiles(figure):
    """The axes of the answers: those with a frame around an image."""
    return [axis for axis in figure.axes if axis.images and axis.patches]


def marks(axis) -> list[str]:
    return [text.get_text() for text in axis.texts]


def test_an_answer_has_its_distance_and_class_and_right_and_wrong_differ_without_colour():
    figure = strips.strips([Strip(image(), "query 7\nstroma", ANSWERS)])
    titles = [axis.get_title() for axis in tiles(figure)]
    assert titles == ["0.000\nstroma", "0.250\npapillary\ncarcinoma", "1.500\nstroma"]
    assert "query 7\nstroma" in [axis.get_title() for axis in figure.axes]
    right, wrong, own = tiles(figure)
    assert right.patches[0].get_linestyle() != wrong.patches[0].get_linestyle()
    assert wrong.patches[0].get_linewidth() > 1.5 * right.patches[0].get_linewidth()
    assert (marks(right), marks(wrong), marks(own)) == (["identical"], ["×"], ["●"])
    grey = [np.dot(colors.to_rgb(a.patches[0].get_edgecolor()), (0.3, 0.59, 0.11)) for a in (right, wrong)]
    assert max(grey) < 0.75  # both are seen on white paper


def test_long_names_are_broken_and_stay_above_their_own_image():
    long = "query SOB_B_PT-14-29315EF-200-000012\nmucinous carcinoma of the breast"
    figure = strips.strips([Strip(image(), long, [Answer(image(), "fibroadenoma", 0.1, True)] * 10)])
    figure.canvas.draw()
    boxes = [axis.title.get_window_extent() for axis in figure.axes if axis.get_title()]
    for left, right in itertools.pairwise(boxes):
        assert left.x1 <= right.x0
    assert tiles(figure)[0].get_title() == "0.100\nfibroadenoma"
    title = figure.axes[0].get_title()
    assert "SOB_B_PT-14-29315EF-200-000012" in title.replace("\n", "") and title.count("\n") == 3
    assert boxes[0].x0 >= 0 and boxes[0].y1 <= figure.bbox.y1


@pytest.mark.parametrize(("kind", "identical"), [("patient", False), ("image", True)])
def test_the_legend_explains_what_is_marked(kind, identical):
    shown = [Strip(None, "query", [Answer(None, "x", 1.0, True, identical=identical, own_group=True)])]
    texts = [text.get_text() for axis in strips.strips(shown, kind).axes for text in axis.texts]
    assert sum(text.startswith("identical:") for text in texts) == identical and "class of the query" in texts
    assert any(f"same {kind}" in text for text in texts) is (kind == "patient")


@pytest.mark.parametrize("n", [1, 11])
def test_no_two_tiles_overlap_and_all_lie_inside(n):
    shown = [Strip(image(), "q", [Answer(image(), "a", 0.1, True)] * n)] * 2
    figure = strips.strips(shown)
    boxes = [axis.get_position() for axis in figure.axes]
    assert len(tiles(figure)) == 2 * n
    for box in boxes:
        assert box.x0 >= -1e-9 and box.y0 >= -1e-9 and box.x1 <= 1 + 1e-9 and box.y1 <= 1 + 1e-9
    for i, one in enumerate(boxes):
        for two in boxes[:i]:
            apart = one.x0 >= two.x1 or two.x0 >= one.x1 or one.y0 >= two.y1 or two.y0 >= one.y1
            assert apart, (one, two)


def test_without_pictures_frames_and_numbers_stay_and_are_low():
    """With them every image keeps its proportions; two rows have one query beside them."""
    bare = [Answer(None, a.label, a.distance, a.right, a.identical, a.own_group) for a in ANSWERS]
    empty, full = strips.strips([Strip(None, "q", bare)]), strips.strips([Strip(image(), "q", ANSWERS)])
    for figure, ratio in ((empty, strips.FLAT), (full, 1.0)):
        figure.canvas.draw()
        box, (width, height) = tiles(figure)[0].get_position(), figure.get_size_inches()
        assert box.height * height / (box.width * width) == pytest.approx(ratio, rel=0.02)
    assert empty.get_size_inches()[1] < full.get_size_inches()[1]
    for what in (marks, lambda axis: axis.get_title()):
        assert [what(axis) for axis in tiles(empty)] == [what(axis) for axis in tiles(full)]
    assert len({tuple(axis.images[0].get_array()[0, 0]) for axis in tiles(empty)}) == 1
    wide = image(size=(700, 460))
    figure = strips.strips([Strip(wide, "q", [Answer(wide, "a", 0.1, True)])])
    height, width = tiles(figure)[0].images[0].get_array().shape[:2]
    assert width / height == pytest.approx(700 / 460, rel=0.03) and wide.size == (700, 460)
    figure = strips.strips([Strip(image(), "q", [Answer(image(), "a", 0.1, True)] * 20)])
    rows = {round(axis.get_position().y0, 6) for axis in tiles(figure)}
    query = next(axis for axis in figure.axes if axis.get_title() == "q").get_position()
    assert len(rows) == 2 and query.y0 == pytest.approx(min(rows), abs=1e-6)
    assert query.x1 < min(axis.get_position().x0 for axis in tiles(figure))


@pytest.mark.parametrize("shown", [[], [Strip(image(), "q", [])]])
def test_nothing_to_draw_is_an_error(shown):
    with pytest.raises(InputError, match="at least one query"):
        strips.strips(shown)
