"""Pictures become small, and are still what was drawn."""

from base64 import b64decode, b64encode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from lib.figures import screen

SPOT = (2, 158, 115)


def png(pixels: np.ndarray) -> bytes:
    Image.fromarray(pixels).save(file := BytesIO(), "PNG")
    return file.getvalue()


def chart() -> np.ndarray:
    """White paper, a thousand shades in a corner, and one green spot of a few pixels."""
    pixels = np.full((300, 400, 3), 255, dtype=np.uint8)
    pixels[:32, :40] = np.random.default_rng(0).integers(0, 256, (32, 40, 3))
    pixels[:32, :40, 2] = 250
    pixels[200:206, 200:206] = SPOT
    return pixels


def photograph() -> np.ndarray:
    rng = np.random.default_rng(0)
    smooth = np.kron(rng.integers(0, 256, (10, 10, 3)), np.ones((30, 30, 1)))
    return (smooth + rng.normal(0, 8, smooth.shape)).clip(0, 255).astype(np.uint8)


def test_paper_and_small_marks_keep_their_colour_and_all_others_nearly():
    small = Image.open(BytesIO(screen.reduced(png(chart()))))
    shown = np.asarray(small.convert("RGB")).astype(int)
    assert small.mode == "P" and tuple(shown[203, 203]) == SPOT and tuple(shown[299, 399]) == (255, 255, 255)
    assert np.abs(shown - chart()).max() <= 24


@pytest.mark.parametrize("draw", [chart, photograph])
def test_the_same_picture_gives_the_same_bytes_and_what_is_small_stays(draw):
    pixels = draw()
    small = screen.reduced(png(pixels))
    assert screen.reduced(png(pixels)) == small == screen.reduced(small)
    assert len(small) < len(png(pixels))


def test_what_is_transparent_becomes_paper():
    clear = np.zeros((4, 4, 4), dtype=np.uint8)
    assert Image.open(BytesIO(screen.reduced(png(clear)))).convert("RGB").getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize(("draw", "kind"), [(chart, "image/png"), (photograph, "image/jpeg")])
def test_a_notebook_holds_photographs_as_jpeg(draw, kind):
    pixels = draw()
    output = {"data": {"image/png": b64encode(png(pixels)).decode(), "text/plain": "<Figure>"}}
    screen.reduce_output(output)
    assert set(output["data"]) == {kind, "text/plain"}
    shown = np.asarray(Image.open(BytesIO(b64decode(output["data"][kind]))).convert("RGB")).astype(int)
    assert np.abs(shown - pixels).mean() < 10
    screen.reduce_output(words := {"text": "1 epoch"})
    assert words == {"text": "1 epoch"}
