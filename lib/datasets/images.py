"""Image files: finding them below a folder, reading one completely, and saying which cannot be read."""

import os
import warnings
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np
from PIL import Image, ImageOps, UnidentifiedImageError, features

from lib.errors import BrokenImage, InputError
from lib.progress import track

WEBP = features.check("webp")
EXTENSIONS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", *([".webp"] if WEBP else []))
FORMATS = ("PNG", "JPEG", "TIFF", "BMP", *(["WEBP"] if WEBP else []))
"""Whatever a file is called, no other decoder is started: one for PostScript would run a program on a foreign file."""

READING = 2
"""Which pixels a file gives; what was computed from others is computed again. Since 2 photographs stand upright."""

Notices = dict[str, list[str]]
"""What is read otherwise than somebody may expect → the files, with what they hold."""

PAGES = "several pages, of which the first is read"
DARK = "16-bit values in a small part of the range, read as almost black (stretch them to the full range)"
TOLD = r"[\d,]+ images? with "
"""How each warning of :func:`tell` begins."""

DIM = 2**6
"""An image of 16 bits whose high bytes are all below this holds 14 bits or fewer, as microscopes' cameras give."""


def is_image(path: PurePosixPath) -> bool:
    """Return whether the name ends like that of an image, in capitals or not."""
    return path.suffix.lower() in EXTENSIONS


def visible_files(root: Path) -> list[PurePosixPath]:
    """Return all files below `root`, relative to it and sorted; hidden files and folders are left out.

    Linked folders are followed, except those that lead back up to a folder they lie in.
    Raises InputError for a folder that cannot be read.
    """
    paths = []
    for folder, folders, files in os.walk(root, followlinks=True, onerror=_unreadable):
        here = Path(folder)
        folders[:] = [name for name in folders if name[0] != "." and not _leads_back(here / name)]
        relative = PurePosixPath(here.relative_to(root).as_posix())
        paths += [relative / name for name in files if name[0] != "."]
    return sorted(paths, key=str)


def read_image(path: Path, notices: Notices | None = None) -> Image.Image:
    """Return the image at `path` as RGB, completely decoded; of a TIFF with several pages the first.

    A photograph is turned upright as its EXIF data say. Transparency is laid on white, the background of a slide.
    16-bit grey values keep their high byte, as Pillow does for 16-bit colour. What somebody may not expect (more pages,
    12 bits in a file of 16) is entered into ``notices``, for :func:`tell`.
    Raises BrokenImage naming the file if it is missing, unreadable, empty, truncated, too large or no image of
    :data:`FORMATS`.
    """
    path = Path(path)
    try:
        if path.stat().st_size == 0:
            raise BrokenImage(f"{path}: the file is empty (0 bytes). Copy it again or remove it.")
        with Image.open(path, formats=FORMATS) as image:
            return _rgb(image, path, {} if notices is None else notices)
    except BrokenImage:
        raise
    except FileNotFoundError:
        raise BrokenImage(f"{path}: no such file. Copy it there or remove its row from the table.") from None
    except PermissionError:
        raise BrokenImage(f"{path}: no permission to read it. Change the permissions of the file.") from None
    except UnidentifiedImageError:
        raise BrokenImage(
            f"{path}: not an image that can be read here. Convert it to PNG, JPEG or TIFF, or remove it."
        ) from None
    except Image.DecompressionBombError:
        most = 2 * Image.MAX_IMAGE_PIXELS
        raise BrokenImage(f"{path}: too large, over {most:,} pixels. Cut it into tiles, and save these.") from None
    except Exception as error:  # decoders meet damage with OSError, SyntaxError, ValueError and more
        raise BrokenImage(f"{path}: the image is damaged ({error}). Copy it again or remove it.") from error


def unreadable(files: Sequence[Path], what: str) -> list[str]:
    """Decode all ``files``, which are called ``what``; why those that cannot be read cannot be, in their order.

    Warns of what is read otherwise than somebody may expect.
    """
    notices: Notices = {}

    def reason(file: Path) -> str | None:
        try:
            read_image(file, notices)
        except BrokenImage as error:
            return str(error)
        return None

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = track(pool.map(reason, files), total=len(files), what=f"{what}, trying to read", unit="images")
        reasons = [why for why in tried if why]
    tell(notices)
    return reasons


def broken(reasons: Collection[str]) -> BrokenImage:
    """The error that names all images that cannot be read, and both ways out."""
    lines = [f"{len(reasons)} images cannot be read:", *(f"  {reason}" for reason in reasons)]
    return BrokenImage(
        ("\n".join([*lines, ""]) if len(reasons) > 1 else f"{''.join(reasons)} ")
        + "Then run again, what is finished is kept. Or leave them out and have them counted: on_broken: skip in the "
        "project's params.yaml, which counts for your own images too (in Python, on_broken='skip')."
    )


def tell(notices: Notices) -> None:
    """Warn of each kind of notice once, with the number of files and the first of them."""
    for what, files in sorted(notices.items()):
        warnings.warn(f"{len(files):,} image{'s' * (len(files) > 1)} with {what}, such as {min(files)}.", stacklevel=3)


def _rgb(image: Image.Image, path: Path, notices: Notices) -> Image.Image:
    deep = ";16" in str(image.tile)
    if image.format == "TIFF" and image.tag_v2.next:
        notices.setdefault(PAGES, []).append(str(path))
    image.load()
    with suppress(Exception):  # what is wrong with a camera's notes is not wrong with the picture
        ImageOps.exif_transpose(image, in_place=True)
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise BrokenImage(
            f"{path}: 32-bit pixel values have no agreed range. Convert the image to 8 or 16 bits per channel."
        )
    if "transparency" in image.info or image.mode in ("RGBA", "RGBa", "LA", "La", "PA"):
        overlay = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), overlay)
    image = image.convert("RGB")
    if deep and (most := max(high for _, high in image.getextrema())) < DIM:
        notices.setdefault(DARK, []).append(f"{path} (no value above {256 * most + 255:,} of 65,535)")
    return image


def _leads_back(folder: Path) -> bool:
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def _unreadable(error: OSError) -> NoReturn:
    raise InputError(
        f"{error.filename}: the folder cannot be read ({error.strerror}). Change its permissions."
    ) from error
