"""Which datasets lie below a folder? Known ones by their original layout, without opening an image; else your own."""

import os
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

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
    loaders,
    odir,
    ovarian,
    radin_ct,
)
from lib.datasets.catalogue import PRIVATE
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import check_names
from lib.errors import InputError

DEPTH = 5  # BreaKHis_v1/histology_slides/breast lies three below the folder that it was unpacked in
RESERVED = {*loaders.LOADERS, *PRIVATE, *loaders.NOT_OWN} - {"folder"}


@dataclass(frozen=True)
class Layout:
    """How a dataset is published: a folder that holds these class folders, or this file, and how its images are named.

    ``file``: its path from that folder, so that Eval/list_eval_partition.txt lies in Eval, beside the images.
    ``by_folder``: the name is that of the folder in which an image lies.

    A part of a dataset is that dataset while every class folder has an image. Any other folder with images beside the
    class folders, or more than half of the images under other names, make it somebody's own.
    """

    image: re.Pattern[str]
    folders: frozenset[str] = frozenset()
    file: str | None = None
    by_folder: bool = False

    def fits(self, here: Path, folders: set[str]) -> bool:
        """Whether `here`, with these `folders` in it, is laid out so."""
        if not self.folders <= folders or (self.file is not None and not (here / self.file).is_file()):
            return False
        images = [path for path in visible_files(here) if is_image(path)]
        classes = {path.parts[0] for path in images if len(path.parts) > 1}
        names = [path.parent.name if self.by_folder else path.stem for path in images]
        named = sum(bool(self.image.fullmatch(name)) for name in names)
        return 2 * named >= len(images) > 0 and self.folders in (frozenset(), classes)


LAYOUTS = (
    ("kather", Layout(kather.TILE, folders=frozenset(kather.FOLDERS))),
    ("breakhis", Layout(breakhis.NAME, folders=frozenset({"benign", "malignant"}))),
    ("ham10000", Layout(re.compile(r"ISIC_\d+.*"), file=ham10000.METADATA)),
    ("odir", Layout(re.compile(r"\d+_(left|right)"), file=odir.METADATA)),
    ("ovarian", Layout(re.compile(r".*"), folders=frozenset(ovarian.FOLDERS))),
    ("cub", Layout(cub.SPECIES, folders=frozenset({"images"}), by_folder=True)),
    ("cars", Layout(re.compile(r"\d{6}"), file=cars.ALL)),
    ("cars", Layout(re.compile(r"\d{5}"), folders=frozenset(cars.PARTS.values()))),
    ("sop", Layout(re.compile(r"\d+_\d+"), file="Ebay_train.txt")),
    ("in_shop", Layout(re.compile(r"\d+_\d+_[a-z]+"), file=f"Eval/{in_shop.LIST}")),
    ("inaturalist", Layout(re.compile(r"[0-9a-f]{32}"), file=inaturalist.LISTS["train"])),
    ("bps", Layout(re.compile(rf"{bps.SLIDE.pattern}|{bps.REGION.pattern}"), folders=frozenset(bps.FOLDERS))),
    ("radin_ct", Layout(re.compile(r".*"), file=radin_ct.LISTS["train"])),
    ("radin_ct", Layout(re.compile(r".*"), folders=frozenset(radin_ct.FOLDERS))),
    ("chest_xray", Layout(chest_xray.FILE, folders=frozenset(chest_xray.FOLDERS))),
    ("chest_xray", Layout(chest_xray.FILE, folders=frozenset(map(str.upper, chest_xray.FOLDERS)))),
)
"""Every dataset that is recognised, with its layout; one that was published twice has two."""


def find(root: Path, name: str | None = None) -> dict[str, Path]:
    """Return the datasets below ``root``: name → its folder, the first in breadth-first order of each.

    Without a name, known datasets are looked for (:data:`LAYOUTS`); where there is none and ``root`` itself holds class
    folders with images, they are your own, under the name :func:`own_name` of the folder. With the name of a known
    dataset, ``root`` is taken for that one; with any other, for your own class folders, whatever they look like.
    Each BreakHis magnification is a dataset of its own, as in the paper.

    Raises:
        InputError: if ``root`` is not a folder, is not the dataset that it is said to be, or its class folders cannot
            be used (:func:`lib.datasets.folder.load` says why).
    """
    if not root.is_dir():
        raise InputError(f"DATA={root} is not a folder; say where your images are")
    if name and (known := _slug(name)) in _known_names():
        return _said_to_be(root, known)
    if name:
        return _own(root, name)
    if found := _known(root):
        if beside := _beside(root, found):
            warnings.warn(
                f"Not used, because no dataset that I know: {', '.join(beside)} in {root}. "
                "For one of them as your own images: DATA=<that folder>.",
                stacklevel=2,
            )
        return found
    images = [path for path in visible_files(root) if is_image(path) and len(path.parts) > 1]
    for dataset, image in (("kather", kather.TILE), ("breakhis", breakhis.NAME)):
        if named := sum(bool(image.fullmatch(path.stem)) for path in images):
            warnings.warn(
                f"{root}: {named} of {len(images)} images are named like those of {dataset}, but not all of its "
                f"folders are there, or others are: taken as your own images. NAME={dataset} takes these {named} only.",
                stacklevel=2,
            )
    return _own(root, root.resolve().name) if images else {}


def link(data: Path, name: str | None = None) -> dict[str, Path]:
    """Link every dataset that :func:`find` finds below ``data`` into ``data/`` of the project; returns name → folder.

    A known dataset that was put into ``data/`` by hand is used as it is, with a warning.

    Raises:
        InputError: if there is no dataset below ``data``, ``data/`` has a folder of your own under the same name, or
            one of the files cannot be read (:func:`check_files`).
    """
    found = find(data, name)
    if not found:
        raise InputError(
            f"{data} holds no dataset that I know and no class folders with images{_others(data)}. Known: the original "
            "layouts of Kather 2016, BreakHis, HAM10000, ODIR-5K, CUB-200-2011, Cars-196, Stanford Online Products, "
            "In-Shop, iNaturalist 2018, RadImageNet, the patches of BPS, the ovarian set and chest radiographs; your "
            "own images need one sub-folder per class"
        )
    paths.DATA.mkdir(exist_ok=True)
    linked = {dataset: _linked(dataset, place, named=name is not None) for dataset, place in found.items()}
    for place in linked.values():
        check_files(place)
    return linked


def check_files(root: Path) -> None:
    """Raise InputError, naming the first, for files below `root` that are not there, not readable or not nameable.

    DVC reads every file of a folder before a stage runs, and has no words for these. Hidden ones it leaves alone.
    """
    files = visible_files(root)
    check_names(map(str, files))
    lost = [file for path in files if not (file := root / path).is_file() or not os.access(file, os.R_OK)]
    if lost:
        why = f"a link to {lost[0].readlink()}, where no file is" if lost[0].is_symlink() else "cannot be read"
        more = f", and {len(lost) - 1} more like it" * (len(lost) > 1)
        raise InputError(f"{lost[0]}: {why}{more}. Mend, move or remove it.")


def _others(root: Path) -> str:
    """What else lies below ``root``, by ending, for a message: slides that have to be cut into tiles first, say."""
    endings = Counter(path.suffix.lower() for path in visible_files(root) if path.suffix)
    counted = ", ".join(f"{n} {ending}" for ending, n in endings.most_common(5))
    return (
        f"; it holds {counted}, of which none is read here (cut slides into tiles, save them as PNG)" if counted else ""
    )


def own_name(text: str) -> str:
    """Return the name under which your own images are kept, from the name of their folder or what you call them.

    Lower case ASCII letters, digits, - and _, beginning with a letter or a digit; everything else becomes -. Where
    that is a name with a meaning here (a known dataset, the folder of downloads) or would be read as a number, a date
    or yes and no, ``own-`` is put in front; where nothing is left, it is ``own``.

    >>> own_name("My Slides (2024)"), own_name("Kather"), own_name("2024"), own_name("组织")
    ('my-slides-2024', 'own-kather', 'own-2024', 'own')
    """
    slug = _slug(text) or "own"
    return f"own-{slug}" if slug in RESERVED or not _is_text(slug) else slug


def _slug(text: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", ascii_only)[:60].strip("-_")


def _is_text(slug: str) -> bool:
    """Whether YAML and the command line read it as text, not as a number, a date or a truth value."""
    try:
        float(slug)
    except ValueError:
        return isinstance(yaml.safe_load(slug), str)
    return False


def _known_names() -> set[str]:
    """What a folder can be said to be; the tiles of the demo are drawn, not found."""
    return set(loaders.LOADERS) - {*paths.DRAWN, "folder"}


def _known(root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for here, folders, _ in _walk(root):
        for dataset, layout in LAYOUTS:
            if layout.fits(here, folders):
                for name in _names(dataset, here):
                    found.setdefault(name, here)
    return found


def _said_to_be(root: Path, name: str) -> dict[str, Path]:
    """`name` where it lies below `root`, in its layout, or in what `root` holds of it."""
    wanted = {f"bh{m.lower()}" for m in breakhis.MAGNIFICATIONS} if name == "breakhis" else {name}
    if found := {key: place for key, place in _known(root).items() if key in wanted}:
        return found
    marked = (here for here, _, files in _walk(root) if name == "ham10000" and ham10000.METADATA in files)
    place = next(marked, root)
    loaders.load(name, place)  # raises MissingDataset if it is not that
    return dict.fromkeys(_names(name, place), place)


def _names(dataset: str, place: Path) -> list[str]:
    """The datasets that a dataset is: itself, or the magnifications of BreakHis that are there."""
    if dataset != "breakhis":
        return [dataset]
    return [f"bh{m.lower()}" for m in sorted(set(breakhis.load(place).rows["magnification"]))]


def _beside(root: Path, found: dict[str, Path]) -> list[str]:
    """Folders in `root` with images that belong to none of the datasets found."""
    others = [
        here
        for here in sorted(root.iterdir())
        if here.is_dir()
        and not any(place.is_relative_to(here) or here.is_relative_to(place) for place in found.values())
    ]
    return [here.name for here in others if here.name[0] != "." and any(map(is_image, visible_files(here)))]


def _own(root: Path, text: str) -> dict[str, Path]:
    folder.load(root, own_name(text))  # says what is wrong with the folder before anything runs
    return {own_name(text): root}


def _linked(name: str, target: Path, named: bool) -> Path:
    """The folder of dataset `name` after ``data/<name>`` leads to `target`, or the one that was put there by hand."""
    place = paths.DATA / name
    by_hand = place.exists() and not place.is_symlink() and place.resolve() != target.resolve()
    if by_hand and name not in RESERVED:
        raise InputError(f"{place} is there already, and is not {target}. Give yours another name: NAME=<name>")
    if by_hand:
        warnings.warn(f"{place} is used, not {target}; remove or rename it to use the other.", stacklevel=3)
        return place
    if place.is_symlink() and place.resolve() != target.resolve():
        if name not in RESERVED and not named:
            raise InputError(
                f"{name} is the name of {place.resolve()} already. Give {target} another one with NAME=<name>, or say "
                f"NAME={name}: the results of the other are then cleared"
            )
        if name not in RESERVED:
            warnings.warn(f"{name} was {place.resolve()} and is {target} from now on.", stacklevel=3)
        place.unlink()
    if not place.exists():
        place.symlink_to(target.resolve(), target_is_directory=True)
    return target


def _walk(root: Path) -> Iterator[tuple[Path, set[str], set[str]]]:
    """Folders below ``root`` level by level: path, names of sub-folders, names of files."""
    level = [root]
    for _ in range(DEPTH):
        below = []
        for here in level:
            entries = [entry for entry in os.scandir(here) if not entry.name.startswith(".")]
            folders = sorted(entry.name for entry in entries if entry.is_dir())
            yield here, set(folders), {entry.name for entry in entries if entry.is_file()}
            below += [here / name for name in folders]
        level = below
