"""How the table of a dataset is read: from the paths of its images, or from a list of them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import COLUMNS, ImageTable, check_names
from lib.errors import MissingDataset

UNLISTED = "not in the list of images"


@dataclass(frozen=True)
class Place:
    """A folder that dataset ``name`` is read from, and the files below it."""

    name: str
    root: Path

    @cached_property
    def files(self) -> list[PurePosixPath]:
        """All visible files, relative to the folder and sorted; InputError for a name that no table can hold."""
        files = visible_files(self.root)
        check_names(map(str, files))
        return files

    @property
    def images(self) -> list[PurePosixPath]:
        """Those that are images, by their ending."""
        return list(filter(is_image, self.files))

    def find(self, file: str) -> Path | None:
        """The file of that name that lies least deep; None if there is none."""
        places = [path for path in self.files if path.name == file]
        return self.root / min(places, key=lambda path: len(path.parts)) if places else None

    def need(self, file: str) -> Path:
        """As :meth:`find`; MissingDataset if there is none."""
        if (place := self.find(file)) is None:
            raise self.missing(f"has no {file}")
        return place

    def missing(self, why: str) -> MissingDataset:
        """The error for a dataset that is not here; ``why`` completes the sentence after the folder."""
        return missing(self.name, self.root, why)


def from_paths(
    place: Place, row_of: Callable[[PurePosixPath], dict[str, Any] | str | None], group_kind: str, what: str
) -> ImageTable:
    """The table of images whose paths say all.

    row_of: path → the columns of its row without the path, or why the image is left out; None for one that belongs to
        another dataset. Without a group, an image is a group of its own.
    what: the images' name in the error for a folder that has none.

    Raises MissingDataset if no image is left, InputError for two with the same image_id.
    """
    rows, skipped = [], []
    for path in place.images:
        row = row_of(path)
        if isinstance(row, str):
            skipped.append((str(path), row))
        elif row is not None:
            rows.append({"path": str(path), "group": row["image_id"]} | row)
    if not rows:
        raise place.missing(f"holds no {what} ({len(place.images)} other images)")
    return _table(place, pd.DataFrame(rows), group_kind, skipped)


def from_list(place: Place, rows: pd.DataFrame, group_kind: str = "image", endings: bool = True) -> ImageTable:
    """The table of the listed images that lie somewhere below the folder.

    rows: columns image_id, path as the list has it (car_ims/000001.jpg), label, and extras, in the order of the list. A
        file is found by the end of its path. Without a column group, an image is a group of its own.
    endings: whether listed paths have the file's ending.

    Rows without a file, images that no row lists and second files of an image are left out and listed in ``skipped``.
    Raises MissingDataset if no listed image is there.
    """
    wanted = set(rows["path"])
    depths = {len(PurePosixPath(path).parts) for path in wanted}
    files: dict[str, str] = {}
    skipped = []
    for path in place.images:
        parts = (path if endings else path.with_suffix("")).parts
        listed = next((end for depth in depths if (end := "/".join(parts[-depth:])) in wanted), None)
        if listed is None:
            skipped.append((str(path), UNLISTED))
        elif listed in files:
            skipped.append((str(path), f"a second file of this image, {files[listed]} is used"))
        else:
            files[listed] = str(path)
    if not files:
        raise place.missing(f"holds none of the {len(rows):,} images that are listed")
    there = rows["path"].isin(files)
    left = set(rows.loc[there, "label"])
    for image_id, label in rows.loc[~there, ["image_id", "label"]].itertuples(index=False):
        skipped.append((image_id, "no image file" if label in left else "no image file, as for all of its label"))
    rows = rows[there].assign(path=rows["path"].map(files))
    return _table(place, rows if "group" in rows else rows.assign(group=rows["image_id"]), group_kind, skipped)


def _table(place: Place, rows: pd.DataFrame, group_kind: str, skipped: list[tuple[str, str]]) -> ImageTable:
    extras = [column for column in rows if column not in COLUMNS]
    return ImageTable(place.name, place.root, rows[[*COLUMNS, *extras]], group_kind, tuple(skipped))
