"""What each dataset is, how large, under which licence (``datasets.yaml``), and the message for one that is missing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import yaml

from lib import paths
from lib.datasets.table import ImageTable
from lib.errors import MissingDataset


@dataclass(frozen=True)
class Archive:
    """A file to download: address, name, and checksum as ``algorithm:digits``, None if nobody states one."""

    url: str
    name: str
    checksum: str | None = None


@dataclass(frozen=True)
class Facts:
    """What a reader has to know about a dataset before using it.

    gigabytes: of the download. magnifications: each is a dataset of its own. page: where to download it by hand, if no
    file has an address that stays. pictures: what has to stand below its images where they are published; None: they
    are not published. classes: class → images of it in the paper, if the paper took a part. folders: how the dataset
    names its classes, in folders, files or lists → label.
    """

    title: str
    layout: str
    images: int | None = None
    gigabytes: float = 0.0
    licence: str = ""
    doi: str = ""
    citation: str = ""
    magnifications: tuple[str, ...] = ()
    files: tuple[Archive, ...] = ()
    page: str = ""
    pictures: str | None = None
    classes: Mapping[str, int] = field(default_factory=dict)
    folders: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> str:
        """Of the download, for a message; empty if it is not known."""
        if self.gigabytes < 1:
            return f"about {1000 * self.gigabytes:.0f} MB" if self.gigabytes else ""
        return f"about {self.gigabytes:g} GB"

    def summary(self) -> str:
        """Return title, number of images, size, licence, citation and DOI in one line, without what is empty."""
        images = f"{self.images:,} images" if self.images else ""
        doi = f"doi {self.doi}" if self.doi else ""
        return ", ".join(filter(None, (self.title, images, self.size, self.licence, self.citation, doi)))


BREAKHIS = {"40X": 1995, "100X": 2081, "200X": 2013, "400X": 1820}
"""Images at each magnification, which the paper treats as datasets of their own: bh40x, bh100x, bh200x, bh400x."""


def _datasets() -> Iterator[tuple[str, Facts]]:
    """Every dataset in the order of the file, drawn tiles and BreakHis at each magnification behind their whole."""
    written = yaml.safe_load(Path(__file__).with_name("datasets.yaml").read_text(encoding="utf-8"))
    for name, about in written.items():
        known = Facts(**about | {"files": tuple(Archive(**file) for file in about.get("files", ()))})
        if name == "breakhis":
            known = replace(known, magnifications=tuple(BREAKHIS))
        yield name, known
        if name == "breakhis":
            for at, images in BREAKHIS.items():
                yield f"bh{at.lower()}", replace(known, title=f"BreakHis at {at}", images=images)
        if name == "tissue":
            for drawn in paths.DRAWN[1:]:
                yield drawn, replace(known, title=f"{known.title} at {drawn.rpartition('_')[2].upper()}")


DATASETS: dict[str, Facts] = dict(_datasets())

PRIVATE = {
    "glomerulus": "glomerulus is a private collection of the authors of the paper about linear prototypes (7,582 "
    "training and 116 test images of six classes): there is nothing to load, only the paper's own numbers are shown."
}


def facts(name: str) -> Facts:
    """Return the facts of a known dataset; under any other name they are those of your own images.

    >>> facts("kather").title, facts("birds").title
    ('Kather 2016', 'birds, your own images')
    """
    return DATASETS.get(name) or replace(DATASETS["folder"], title=f"{name}, your own images")


def describe(table: ImageTable) -> str:
    """What the images of a table are and how many, for captions."""
    known = facts(table.name)
    whole = f" of {known.images:,}" if known.images and known.images != len(table) else ""
    groups = "" if table.group_kind == "image" else f", {len(set(table.groups)):,} {table.group_kind}s"
    left_out = ", ".join(what for what, why in table.skipped if why.startswith("class "))
    without = f", without the class {left_out}" if left_out else ""
    return f"{known.title}, {len(table):,}{whole} images, {len(table.classes)} classes{without}{groups}"


def missing(name: str, root: Path, why: str, profile: str = "sample") -> MissingDataset:
    """Return the error for dataset `name` that was looked for in `root`; `why` completes the sentence after it.

    profile: the one that would use it.
    """
    what = facts(name)
    way_out = (
        f"Use your copy: put it into data/{name} in the project folder, "
        f"or run: make {'gpu' if profile == 'gpu' else f'reproduce PROFILE={profile}'} DATA=<folder that holds it>"
    )
    if name in paths.DRAWN:
        way_out = "Draw it with: make reproduce"
    elif what.files:
        way_out = f"Download it: make data NAME={'breakhis' if what.magnifications else name}\n  {way_out}"
    elif what.page:
        way_out = f"Download it by hand: {what.page}\n  {way_out}"
    return MissingDataset(
        f"needs {name}: {root} {why}.\n  What: {what.summary()}.\n  Expected: {what.layout}.\n  {way_out}"
    )
