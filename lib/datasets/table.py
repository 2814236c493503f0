"""The table of a dataset: one row per image with its label and its group."""

import json
import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from lib import paths
from lib.checks import spelled
from lib.errors import InputError
from lib.files import whole

COLUMNS = ("image_id", "path", "label", "group")
UNWRITABLE = re.compile("[\r\ud800-\udfff]")
"""A carriage return, which CSV gives back as the end of a row, and what Python makes of bytes that are not UTF-8."""


@dataclass(frozen=True, eq=False)
class ImageTable:
    """Images with labels and groups, all below one folder.

    name: dataset; root: folder; rows: columns image_id (unique), path (relative to root), label, group, extras.
    group_kind: what a group is (patient, lesion, slide, image, ...): its images belong on one side of a split.
    skipped: (what, why) of everything that was left out.

    Labels and groups are stripped and brought to one Unicode form (:func:`lib.checks.spelled`): "nv " and nv, or café
    in two normal forms, are one class, with a warning that names the spellings. BKL and bkl may be one class or two: an
    InputError. Groups that differ in capitals are two groups.

    Raises InputError for a missing column, an empty value in one of the four, an image_id that occurs twice, labels
    that differ in capitals only, and names that no table can hold: with a carriage return, or of bytes that are no
    UTF-8.
    """

    name: str
    root: Path
    rows: pd.DataFrame
    group_kind: str
    skipped: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        rows = self.rows.reset_index(drop=True)
        lacking = [column for column in COLUMNS if column not in rows]
        if lacking:
            raise InputError(f"{self.name}: the table has no column {', '.join(lacking)}. Add it.")
        for column in COLUMNS:
            blank = rows[column].isna() | (rows[column].astype(str).str.strip() == "")
            if blank.any():
                empty = rows.loc[blank, "path" if column == "image_id" else "image_id"].tolist()
                raise InputError(
                    f"{self.name}: {len(empty)} rows have no {column}, such as {some(empty)}. "
                    "Fill it in or remove the rows."
                )
            rows[column] = rows[column].astype(str)
            check_names(rows[column])
        check_names(what for what, _ in self.skipped)
        for column in ("label", "group"):
            rows[column] = self._one_spelling(rows[column])
        self._check_capitals(rows["label"])
        twice = rows[rows["image_id"].duplicated(keep=False)].sort_values("image_id")
        if len(twice):
            image_id, files = twice["image_id"].iloc[0], twice["path"][:2].tolist()
            raise InputError(
                f"{self.name}: {twice['image_id'].nunique()} image_ids occur more than once, such as {image_id} "
                + (
                    f"in {some(files)}. Keep one file of each, or name the sub-folder that holds each image once."
                    if len(set(files)) > 1
                    else f"in two rows of the list of images, for one file {files[0]}. Keep one row of each."
                )
            )
        object.__setattr__(self, "root", Path(self.root))
        object.__setattr__(self, "rows", rows)

    def _one_spelling(self, values: pd.Series) -> pd.Series:
        """`values` as :func:`spelled`, with a warning if several spellings become one."""
        spellings = pd.Series(values.unique())
        names = spellings.map(spelled)
        alike = names.duplicated(keep=False)
        for name, variants in spellings[alike].groupby(names[alike]):
            warnings.warn(
                f"{self.name}: {', '.join(map(ascii, sorted(variants)))} are taken as one {values.name}, {name}.",
                stacklevel=4,
            )
        return values.map(spelled)

    def _check_capitals(self, labels: pd.Series) -> None:
        counts = labels.value_counts()
        names = counts.index.str.casefold()
        alike = names.duplicated(keep=False)
        for _, variants in counts[alike].groupby(names[alike]):
            named = " and ".join(f"{label} ({n} images)" for label, n in variants.sort_index().items())
            raise InputError(
                f"{self.name}: the labels {named} differ in capitals only. Spell them alike if they are one class, "
                "else rename one."
            )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def labels(self) -> np.ndarray:
        """(n,) labels as str."""
        return self.rows["label"].to_numpy(dtype=str)

    @property
    def groups(self) -> np.ndarray:
        """(n,) groups as str."""
        return self.rows["group"].to_numpy(dtype=str)

    @property
    def codes(self) -> np.ndarray:
        """(n,) labels as numbers, in the order of ``classes``."""
        return np.unique(self.labels, return_inverse=True)[1]

    @property
    def classes(self) -> list[str]:
        """The labels that occur, sorted."""
        return sorted(set(self.rows["label"]))

    def path(self, i: int) -> Path:
        """Return the file of row `i`."""
        return self.root / self.rows["path"].iloc[i]

    def take(self, image_ids: Sequence[str]) -> "ImageTable":
        """Return the table of these images, in this order; an unknown image_id is an InputError."""
        places = pd.Index(self.rows["image_id"]).get_indexer(list(image_ids))
        unknown = [image_id for image_id, i in zip(image_ids, places, strict=True) if i < 0]
        if unknown:
            raise InputError(
                f"{self.name}: {len(unknown)} of {len(places)} image_ids are not in the table, such as "
                f"{some(unknown)}. They belong to another dataset or to another version of this one."
            )
        return replace(self, rows=self.rows.iloc[places])

    def write(self, target: Path) -> None:
        """Write the rows to ``target`` (.csv), and to a .json of the same name what the images are and where."""
        root = Path.cwd() / self.root  # not resolved: data/kather may be a link to a folder elsewhere
        root = root.relative_to(paths.ROOT) if root.is_relative_to(paths.ROOT) else root
        about = {"name": self.name, "root": str(root), "group_kind": self.group_kind, "skipped": self.skipped}
        with whole(target) as draft:
            self.rows.to_csv(draft, index=False, lineterminator="\n")
        with whole(target.with_suffix(".json")) as draft:
            draft.write_text(json.dumps(about, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> "ImageTable":
        """The table that :meth:`write` wrote, every value as text; InputError if it is not there."""
        if not (path.is_file() and path.with_suffix(".json").is_file()):
            raise InputError(f"There is no table of images {path}: write it with python -m lib.datasets.")
        about = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        skipped = tuple((what, why) for what, why in about["skipped"])
        return cls(about["name"], paths.ROOT / about["root"], read_csv(path, COLUMNS), about["group_kind"], skipped)


def check_names(names: Iterable[str]) -> None:
    """Raise InputError for the first name that a CSV file in UTF-8 cannot hold, as some file systems allow it.

    >>> check_names(["Größe.png", "M\\udcfcller.png"])
    Traceback (most recent call last):
    lib.errors.InputError: M\\xfcller.png: the name is no UTF-8. Rename the file or folder.
    """
    for name in names:
        if match := UNWRITABLE.search(name):
            shown = name.encode(errors="surrogateescape").decode(errors="backslashreplace").replace("\r", "\\r")
            fault = "holds a carriage return" if match[0] == "\r" else "is no UTF-8"
            raise InputError(f"{shown}: the name {fault}. Rename the file or folder.")


def read_csv(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    """Return a CSV file with every value as text, so that 007 keeps its zeros and a class may be called NA.

    Raises InputError naming the file, and the column if one of `columns` is missing.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            rows = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except (OSError, ValueError, pd.errors.ParserWarning) as error:
        raise InputError(f"{path}: cannot be read as CSV ({error}). Save it as UTF-8 CSV.") from error
    lacking = [column for column in columns if column not in rows]
    if lacking:
        raise InputError(
            f"{path}: no column {', '.join(lacking)}; it has {', '.join(map(str, rows.columns))}. "
            "Take the original file or rename the column."
        )
    return rows


def some(values: Sequence[str], n: int = 3) -> str:
    """The first `n` values, for a message.

    >>> some(["a", "b", "c", "d"])
    'a, b, c, ...'
    """
    return ", ".join(map(str, values[:n])) + (", ..." if len(values) > n else "")
