"""The datasets that are known: how each is recognised and read; and the table of any, or of your own class folders."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lib import paths
from lib.datasets import folder, lists, named, radin_ct
from lib.datasets.catalogue import DATASETS, PRIVATE, missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.reading import Place
from lib.datasets.table import ImageTable
from lib.errors import InputError, MissingDataset, suggestion


@dataclass(frozen=True)
class Mark:
    """How a dataset is published: a folder with these class folders or this file, and names of images.

    image: what names match. folders: all of them hold images, and no other folder does. file: its path from the folder,
    so that Eval/list_eval_partition.txt lies in Eval, beside the images. by_folder: the names are those of the folders
    in which the images lie.
    """

    image: str
    folders: frozenset[str] = frozenset()
    file: str = ""
    by_folder: bool = False

    def fits(self, here: Path, folders: set[str]) -> bool:
        """Whether ``here``, which holds ``folders``, is laid out so; half of the images may have other names."""
        if not self.folders <= folders or (self.file and not (here / self.file).is_file()):
            return False
        images = [path for path in visible_files(here) if is_image(path)]
        classes = {path.parts[0] for path in images if len(path.parts) > 1}
        names = [path.parent.name if self.by_folder else path.stem for path in images]
        matching = sum(bool(re.fullmatch(self.image, name)) for name in names)
        return 2 * matching >= len(images) > 0 and self.folders in (frozenset(), classes)


@dataclass(frozen=True)
class Layout:
    """How a dataset is read and recognised; one that was published twice has two marks."""

    read: Callable[[Place], ImageTable]
    marks: tuple[Mark, ...] = ()


OWN = Layout(folder.read)
CHEST = (frozenset(named.CHEST), frozenset(map(str.upper, named.CHEST)))
PATCH = f"{named.SLIDE.pattern}|{named.REGION.pattern}"
LAYOUTS: dict[str, Layout] = {
    **dict.fromkeys(paths.DRAWN, Layout(lists.drawn)),
    "kather": Layout(named.kather, (Mark(named.TILE.pattern, frozenset(named.KATHER)),)),
    "breakhis": Layout(named.breakhis, (Mark(named.BREAKHIS.pattern, frozenset({"benign", "malignant"})),)),
    **{f"bh{magnification.lower()}": Layout(named.breakhis) for magnification in DATASETS["breakhis"].magnifications},
    "ham10000": Layout(lists.ham10000, (Mark(r"ISIC_\d+.*", file=lists.HAM10000),)),
    "odir": Layout(lists.odir, (Mark(r"\d+_(left|right)", file=lists.ODIR),)),
    "ovarian": Layout(named.ovarian, (Mark(".*", frozenset(named.OVARIAN)),)),
    "cub": Layout(named.cub, (Mark(named.SPECIES.pattern, frozenset({"images"}), by_folder=True),)),
    "cars": Layout(
        lists.cars,
        (Mark(r"\d{6}", file=lists.CARS), Mark(r"\d{5}", frozenset(lists.CAR_PARTS.values()))),
    ),
    "sop": Layout(lists.sop, (Mark(r"\d+_\d+", file="Ebay_train.txt"),)),
    "in_shop": Layout(lists.in_shop, (Mark(r"\d+_\d+_[a-z]+", file=f"Eval/{lists.IN_SHOP}"),)),
    "inaturalist": Layout(lists.inaturalist, (Mark(r"[0-9a-f]{32}", file=lists.INATURALIST["train"]),)),
    "bps": Layout(named.bps, (Mark(PATCH, frozenset(named.BPS)),)),
    "radin_ct": Layout(
        radin_ct.read,
        (Mark(".*", file=radin_ct.LISTS["train"]), Mark(".*", frozenset(radin_ct.FOLDERS))),
    ),
    "chest_xray": Layout(named.chest_xray, tuple(Mark(named.RADIOGRAPH.pattern, folders) for folders in CHEST)),
    "folder": OWN,
}
"""Every dataset of the catalogue. Where it comes from, and what is missing without it, the catalogue says."""

NOT_OWN = {"originals", "all"}
"""Names that mean something else: what was downloaded lies in data/originals, stages without images run on "all"."""


def own() -> list[str]:
    """Return the names of your own class folders: what is in (or linked into) ``data/`` and no other dataset."""
    if not paths.DATA.is_dir():
        return []
    names = (entry.name for entry in paths.DATA.iterdir() if entry.is_dir())
    others = {*LAYOUTS, *PRIVATE, *NOT_OWN}
    return sorted(name for name in names if re.fullmatch("[a-z0-9][a-z0-9_-]*", name) and name not in others)


def load(name: str, root: Path) -> ImageTable:
    """Return the table of dataset `name` in the folder `root`; no image is decoded.

    name: a dataset of :data:`LAYOUTS`, or one of your own (:func:`own`), which is loaded as class folders; breakhis is
        all of BreakHis, bh200x its images at 200X. What was left out is in the table's ``skipped``.

    Raises InputError for an unknown name or a file of another kind, MissingDataset if the dataset is private or not in
    `root`.
    """
    if name in PRIVATE:
        raise MissingDataset(PRIVATE[name])
    if name not in (known := [*LAYOUTS, *own()]):
        raise InputError(
            f"unknown dataset {name!r}: {suggestion(name, known)} "
            "(your own class folders get a name with: make reproduce PROFILE=sample DATA=<folder> NAME=<name>)"
        )
    root = Path(root)
    if not root.is_dir():
        raise missing(name, root, "is not a folder" if root.exists() else "does not exist")
    return LAYOUTS.get(name, OWN).read(Place(name, root))
