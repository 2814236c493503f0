"""Loaders by name: the table of any dataset, or of your own class folders, from the folder where its images are."""

import difflib
import re
from functools import partial
from pathlib import Path
from typing import Any

from lib import paths
from lib.datasets import (
    bps,
    breakhis,
    cars,
    chest_xray,
    cub,
    folder,
    ham10000,
    in_shop,
    inaturalist,
    kather,
    odir,
    ovarian,
    radin_ct,
    sop,
    table,
)
from lib.datasets.catalogue import PRIVATE, missing
from lib.datasets.table import ImageTable
from lib.errors import InputError, MissingDataset

LOADERS = {
    **{name: partial(table.from_csv, name=name) for name in paths.DRAWN},
    "kather": kather.load,
    "breakhis": breakhis.load,
    **{f"bh{m.lower()}": partial(breakhis.load, magnification=m) for m in breakhis.MAGNIFICATIONS},
    "ham10000": ham10000.load,
    "odir": odir.load,
    "ovarian": ovarian.load,
    "cub": cub.load,
    "cars": cars.load,
    "sop": sop.load,
    "in_shop": in_shop.load,
    "inaturalist": inaturalist.load,
    "bps": bps.load,
    "radin_ct": radin_ct.load,
    "chest_xray": chest_xray.load,
    "folder": folder.load,
}


NOT_OWN = {"originals", "all"}
"""Names that mean something else: what was downloaded lies in data/originals, stages without images run on "all"."""


def own() -> list[str]:
    """Return the names of your own class folders: what is in (or linked into) ``data/`` and no other dataset."""
    if not paths.DATA.is_dir():
        return []
    names = (entry.name for entry in paths.DATA.iterdir() if entry.is_dir())
    others = {*LOADERS, *PRIVATE, *NOT_OWN}
    return sorted(name for name in names if re.fullmatch("[a-z0-9][a-z0-9_-]*", name) and name not in others)


def load(name: str, root: Path, **options: Any) -> ImageTable:
    """Return the table of dataset `name` in the folder `root`; no image is decoded.

    name: a dataset of `LOADERS`, or one of your own (:func:`own`), which is loaded as class folders; breakhis is all
        of BreakHis, bh200x its images at 200X.
    options: what the loader of that dataset takes, such as on_missing="error" for ham10000.
    Raises InputError for an unknown name, MissingDataset if the dataset is private or not in `root`.
    """
    if name in PRIVATE:
        raise MissingDataset(PRIVATE[name])
    loaders = LOADERS | dict.fromkeys(own(), partial(folder.load, name=name))
    if name not in loaders:
        close = difflib.get_close_matches(name, loaders, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        raise InputError(
            f"unknown dataset {name!r}.{hint} Known: {', '.join(loaders)}. "
            "Your own class folders get a name with: make reproduce PROFILE=sample DATA=<folder> NAME=<name>."
        )
    root = Path(root)
    if not root.is_dir():
        raise missing(name, root, "is not a folder" if root.exists() else "does not exist")
    return loaders[name](root, **options)
