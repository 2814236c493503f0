"""Anybody's own images: one folder per class."""

import warnings
from collections import Counter
from collections.abc import Iterable
from os.path import commonpath
from pathlib import Path, PurePosixPath
from typing import Literal

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import EXTENSIONS, is_image, visible_files
from lib.datasets.table import ImageTable, read_csv, spelled
from lib.errors import InputError

SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}


def load(
    root: Path,
    name: str = "folder",
    groups: Path | None = None,
    group_kind: str | None = None,
    on_empty: Literal["skip", "error"] = "skip",
) -> ImageTable:
    """Return the table of the images in ``root/<label>/**``; image_id is the path below `root`.

    name: what these images are called in results.
    groups: CSV file with the columns path (below `root`, or the file name alone) and group, one row per image.
        Without it, images in a sub-folder of their class folder belong to that sub-folder (equal names in two
        classes are one group, as for a patient with two diagnoses); any other image is a group of its own.
    group_kind: what a group is, such as "patient"; else "group", "sub-folder" or "image", as found.
    on_empty: a class folder without images is skipped with a warning, or an InputError.

    Hidden files are ignored; other files are listed in ``skipped``, and those in class folders counted in a warning.
    Raises MissingDataset without any image; InputError for images outside class folders, a single class,
    class folders that are called train and test, and an image that `groups` does not list.
    """
    if on_empty not in ("skip", "error"):
        raise InputError(f"on_empty={on_empty!r} is unknown. Use 'skip' or 'error'.")
    files = visible_files(root)
    images = [path for path in files if is_image(path)]
    others = [path for path in files if not is_image(path)]
    if not images:
        there = f", but {_counted(others)}" if others else ""
        raise missing(name, root, f"holds no images ({', '.join(EXTENSIONS)}){there}")
    skipped = [(str(path), f"not one of {', '.join(EXTENSIONS)}") for path in others]
    unread = [path for path in others if len(path.parts) > 1]
    if unread:
        warnings.warn(
            f"{root}: {len(unread)} files in class folders are not read: {_counted(unread)}. "
            f"What is read: {', '.join(EXTENSIONS)}.",
            stacklevel=3,
        )
    loose = [path for path in images if len(path.parts) == 1]
    if loose:
        raise InputError(
            f"{root}: {len(loose)} images lie outside the class folders, such as {loose[0]}. "
            "Move each into the folder of its class."
        )
    labels = {path.parts[0] for path in images}
    folders = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")}
    for empty in sorted(folders - labels):
        message = f"{root / empty}: no images in this class folder"
        if on_empty == "error":
            raise InputError(f"{message}. Add some, remove the folder, or load with on_empty='skip'.")
        warnings.warn(f"{message}; the class is left out.", stacklevel=3)
        skipped.append((empty, "class folder without images"))
    if len({spelled(label) for label in labels}) == 1:
        raise InputError(
            f"{root}: only one class ({labels.pop()}). Retrieval needs two class folders or more.{_inner(root, images)}"
        )
    if {label.lower() for label in labels} <= SPLITS:
        raise InputError(
            f"{root}: the folders {', '.join(sorted(labels))} look like a split, not like classes. "
            "Load one of them, or merge their class folders."
        )
    if groups is None:
        own = [path.parts[1] if len(path.parts) > 2 else str(path) for path in images]
        found_kind = "sub-folder" if any(len(path.parts) > 2 for path in images) else "image"
    else:
        own, found_kind = _listed_groups(Path(groups), images), "group"
    rows = pd.DataFrame({"image_id": map(str, images), "label": [p.parts[0] for p in images], "group": own})
    return ImageTable(name, root, rows.assign(path=rows["image_id"]), group_kind or found_kind, tuple(skipped))


def _counted(files: Iterable[PurePosixPath]) -> str:
    """How many files there are of each ending, the most frequent first: "12 .svs, 1 .pdf"."""
    endings = Counter(path.suffix.lower() or "without ending" for path in files)
    return ", ".join(f"{n} {ending}" for ending, n in endings.most_common())


def _inner(root: Path, images: list[PurePosixPath]) -> str:
    """Where the classes seem to be if all images lie in sub-folders of one folder of `root`."""
    common = PurePosixPath(commonpath([path.parent for path in images]))
    below = sorted({path.relative_to(common).parts[0] for path in images if path.parent != common})
    if len(below) < 2:
        return ""
    names = ", ".join(below[:3]) + (", ..." if len(below) > 3 else "")
    return f" If {names} are the classes, say DATA={root / common}."


def _listed_groups(csv: Path, images: list[PurePosixPath]) -> list[str]:
    listed = read_csv(csv, ["path", "group"])
    keys = listed["path"].str.replace("\\", "/").str.strip().str.removeprefix("./")
    twice = keys[keys.duplicated()]
    if len(twice):
        raise InputError(f"{csv}: {twice.iloc[0]} is listed more than once. Keep one row per image.")
    group_of = dict(zip(keys, listed["group"], strict=True))
    wanted = pd.Series([str(path) if str(path) in group_of else path.name for path in images])
    shared = wanted[wanted.duplicated() & wanted.isin(group_of)]
    if len(shared):
        raise InputError(
            f"{csv}: several images are called {shared.iloc[0]}. List each by its path below the data folder."
        )
    unlisted = [path for path, key in zip(images, wanted, strict=True) if key not in group_of]
    if unlisted:
        raise InputError(
            f"{csv}: {len(unlisted)} of {len(images)} images have no row, such as {unlisted[0]}. Add them."
        )
    return [group_of[key] for key in wanted]
