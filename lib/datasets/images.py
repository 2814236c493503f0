"""Image files: finding them below a folder and reading one completely."""

import os
from pathlib import Path, PurePosixPath
from typing import NoReturn

import numpy as np
from PIL import Image, UnidentifiedImageError, features

from lib.errors import BrokenImage, InputError

EXTENSIONS = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", *([".webp"] if features.check("webp") else []))


def is_image(path: PurePosixPath) -> bool:
    """Return whether the name ends like that of an image, in capitals or not."""
    return path.suffix.lower() in EXTENSIONS


def visible_files(root: Path) -> list[PurePosixPath]:
    """Return all files below `root`, relative to it and sorted; hidden files and folders are left out.

    Linked folders are followed, except those that lead back up to a folder they lie in.
    Raises InputError for a folder that cannot be read.
    """
    found = []
    for folder, folders, files in os.walk(root, followlinks=True, onerror=_unreadable):
        here = Path(folder)
        folders[:] = [name for name in folders if name[0] != "." and not _leads_back(here / name)]
        relative = PurePosixPath(here.relative_to(root).as_posix())
        found += [relative / name for name in files if name[0] != "."]
    return sorted(found, key=str)


def read_image(path: Path) -> Image.Image:
    """Return the image at `path` as RGB, completely decoded; of a TIFF with several pages the first.

    Transparency is laid on white, the background of a slide. 16-bit grey values keep their high byte,
    as Pillow does for 16-bit colour.
    Raises BrokenImage naming the file if it is missing, unreadable, empty, truncated or not an image.
    """
    path = Path(path)
    try:
        if path.stat().st_size == 0:
            raise BrokenImage(f"{path}: the file is empty (0 bytes). Copy it again or remove it.")
        with Image.open(path) as image:
            return _rgb(image)
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
    except Exception as error:  # decoders meet damage with OSError, SyntaxError, ValueError and more
        raise BrokenImage(f"{path}: the image is damaged ({error}). Copy it again or remove it.") from error


def _rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16") or (image.mode == "I" and image.format == "PNG"):
        image = Image.fromarray((np.asarray(image).astype(np.uint16) >> 8).astype(np.uint8))
    elif image.mode in ("I", "F"):
        raise BrokenImage(
            f"{image.filename}: 32-bit pixel values have no agreed range. "
            "Convert the image to 8 or 16 bits per channel."
        )
    if "transparency" in image.info or image.mode in ("RGBA", "RGBa", "LA", "La", "PA"):
        overlay = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", image.size, "white"), overlay)
    return image.convert("RGB")


def _leads_back(folder: Path) -> bool:
    return folder.is_symlink() and folder.parent.resolve().is_relative_to(folder.resolve())


def _unreadable(error: OSError) -> NoReturn:
    raise InputError(
        f"{error.filename}: the folder cannot be read ({error.strerror}). Change its permissions."
    ) from error
