"""Pictures as they are committed: of as many colours as one byte counts, and the same bytes at every rebuild."""

from base64 import b64decode, b64encode
from io import BytesIO
from typing import Any

from PIL import Image

COLOURS = 256


def reduced(png: bytes) -> bytes:
    """The picture in ``png`` with a palette of its own, without date, version or dithering; one that has it stays.

    >>> Image.new("RGB", (2, 2), "orange").save(file := BytesIO(), "PNG")
    >>> small = reduced(file.getvalue())
    >>> Image.open(BytesIO(small)).mode, reduced(small) == small
    ('P', True)
    """
    with Image.open(BytesIO(png)) as image:
        if image.mode == "P":
            return png
        white = Image.new("RGBA", image.size, "white")
        opaque = Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
    few = opaque.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    few.save(target := BytesIO(), "PNG", optimize=True)
    return target.getvalue()


def reduce_output(output: dict[str, Any]) -> None:
    """Reduce the picture that an ``output`` of a notebook holds, if any (:func:`reduced`)."""
    if "image/png" in (data := output.get("data", {})):
        data["image/png"] = b64encode(reduced(b64decode(data["image/png"]))).decode("ascii")
