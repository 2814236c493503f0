"""Which known datasets lie below a folder? Recognised by their original layout, without opening an image."""

import os
from collections.abc import Iterator
from pathlib import Path

from lib import paths
from lib.datasets import breakhis, ham10000, kather, ovarian
from lib.datasets.images import is_image, visible_files
from lib.errors import InputError

DEPTH = 5  # BreaKHis_v1/histology_slides/breast lies three below the folder that it was unpacked in


def find(root: Path) -> dict[str, Path]:
    """Datasets below ``root``: name → its folder, the first in breadth-first order of each.

    Each BreakHis magnification is a dataset of its own, as in the paper. Where no known dataset is found and
    ``root`` itself holds class folders with images, they are yours: ``folder``.

    Raises:
        InputError: if ``root`` is not a folder.
    """
    if not root.is_dir():
        raise InputError(f"DATA={root} is not a folder; say where your images are")
    found: dict[str, Path] = {}
    for here, folders, files in _walk(root):
        if len(folders & set(kather.FOLDERS)) > 1:
            found.setdefault("kather", here)
        elif ham10000.METADATA in files:
            found.setdefault("ham10000", here)
        elif set(ovarian.FOLDERS) <= folders:
            found.setdefault("ovarian", here)
        elif {"benign", "malignant"} <= folders:
            for path in visible_files(here):
                if name := breakhis.NAME.fullmatch(path.stem):
                    found.setdefault(f"bh{name['magnification']}x", here)
    if found:
        return found
    classes = {path.parts[0] for path in visible_files(root) if is_image(path) and len(path.parts) > 1}
    return {"folder": root} if classes else {}


def link(data: Path) -> dict[str, Path]:
    """Link every dataset found below ``data`` into ``data/`` of the project; returns name → folder.

    A folder in ``data/`` that is not a link (put there by hand) is left alone.

    Raises:
        InputError: if there is no dataset below ``data``.
    """
    found = find(data)
    if not found:
        raise InputError(
            f"{data} holds no dataset that I know and no class folders with images. Known: the original layouts of "
            "Kather 2016, BreakHis, HAM10000 and the ovarian set; your own images need one sub-folder per class"
        )
    paths.DATA.mkdir(exist_ok=True)
    for name, folder in found.items():
        place = paths.DATA / name
        if place.is_symlink():
            place.unlink()
        if not place.exists():
            place.symlink_to(folder.resolve(), target_is_directory=True)
    return found


def _walk(root: Path) -> Iterator[tuple[Path, set[str], list[str]]]:
    """Folders below ``root`` level by level: path, names of sub-folders, names of files."""
    level = [root]
    for _ in range(DEPTH):
        below = []
        for here in level:
            entries = [entry for entry in os.scandir(here) if not entry.name.startswith(".")]
            folders = sorted(entry.name for entry in entries if entry.is_dir())
            yield here, set(folders), [entry.name for entry in entries if entry.is_file()]
            below += [here / name for name in folders]
        level = below
