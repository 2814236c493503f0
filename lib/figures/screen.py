"""Pictures as they are committed: of as many colours as one byte counts, and the same bytes at every rebuild."""

from io import BytesIO

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
