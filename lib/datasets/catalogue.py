"""What each dataset is, how large, under which licence, and the message that says so when it is not there."""

from dataclasses import dataclass, replace
from pathlib import Path

from lib.errors import MissingDataset


@dataclass(frozen=True)
class Facts:
    """What a reader has to know about a dataset before using it; ``size`` is that of the download."""

    title: str
    layout: str
    images: int | None = None
    classes: int | None = None
    size: str = ""
    licence: str = ""
    doi: str = ""
    citation: str = ""
    group_kind: str = "image"
    magnifications: tuple[str, ...] = ()

    def summary(self) -> str:
        """Return title, number of images, size, licence, citation and DOI in one line, without what is empty."""
        images = f"{self.images:,} images" if self.images else ""
        doi = f"doi {self.doi}" if self.doi else ""
        return ", ".join(filter(None, (self.title, images, self.size, self.licence, self.citation, doi)))


BREAKHIS = Facts(
    title="BreakHis breast tumours",
    layout="images named like SOB_B_A-14-22549AB-100-027.png, in any folders",
    images=7909,
    classes=8,
    size="about 4 GB for all magnifications",
    licence="commonly given as CC BY 4.0, check before redistribution",
    doi="10.1109/TBME.2015.2496264",
    citation="Spanhol et al. 2016",
    group_kind="patient",
    magnifications=("40X", "100X", "200X", "400X"),
)

# The paper treats each magnification of BreakHis as a dataset of its own: bh40x, bh100x, bh200x, bh400x.
DATASETS: dict[str, Facts] = {
    "tissue": Facts(
        title="procedural H&E-like tiles",
        layout="table.csv and the tiles that it lists",
        classes=8,
        licence="no licence needed",
        group_kind="patient",
    ),
    "kather": Facts(
        title="Kather 2016",
        layout="folders 01_TUMOR … 08_EMPTY with .tif tiles",
        images=5000,
        classes=8,
        size="about 246 MB",
        licence="CC BY 4.0",
        doi="10.5281/zenodo.53169",
        citation="Kather et al. 2016",
        group_kind="slide",
    ),
    "breakhis": BREAKHIS,
    **{
        f"bh{magnification.lower()}": replace(BREAKHIS, title=f"BreakHis at {magnification}", images=images)
        for magnification, images in {"40X": 1995, "100X": 2081, "200X": 2013, "400X": 1820}.items()
    },
    "ham10000": Facts(
        title="HAM10000",
        layout="HAM10000_metadata.csv and images named like ISIC_0027419.jpg, in any folders",
        images=10015,
        classes=7,
        size="about 2.8 GB",
        licence="CC BY-NC 4.0",
        doi="10.7910/DVN/DBW86T",
        citation="Tschandl et al. 2018",
        group_kind="lesion",
    ),
    "folder": Facts(
        title="your own images",
        layout="one sub-folder per class with .png, .jpg, .tif or .bmp images",
    ),
}


def missing(name: str, root: Path, why: str) -> MissingDataset:
    """Return the error for dataset `name` that was looked for in `root`; `why` completes the sentence after it."""
    facts = DATASETS[name]
    way_out = (
        "Draw it with: make reproduce"
        if name == "tissue"
        else f"Put it into data/{name} in the project folder by hand, "
        "or run: make reproduce PROFILE=sample DATA=<folder that holds it>"
    )
    return MissingDataset(
        f"needs {name}: {root} {why}.\n  What: {facts.summary()}.\n  Expected: {facts.layout}.\n  {way_out}"
    )
