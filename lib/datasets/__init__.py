"""Images with labels and groups: one table per dataset, and folds over it."""

import difflib
from functools import partial
from pathlib import Path
from typing import Any

from lib.datasets import breakhis, folder, folds, ham10000, kather, ovarian, table
from lib.datasets.catalogue import DATASETS, PRIVATE, missing
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import InputError, MissingDataset

__all__ = ["DATASETS", "ImageTable", "folds", "load", "read_image"]

LOADERS = {
    "tissue": table.from_csv,
    "kather": kather.load,
    "breakhis": breakhis.load,
    **{f"bh{m.lower()}": partial(breakhis.load, magnification=m) for m in breakhis.MAGNIFICATIONS},
    "ham10000": ham10000.load,
    "ovarian": ovarian.load,
    "folder": folder.load,
}


def load(name: str, root: Path, **options: Any) -> ImageTable:
    """Return the table of dataset `name` in the folder `root`; no image is decoded.

    name: a dataset of `LOADERS`; breakhis is all of BreakHis, bh200x its images at 200X.
    options: what the loader of that dataset takes, such as on_missing="error" for ham10000.
    Raises InputError for an unknown name, MissingDataset if the dataset is private or not in `root`.
    """
    if name in PRIVATE:
        raise MissingDataset(PRIVATE[name])
    if name not in LOADERS:
        close = difflib.get_close_matches(name, LOADERS, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(f"unknown dataset {name!r}.{hint} Known: {', '.join(LOADERS)}.")
    root = Path(root)
    if not root.is_dir():
        raise missing(name, root, "is not a folder" if root.exists() else "does not exist")
    return LOADERS[name](root, **options)
