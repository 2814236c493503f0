"""Anybody's own images: one folder per class."""

import warnings
from collections import Counter
from collections.abc import Iterable
from os.path import commonpath
from pathlib import Path, PurePosixPath
from typing import Literal

import pandas as pd

from lib.checks import spelled
from lib.datasets.catalogue import missing
from lib.datasets.images import EXTENSIONS, is_image, visible_files
from lib.datasets.table import ImageTable, read_csv, some
from lib.errors import InputError
from lib.files import alike

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
        Without it, a patient is the lowest folder above the images, by its path below the class: fat/site_1/p1 and
        muscle/site_1/p1 are one patient with two diagnoses, fat/site_2/p1 is another. Where a folder holds images
        and folders of images, all of them are of that patient. An image right in its class folder is its own group.
    group_kind: what a group is; else "patient", with `groups` "group", and "image" where every image is its own.
    on_empty: a class folder without images is skipped with a warning, or an InputError.

    Hidden files are ignored; other files are listed in ``skipped``, and those in class folders counted in a warning.
    Further warnings: which folder is taken for the patient where several lie above an image; classes of one image;
    files with the same bytes in two classes.
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
    rows = pd.DataFrame({"image_id": map(str, images), "label": [path.parts[0] for path in images]})
    if groups is None:
        kind = group_kind or ("patient" if any(len(path.parts) > 2 for path in images) else "image")
        rows["group"] = _patients(images)
        notices = [_level(rows, kind)]
    else:
        kind, notices = group_kind or "group", []
        rows["group"] = _listed_groups(Path(groups), images)
    table = ImageTable(name, root, rows.assign(path=rows["image_id"]), kind, tuple(skipped))
    for notice in filter(None, [*notices, _alone(table), _in_two_classes(table)]):
        warnings.warn(f"{root}: {notice}", stacklevel=3)
    return table


def _patients(images: list[PurePosixPath]) -> list[str]:
    """The lowest folder above each image that is no part of another patient's, by its path below the class."""
    below = [path.parts[1:-1] for path in images]
    holding = set(below)
    ends = [next((n for n in range(1, len(parts)) if parts[:n] in holding), len(parts)) for parts in below]
    return ["/".join(parts[:n]) or str(path) for path, parts, n in zip(images, below, ends, strict=True)]


def _level(rows: pd.DataFrame, kind: str) -> str:
    """Which folder is the patient, if there is more than one above an image and below its class."""
    depth = rows["image_id"].str.count("/")
    if depth.max() < 3:
        return ""
    image_id, group = rows.loc[depth.idxmax(), ["image_id", "group"]]
    return (
        f"{depth.max()} levels of folders, as above {image_id}. Of these, {group} is taken for the {kind}: the lowest, "
        f"or the one above that holds images itself. That makes {rows['group'].nunique()} {kind}s. If these are parts "
        f"of one {kind}, such as slides, move their images into one folder, or list the group of each image in a CSV "
        "file: groups=… of lib.datasets.folder.load."
    )


def _alone(table: ImageTable) -> str:
    """Classes of one image."""
    counts = table.rows["label"].value_counts()
    alone = sorted(counts.index[counts == 1])
    return f"classes of one image ({len(alone)}): {some(alone)}. It has no other to find." if alone else ""


def _in_two_classes(table: ImageTable) -> str:
    """Files of two classes that hold the same bytes, links included."""
    row_of, labels = {table.path(row): row for row in range(len(table))}, table.labels
    pictures = [[row_of[file] for file in files] for files in alike(row_of)]
    twins = [table.rows["image_id"].iloc[rows] for rows in pictures if len(set(labels[rows])) > 1]
    if not twins:
        return ""
    return (
        f"pictures in more than one class ({len(twins)}): {some([' = '.join(ids) for ids in twins])}. "
        "Their own copy counts as a wrong answer: keep each in one class."
    )


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
    keys = listed["path"].str.replace("\\", "/").str.strip().str.removeprefix("./").map(spelled)
    twice = keys[keys.duplicated()]
    if len(twice):
        raise InputError(f"{csv}: {twice.iloc[0]} is listed more than once. Keep one row per image.")
    group_of = dict(zip(keys, listed["group"], strict=True))
    wanted = pd.Series([key if (key := spelled(str(path))) in group_of else spelled(path.name) for path in images])
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
