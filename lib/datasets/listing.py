"""Datasets whose images are listed in a file: the list is read, and every image found by the end of its path."""

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Literal

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable
from lib.errors import InputError

OnMissing = Literal["skip", "error"]


def locate(root: Path, name: str) -> Path | None:
    """Return the file called `name` below `root`, the one that lies least deep; None if there is none."""
    found = [path for path in visible_files(root) if path.name == name]
    return root / min(found, key=lambda path: len(path.parts)) if found else None


def read_words(file: Path, columns: Sequence[str], skip: int = 0) -> pd.DataFrame:
    """Return a list with blanks between its columns and their names above, every value as text.

    skip: lines before the names. Raises InputError naming the file, and the column if one of `columns` is missing.
    """
    try:
        rows = pd.read_csv(file, sep=r"\s+", skiprows=skip, dtype=str, keep_default_na=False, index_col=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as a list ({error}). Take the original file.") from error
    lacking = [column for column in columns if column not in rows]
    if lacking or not rows[list(columns)].fillna("").all(axis=None):  # text is true unless it is empty
        what = f"no column {', '.join(lacking)}" if lacking else "a line that breaks off"
        raise InputError(f"{file}: has {what}; expected the columns {', '.join(columns)}. Take the original file.")
    return rows


def listed(name: str, root: Path, rows: pd.DataFrame, on_missing: OnMissing) -> ImageTable:
    """Return the table of the listed images that are somewhere below `root`; every image is a group of its own.

    rows: columns image_id, path as the list has it (car_ims/000001.jpg), label, and extras, in the order of the list.
    on_missing: rows without a file are left out and listed in ``skipped``, or an InputError. Images that no row lists,
    and second files of an image, are in ``skipped`` as well.
    Raises MissingDataset if there are no images at all.
    """
    if on_missing not in ("skip", "error"):
        raise InputError(f"on_missing={on_missing!r} is unknown. Use 'skip' or 'error'.")
    wanted = set(rows["path"])
    depths = {len(PurePosixPath(path).parts) for path in wanted}
    files: dict[str, str] = {}
    skipped = []
    for path in filter(is_image, visible_files(root)):
        ends = ("/".join(path.parts[-depth:]) for depth in depths)
        end = next((end for end in ends if end in wanted), None)
        if end is None:
            skipped.append((str(path), "not in the list of images"))
        elif end in files:
            skipped.append((str(path), f"a second file of this image, {files[end]} is used"))
        else:
            files[end] = str(path)
    if not files:
        raise missing(name, root, f"holds none of the {len(rows):,} images that are listed")
    there = rows["path"].isin(files)
    if on_missing == "error" and not there.all():
        raise InputError(
            f"{name}: {(~there).sum():,} of {len(rows):,} listed images have no file below {root}, "
            f"such as {rows.loc[~there, 'path'].iloc[0]}. Add the images, or load with on_missing='skip'."
        )
    skipped += [(image_id, "no image file") for image_id in rows.loc[~there, "image_id"]]
    rows = rows[there].assign(group=rows["image_id"], path=rows["path"].map(files))
    return ImageTable(name, root, rows, "image", tuple(skipped))
