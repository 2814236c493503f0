"""A moved slider redraws the picture and rewrites the numbers."""

import io
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from lib.figures import style
from lib.widgets.board import DPI, Board
from lib.widgets.slider import Slider


def draw(level: float, label: str = "") -> Figure:
    figure = Figure(figsize=(2, 1), layout="none")
    axis = figure.add_axes((0, 0, 1, 1))
    axis.axhspan(0, level)
    axis.set_ylim(0, 1)
    axis.text(0.1, 0.1, label)
    return figure


def board() -> Board:
    return Board(
        {"level": Slider("level", (0, 0.5, 0.8), start=0.5)}, draw, lambda level: f"level < {level:.2f}", height=100
    )


def test_picture_and_text_follow_the_slider():
    shown = board()
    picture = shown.picture.value
    assert (shown.text, shown.readout.value) == ("level < 0.50", "<pre>level &lt; 0.50</pre>")
    shown.sliders["level"].value = 0.8
    assert (shown.text, shown.readout.value) == ("level < 0.80", "<pre>level &lt; 0.80</pre>")
    assert shown.picture.value != picture


def test_the_picture_is_the_figure():
    shown = board()
    image = Image.open(io.BytesIO(shown.picture.value))
    assert (image.format, image.size) == ("PNG", (2 * DPI, DPI))
    assert np.asarray(image)[:, DPI, 0].mean() == pytest.approx((255 + 31) / 2, abs=5)  # half white, half C0
    assert shown.still().data == shown.picture.value and shown.still().format == "png"


def test_two_sliders_may_be_moved_at_once():
    """The kernel answers sliders in threads of their own, and matplotlib's settings belong to all of them."""

    def slowly(level: float) -> Figure:
        with style.house():
            time.sleep(0.02)
            return draw(level, label="level")

    boards = [
        Board({"level": Slider("level", (0.5, 0.8), start=s)}, slowly, "{level}".format, height=100) for s in (0.5, 0.8)
    ]
    expected = [board.picture.value for board in boards]
    for _ in range(5):
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(Board.redraw, boards))
        assert [board.picture.value for board in boards] == expected
