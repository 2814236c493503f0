"""Which datasets lie below a folder? Known ones by their original layout, without opening an image; else your own."""

import os
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import yaml

from lib import paths
from lib.datasets import folder, loaders
from lib.datasets.catalogue import PRIVATE, facts
from lib.datasets.images import is_image, visible_files
from lib.datasets.loaders import LAYOUTS
from lib.datasets.reading import Place
from lib.datasets.table import ImageTable, check_names
from lib.errors import InputError

DEPTH = 5  # BreaKHis_v1/histology_slides/breast lies three below the folder that it was unpacked in
RESERVED = {*LAYOUTS, *PRIVATE, *loaders.NOT_OWN} - {"folder"}


def find(root: Path, name: str | None = None) -> dict[str, Path]:
    """Return the datasets below ``root``: name → its folder, the first in breadth-first order of each.

    Without a name, known datasets are looked for (:data:`lib.datasets.loaders.LAYOUTS`). If there is none and ``root``
    itself holds class folders with images, they are your own, under the name :func:`own_name` of the folder. With the
    name of a known dataset, ``root`` is taken for that one; with any other, for your own class folders, whatever they
    look like. Each BreakHis magnification is a dataset of its own, as in the paper.

    Raises:
        InputError: if ``root`` is not a folder, is not the named dataset, or its class folders cannot be used
            (:func:`lib.datasets.folder.read` says why).
    """
    if not root.is_dir():
        raise InputError(f"DATA={root} is not a folder; say where your images are")
    if name and (known := _slug(name)) in set(LAYOUTS) - {*paths.DRAWN, "folder"}:
        return _named(root, known)
    if name:
        return _own(root, name)
    if places := _known(root):
        if others := _others(root, places):
            warnings.warn(
                f"Not used, because no known dataset: {', '.join(others)} in {root}. "
                "For one of them as your own images: DATA=<that folder>.",
                stacklevel=2,
            )
        return places
    images = [path for path in visible_files(root) if is_image(path) and len(path.parts) > 1]
    for dataset in ("kather", "breakhis"):
        pattern = LAYOUTS[dataset].marks[0].image
        if matching := sum(bool(re.fullmatch(pattern, path.stem)) for path in images):
            warnings.warn(
                f"{root}: {matching} of {len(images)} images are named like those of {dataset}, but not all of its "
                f"folders are there, or others are: taken as your own images. NAME={dataset} takes these {matching} "
                "only.",
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
    places = found(data, name)
    paths.DATA.mkdir(exist_ok=True)
    linked = {dataset: _linked(dataset, place, named=name is not None) for dataset, place in places.items()}
    for place in linked.values():
        check_files(place)
    return linked


def found(data: Path, name: str | None = None) -> dict[str, Path]:
    """What :func:`find` finds below ``data``; InputError, saying what it holds instead, if there is no dataset."""
    places = find(data, name)
    if not places:
        endings = Counter(path.suffix.lower() for path in visible_files(data) if path.suffix)
        counted = ", ".join(f"{n} {ending}" for ending, n in endings.most_common(5))
        slides = f"; it holds {counted}, none of which is read here (cut slides into tiles, save them as PNG)"
        raise InputError(
            f"{data} holds no known dataset and no class folders with images{slides if counted else ''}. Known are the "
            f"original layouts of {', '.join(facts(known).title for known, of in LAYOUTS.items() if of.marks)}; your "
            "own images need one sub-folder per class"
        )
    return places


def tables(data: Path, name: str | None = None) -> list[ImageTable]:
    """The table of every dataset below ``data``, of images that may all be read; nothing is linked into ``data/``.

    Arguments and errors as for :func:`find` and :func:`check_files`; InputError also if there is no dataset.
    """
    read = []
    for dataset, place in found(data, name).items():
        check_files(place)
        with warnings.catch_warnings():
            if dataset not in LAYOUTS:
                warnings.simplefilter("ignore")  # finding it has said so
            read.append(LAYOUTS.get(dataset, loaders.OWN).read(Place(dataset, place)))
    return read


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


def own_name(text: str) -> str:
    """Return the name under which your own images are kept, from the name of their folder or what you call them.

    Lower case ASCII letters, digits, - and _, beginning with a letter or a digit; everything else becomes -. If that is
    a name with a meaning here (a known dataset, the folder of downloads) or would be read as a number, a date or yes
    and no, ``own-`` is put in front; if nothing is left, it is ``own``.

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


def _known(root: Path) -> dict[str, Path]:
    """The known datasets below `root` in their layouts."""
    places: dict[str, Path] = {}
    for here, folders in _walk(root):
        for dataset, layout in LAYOUTS.items():
            if any(mark.fits(here, folders) for mark in layout.marks):
                for name in _names(dataset, here):
                    places.setdefault(name, here)
    return places


def _named(root: Path, name: str) -> dict[str, Path]:
    """The dataset of this name: in its layout below `root`, or in what `root` holds of it."""
    wanted = {key for key in LAYOUTS if key.startswith("bh")} if name == "breakhis" else {name}
    if places := {key: place for key, place in _known(root).items() if key in wanted}:
        return places
    loaders.load(name, root)  # raises MissingDataset if it is not that
    return dict.fromkeys(_names(name, root), root)


def _names(dataset: str, place: Path) -> list[str]:
    """The datasets that a dataset is: itself, or the magnifications of BreakHis that are there."""
    if dataset != "breakhis":
        return [dataset]
    return [f"bh{m.lower()}" for m in sorted(set(loaders.load(dataset, place).rows["magnification"]))]


def _others(root: Path, places: dict[str, Path]) -> list[str]:
    """Folders in `root` with images that belong to none of these datasets."""
    folders = [here for here in sorted(root.iterdir()) if here.is_dir() and here.name[0] != "."]
    used = [
        here
        for here in folders
        if any(place.is_relative_to(here) or here.is_relative_to(place) for place in places.values())
    ]
    return [here.name for here in folders if here not in used and any(map(is_image, visible_files(here)))]


def _own(root: Path, text: str) -> dict[str, Path]:
    folder.read(Place(own_name(text), root))  # says what is wrong with the folder before anything runs
    return {own_name(text): root}


def _linked(name: str, target: Path, named: bool) -> Path:
    """The folder of dataset `name` after ``data/<name>`` leads to `target`, or the one that was put there by hand."""
    place, known = paths.DATA / name, name in RESERVED
    differs = place.exists() and place.resolve() != target.resolve()
    if differs and not place.is_symlink():
        if not known:
            raise InputError(f"{place} is there already, and is not {target}. Give yours another name: NAME=<name>")
        warnings.warn(f"{place} is used, not {target}; remove or rename it to use the other.", stacklevel=3)
        return place
    if place.is_symlink() and place.resolve() != target.resolve():
        if not known and not named:
            raise InputError(
                f"{name} is the name of {place.resolve()} already. Give {target} another one with NAME=<name>, or say "
                f"NAME={name}: the results of the other are then cleared"
            )
        if not known:
            warnings.warn(f"{name} was {place.resolve()} and is {target} from now on.", stacklevel=3)
        place.unlink()
    if not place.exists():
        place.symlink_to(target.resolve(), target_is_directory=True)
    return target


def _walk(root: Path) -> Iterator[tuple[Path, set[str]]]:
    """Folders below ``root`` level by level: path, names of sub-folders."""
    level = [root]
    for _ in range(DEPTH):
        below = []
        for here in level:
            folders = sorted(e.name for e in os.scandir(here) if e.is_dir() and not e.name.startswith("."))
            yield here, set(folders)
            below += [here / name for name in folders]
        level = below
