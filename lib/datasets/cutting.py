"""``python -m lib.datasets.cutting``: cut the patches of BPS (:func:`lib.datasets.named.bps`) from BCSS and Lizard.

The paper does not say how it was done: not the size of a patch, not how much of it has to be of its class, not which
classes come from which set (AC-23). Decided here: squares of a grid, of 256 pixels as ACIR's code crops them. From BCSS
a square is of the class that fills a share of it in the mask. Lizard names nuclei and no tissues: a square is gland if
that share of its nuclei is epithelial, and it has some.
"""

import argparse
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path, PurePosixPath

import numpy as np
from PIL import Image
from scipy.io import loadmat
from scipy.io.matlab import MatReadError

from lib import checks, files
from lib.datasets.images import FORMATS, is_image, read_image, visible_files
from lib.datasets.named import BPS
from lib.datasets.reading import Place
from lib.errors import InputError, one_message
from lib.progress import track

CODES = {
    "tumor": ("tumor", "dcis", "angioinvasion"),
    "Stroma": ("stroma",),
    "Inflammatory": ("lymphocytic_infiltrate", "plasma_cells", "other_immune_infiltrate"),
    "Necrosis": ("necrosis_or_debris",),
    "Fat": ("fat",),
    "gland": ("normal_acinus_or_duct",),
}
"""Class folder → the names of BCSS that are that class (those of its file meta/gtruth_codes.tsv)."""

EPITHELIAL = 2
"""The number of epithelial nuclei in Lizard."""

NUCLEI = 20
"""A square of Lizard with fewer nuclei is of no class."""

KIND = "BPS patches"

Cut = tuple[str, str, Image.Image]
"""A patch: class folder, name, pixels."""


def cut(target: Path, bcss: Path | None, lizard: Path | None, pixels: int = 256, share: float = 0.75) -> dict[str, int]:
    """Write the patches to ``target/<class>/``, which appears whole; class folder → how many.

    Args:
        target: a folder of its own, such as data/bps; what was cut there before is replaced.
        bcss: folder with rgbs_colorNormalized (or images), masks and meta/gtruth_codes.tsv, in any folder below.
        lizard: folder with the regions (crag_1.png) and their nuclei (crag_1.mat), in any folders below.
        pixels: side of a patch. share: from which a square is of a class.

    Raises:
        InputError: for a value without meaning, a folder without regions, a region without its mask, a mask that is not
            of the size of its region, and if no square is of any class.
    """
    checks.whole("pixels", pixels)
    checks.number("share", share, 0.5, 1)
    counts = dict.fromkeys(BPS, 0)
    with files.whole(target, KIND) as draft:
        for folder in BPS:
            (draft / folder).mkdir(parents=True)
        for folder, name, patch in chain(_of_masks(bcss, pixels, share), _of_nuclei(lizard, pixels, share)):
            patch.save(draft / folder / f"{name}.png")
            counts[folder] += 1
        if not sum(counts.values()):
            raise InputError(f"no square of {pixels} pixels is of one class: take a smaller share than {share:g}")
    return counts


def _of_masks(root: Path | None, pixels: int, share: float) -> Iterator[Cut]:
    """The squares of BCSS that one class fills by its share or more."""
    if root is None:
        return
    regions = _named(root, lambda path: path.parent.name in ("rgbs_colorNormalized", "images"))
    masks = _named(root, lambda path: path.parent.name == "masks")
    if not regions:
        raise InputError(f"{root} has no folder rgbs_colorNormalized with images. Say where BCSS was unpacked.")
    if lacking := sorted(set(regions) - set(masks)):
        raise InputError(f"{root}: {len(lacking)} regions have no mask, such as {lacking[0]}. Add the folder masks.")
    numbers = _numbers(root)
    for name, file in track(regions.items(), total=len(regions), what="BCSS", unit="regions"):
        region = read_image(file)
        with Image.open(masks[name], formats=FORMATS) as opened:
            mask = np.asarray(opened)
        mask = mask if mask.ndim == 2 else mask[..., 0]
        if mask.shape != region.size[::-1]:
            raise InputError(
                f"{masks[name]} has {mask.shape[1]} x {mask.shape[0]} pixels, its region {region.width} x "
                f"{region.height}: they are no pair. Take both from one download."
            )
        for x, y in _grid(region.size, pixels):
            square = mask[y : y + pixels, x : x + pixels]
            shares = {folder: np.isin(square, values).mean() for folder, values in numbers.items()}
            folder = max(shares, key=shares.__getitem__)
            if shares[folder] >= share:
                yield folder, f"{name}_{x}_{y}", region.crop((x, y, x + pixels, y + pixels))


def _numbers(root: Path) -> Mapping[str, list[int]]:
    """Class folder → the values in the masks, from gtruth_codes.tsv."""
    file = Place("bps", root).find("gtruth_codes.tsv")
    if file is None:
        raise InputError(f"{root} has no gtruth_codes.tsv, which says what the masks mean. Unpack all of BCSS.")
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    known = {name: int(number) for name, number in lines if number.isdigit()}
    if lacking := sorted({name for names in CODES.values() for name in names} - set(known)):
        raise InputError(f"{file} does not name {', '.join(lacking)}. Take the original file.")
    return {folder: [known[name] for name in names] for folder, names in CODES.items()}


def _of_nuclei(root: Path | None, pixels: int, share: float) -> Iterator[Cut]:
    """The squares of Lizard with enough nuclei, of which enough are epithelial."""
    if root is None:
        return
    labels = {path.stem: root / path for path in visible_files(root) if path.suffix == ".mat"}
    regions = {name: file for name, file in _named(root, lambda path: True).items() if name in labels}
    if not regions:
        raise InputError(f"{root} has no regions with nuclei, such as crag_1.png and crag_1.mat. Unpack all of Lizard.")
    for name, file in track(regions.items(), total=len(regions), what="Lizard", unit="regions"):
        try:
            content = loadmat(labels[name], variable_names=["class", "centroid"])
            kinds, centres = content["class"].ravel(), content["centroid"].reshape(-1, 2)
        except (KeyError, ValueError, OSError, MatReadError) as error:
            raise InputError(
                f"{labels[name]}: no class and centroid of nuclei ({error}). Take the original file."
            ) from error
        region = read_image(file)
        for x, y in _grid(region.size, pixels):
            inside = ((centres >= (x, y)) & (centres < (x + pixels, y + pixels))).all(axis=1)
            if inside.sum() >= NUCLEI and (kinds[inside] == EPITHELIAL).mean() >= share:
                yield "gland", f"{name}_{x}_{y}", region.crop((x, y, x + pixels, y + pixels))


def _grid(size: tuple[int, int], pixels: int) -> Iterator[tuple[int, int]]:
    """The left upper corners of the squares of an image of (width, height)."""
    width, height = size
    for y in range(0, height - pixels + 1, pixels):
        yield from ((x, y) for x in range(0, width - pixels + 1, pixels))


def _named(root: Path, wanted: Callable[[PurePosixPath], bool]) -> dict[str, Path]:
    """Name without ending → file, of the wanted images below a folder."""
    if not root.is_dir():
        raise InputError(f"{root} is not a folder; say where the images are")
    return {path.stem: root / path for path in visible_files(root) if is_image(path) and wanted(path)}


def main() -> None:
    """Parse the command line, cut, and say how many of each class there are."""
    parser = argparse.ArgumentParser(prog="python -m lib.datasets.cutting", description="Cut the patches of BPS.")
    parser.add_argument("--bcss", type=Path, help="folder of BCSS")
    parser.add_argument("--lizard", type=Path, help="folder of Lizard")
    parser.add_argument("--target", type=Path, required=True, help="folder for the patches, for example data/bps")
    parser.add_argument("--pixels", type=int, default=256, help="side of a patch")
    parser.add_argument("--share", type=float, default=0.75, help="how much of a patch is of its class")
    arguments = parser.parse_args()
    if arguments.bcss is None and arguments.lizard is None:
        raise InputError("say where the regions are: --bcss, --lizard, or both")
    counts = cut(arguments.target, arguments.bcss, arguments.lizard, arguments.pixels, arguments.share)
    print(f"{arguments.target}: " + ", ".join(f"{n:,} {folder}" for folder, n in counts.items()))


if __name__ == "__main__":
    one_message(main)
