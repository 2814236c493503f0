"""Anybody's own images: one folder per class."""

import warnings
from collections import Counter
from collections.abc import Iterable
from os.path import commonpath
from pathlib import Path, PurePosixPath

import pandas as pd

from lib.checks import spelled
from lib.datasets.images import EXTENSIONS, is_image
from lib.datasets.reading import Place
from lib.datasets.table import ImageTable, read_csv, some
from lib.errors import InputError
from lib.files import alike

SPLITS = {"train", "training", "val", "valid", "validation", "test", "testing"}
GROUPS = "groups.csv"
"""Beside the class folders: columns path (below the folder, or the file name only) and group, one row per image."""
READ = ", ".join(EXTENSIONS)


def read(place: Place) -> ImageTable:
    """Return the table of the images in ``<folder>/<label>/**``; image_id is the path below the folder.

    The group is that of :data:`GROUPS` if it is there. Otherwise a patient is the lowest folder above the images, by
    its path below the class: fat/site_1/p1 and muscle/site_1/p1 are one patient with two diagnoses, fat/site_2/p1 is
    another. If a folder holds images and folders of images, all of them are of that patient. An image right in its
    class folder is its own group.

    Hidden files are ignored. Other files are listed in ``skipped``, and those in class folders counted in a warning.
    Further warnings: class folders without images, which are left out; which folder is the patient if several lie above
    an image; classes of one image; files with the same bytes in two classes, or
    of two patients.

    Raises MissingDataset without any image; InputError for images outside class folders, a single class, class folders
    that are called train and test, and an image that :data:`GROUPS` does not list.
    """
    root, images = place.root, place.images
    others = [path for path in place.files if not is_image(path) and str(path) != GROUPS]
    if not images:
        raise place.missing(f"holds no images ({READ})" + (f", but {_counted(others)}" if others else ""))
    if loose := [path for path in images if len(path.parts) == 1]:
        raise InputError(
            f"{root}: {len(loose)} images lie outside the class folders, such as {loose[0]}. "
            "Move each into the folder of its class."
        )
    labels = {path.parts[0] for path in images}
    if len({spelled(label) for label in labels}) == 1:
        raise InputError(
            f"{root}: only one class ({labels.pop()}). Retrieval needs two class folders or more.{_inner(root, images)}"
        )
    if {label.lower() for label in labels} <= SPLITS:
        raise InputError(
            f"{root}: the folders {', '.join(sorted(labels))} look like a split, not like classes. "
            "Load one of them, or merge their class folders."
        )
    folders = {path.name for path in root.iterdir() if path.is_dir() and not path.name.startswith(".")}
    empty, unread = sorted(folders - labels), [path for path in others if len(path.parts) > 1]
    skipped = [(str(path), f"not one of {READ}") for path in others]
    skipped += [(name, "class folder without images") for name in empty]
    rows = pd.DataFrame({"image_id": map(str, images), "label": [path.parts[0] for path in images]})
    if (root / GROUPS).is_file():
        kind, rows["group"] = "group", _listed_groups(root / GROUPS, images)
    else:
        kind = "patient" if any(len(path.parts) > 2 for path in images) else "image"
        rows["group"] = _patients(images)
    table = ImageTable(place.name, root, rows.assign(path=rows["image_id"]), kind, tuple(skipped))
    notices = [
        f"{len(unread)} files in class folders are not read: {_counted(unread)}. What is read: {READ}." * bool(unread),
        f"no images in these class folders, which are left out: {', '.join(empty)}." * bool(empty),
        _level(rows) if kind == "patient" else "",
        _single(table),
        *_copies(table),
    ]
    for notice in filter(None, notices):
        warnings.warn(f"{root}: {notice}", stacklevel=3)
    return table


def _patients(images: list[PurePosixPath]) -> list[str]:
    """The lowest folder above each image that is no part of another patient's, by its path below the class."""
    below = [path.parts[1:-1] for path in images]
    holding = set(below)
    ends = [next((n for n in range(1, len(parts)) if parts[:n] in holding), len(parts)) for parts in below]
    return ["/".join(parts[:n]) or str(path) for path, parts, n in zip(images, below, ends, strict=True)]


def _level(rows: pd.DataFrame) -> str:
    """Which folder is the patient, if there is more than one above an image and below its class."""
    depth = rows["image_id"].str.count("/")
    if depth.max() < 3:
        return ""
    image_id, group = rows.loc[depth.idxmax(), ["image_id", "group"]]
    return (
        f"{depth.max()} levels of folders, as above {image_id}. Of these, {group} is taken for the patient: the "
        f"lowest, or the one above that holds images itself. That makes {rows['group'].nunique()} patients. If these "
        "are parts of one patient, such as slides, move their images into one folder, or list the group of each image "
        f"in {GROUPS} beside the class folders, with the columns path and group."
    )


def _single(table: ImageTable) -> str:
    """Classes of one image."""
    counts = table.rows["label"].value_counts()
    single = sorted(counts.index[counts == 1])
    return f"classes of one image ({len(single)}): {some(single)}. It has no other to find." if single else ""


def _copies(table: ImageTable) -> list[str]:
    """Files that hold the same bytes, links included: those of two classes, and those of two patients in one class."""
    row_of, labels, groups = {table.path(row): row for row in range(len(table))}, table.labels, table.groups
    pictures = [[row_of[file] for file in files] for files in alike(row_of)]
    torn = [rows for rows in pictures if len(set(labels[rows])) > 1]
    shared = [rows for rows in pictures if len(set(labels[rows])) == 1 and len(set(groups[rows])) > 1]
    kind, ids = table.group_kind, table.rows["image_id"]

    def named(twins: list[list[int]]) -> str:
        return f"({len(twins)}): {some([' = '.join(ids.iloc[rows]) for rows in twins])}"

    in_classes = "Their own copy counts as a wrong answer: keep each in one class."
    of_groups = f"With one {kind} left out, the copy is still found: keep each once."
    notices = [f"pictures in more than one class {named(torn)}. {in_classes}"] * bool(torn)
    return notices + [f"pictures of more than one {kind} {named(shared)}. {of_groups}"] * bool(
        shared and kind != "image"
    )


def _counted(files: Iterable[PurePosixPath]) -> str:
    """How many files there are of each ending, the most frequent first: "12 .svs, 1 .pdf"."""
    endings = Counter(path.suffix.lower() or "without ending" for path in files)
    return ", ".join(f"{n} {ending}" for ending, n in endings.most_common())


def _inner(root: Path, images: list[PurePosixPath]) -> str:
    """Where the classes seem to be if all images lie in sub-folders of one folder of `root`."""
    common = PurePosixPath(commonpath([path.parent for path in images]))
    below = sorted({path.relative_to(common).parts[0] for path in images if path.parent != common})
    return f" If {some(below)} are the classes, say DATA={root / common}." if len(below) > 1 else ""


def _listed_groups(csv: Path, images: list[PurePosixPath]) -> list[str]:
    """The group of each image, by its path or its name."""
    listed = read_csv(csv, ["path", "group"])
    keys = listed["path"].str.replace("\\", "/").str.strip().str.removeprefix("./").map(spelled)
    if twice := keys[keys.duplicated()].tolist():
        raise InputError(f"{csv}: {twice[0]} is listed more than once. Keep one row per image.")
    group_of = dict(zip(keys, listed["group"], strict=True))
    wanted = [key if (key := spelled(str(path))) in group_of else spelled(path.name) for path in images]
    if shared := [key for key, n in Counter(wanted).items() if n > 1 and key in group_of]:
        raise InputError(f"{csv}: several images are called {shared[0]}. List each by its path below the data folder.")
    if unlisted := [path for path, key in zip(images, wanted, strict=True) if key not in group_of]:
        raise InputError(
            f"{csv}: {len(unlisted)} of {len(images)} images have no row, such as {unlisted[0]}. Add them."
        )
    return [group_of[key] for key in wanted]
