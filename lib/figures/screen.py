"""Pictures as they are committed: as many colours as a byte can count, and the same bytes at every rebuild."""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

import numpy as np
from PIL import Image

COLOURS = 256
EXACT = 64
"""Colours that stay as they are, the most frequent ones: paper, lines, letters and the house's palette."""


def reduced(png: bytes) -> bytes:
    """The picture in ``png`` with a palette of its own, without date, version or dithering; one that has it stays.

    Colours but the most frequent ones count once each, however many pixels they have: a marker keeps its hue.

    >>> Image.new("RGB", (2, 2), "orange").save(file := BytesIO(), "PNG")
    >>> small = reduced(file.getvalue())
    >>> Image.open(BytesIO(small)).mode, reduced(small) == small
    ('P', True)
    """
    with Image.open(BytesIO(png)) as image:
        if image.mode == "P":
            return png
        pixels = np.asarray(_opaque(image)).astype(int) @ [1 << 16, 1 << 8, 1]
    found, place, count = np.unique(pixels, return_inverse=True, return_counts=True)
    colours = np.stack([found >> 16, found >> 8, found], axis=-1).astype(np.uint8)
    exact, others = np.split(np.argsort(-count, kind="stable"), [EXACT])
    number = np.empty(len(found), dtype=np.uint8)
    number[exact] = np.arange(len(exact))
    palette = colours[exact].tobytes()
    if len(others):
        mixed = Image.fromarray(colours[None, others]).quantize(COLOURS - EXACT, method=Image.Quantize.MEDIANCUT)
        number[others] = EXACT + np.asarray(mixed)[0]
        palette += bytes(mixed.getpalette())
    few = Image.fromarray(number[place].reshape(pixels.shape))
    few.putpalette(palette)
    few.save(target := BytesIO(), "PNG", optimize=True)
    return target.getvalue()


def reduce_output(output: dict[str, Any]) -> None:
    """Make the picture that an ``output`` of a notebook holds smaller: :func:`reduced`, or a JPEG if less than that."""
    if "image/png" in (data := output.get("data", {})):
        png = b64decode(data.pop("image/png"))
        _opaque(Image.open(BytesIO(png))).save(jpeg := BytesIO(), "JPEG")
        kinds = {"image/png": reduced(png), "image/jpeg": jpeg.getvalue()}
        kind = min(kinds, key=lambda kind: len(kinds[kind]))
        data[kind] = b64encode(kinds[kind]).decode("ascii")


def _opaque(image: Image.Image) -> Image.Image:
    """``image`` on white paper."""
    paper = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(paper, image.convert("RGBA")).convert("RGB")
