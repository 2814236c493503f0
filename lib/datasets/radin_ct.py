"""RadIN-CT: sixteen classes of the CT images of RadImageNet (Mei et al. 2022), as ACIR takes them (Section 4.1)."""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import pandas as pd

from lib import checks
from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.listing import OnMissing
from lib.datasets.table import ImageTable, read_csv
from lib.errors import InputError

SIZES = {
    "normal abdomen": 2158,
    "airspace opacity": 1987,
    "bladder pathology": 1761,
    "bowel abnormality": 2170,
    "bronchiectasis": 2025,
    "interstitial lung disease": 2278,
    "liver lesions": 2182,
    "normal lung": 2028,
    "nodule": 2029,
    "osseous neoplasm": 1584,
    "ovarian pathology": 1471,
    "pancreatic lesion": 2165,
    "prostate lesion": 948,
    "renal lesion": 2200,
    "splenic lesion": 653,
    "uterine pathology": 2194,
}
"""Class → images of it in the paper; they add up to 29,833, where the text has 29,903 (erratum AC-2)."""

FOLDERS = {
    "abd_normal_ct": "normal abdomen",
    "Airspace_opacity": "airspace opacity",
    "bladder_pathology_ct": "bladder pathology",
    "bowel_abnormality_ct": "bowel abnormality",
    "Bronchiectasis": "bronchiectasis",
    "interstitial_lung_disease": "interstitial lung disease",
    "liver_lesion_ct": "liver lesions",
    "lung_normal": "normal lung",
    "Nodule": "nodule",
    "osseous_neoplasm_ct": "osseous neoplasm",
    "ovarian_pathology_ct": "ovarian pathology",
    "pancreatic_lesion_ct": "pancreatic lesion",
    "prostate_lesion_ct": "prostate lesion",
    "renal_lesion_ct": "renal lesion",
    "splenic_lesion_ct": "splenic lesion",
    "uterine_pathology_ct": "uterine pathology",
}
"""The class folders that ACIR's code reads → class."""

LISTS = {part: f"RadiologyAI_{end}.csv" for part, end in (("train", "train"), ("validation", "val"), ("test", "test"))}
"""The lists of RadImageNet; their columns are filename and label."""


def plain(name: str) -> str:
    """The letters of a class in lower case without what says CT, so that Liver_lesion_ct and liver-lesion are one."""
    return re.sub("[^a-z]", "", name.lower()).removesuffix("ct")


CLASSES = {plain(folder): label for folder, label in FOLDERS.items()}


def load(root: Path, on_missing: OnMissing = "skip", everything: bool = False) -> ImageTable:
    """Return the table of the sixteen classes, from the lists of RadImageNet or from class folders.

    As published, RadImageNet is three lists (:data:`LISTS`) with lines such as
    ``radiology_ai/CT/lung/normal/lung-normal000032.png,lung-normal``, and the folder ``radiology_ai``; the lists may
    lie in it or in a folder beside it. A line belongs here if its path has a folder CT and its folder or its label is
    one of the sixteen classes. Without lists, the images of the class folders of ACIR's code (:data:`FOLDERS`) are the
    table.

    ACIR has some two thousand images of each class and does not say which, where RadImageNet has up to thirty times as
    many. Of a class with more than :data:`SIZES` as many are taken, those with the smallest hash of their path, so that
    everybody has the same; ``everything`` takes all. The set names no patient: every image is a group of its own, and
    neighbouring slices of one examination can be on both sides of a split, here as in the paper (AC-23).

    Columns besides the usual, from lists: part (train, validation, test of RadImageNet). In ``skipped``: what was not
    taken of each class, listed images without a file, and images in folders of another name.

    on_missing: a listed image without its file is left out, or an InputError. Raises MissingDataset if there are
    neither lists nor class folders, or no image.
    """
    if on_missing not in ("skip", "error"):
        raise InputError(f"on_missing={on_missing!r} is unknown. Use 'skip' or 'error'.")
    checks.switch("everything", everything)
    lists = _lists(root)
    rows, skipped = _listed(root, lists) if lists else _in_folders(root)
    if rows.empty:
        raise missing("radin_ct", root, f"has neither {' nor '.join(LISTS.values())} with CT images nor class folders")
    if not everything:
        rows, left = _taken(rows)
        skipped += left
    if lists:
        places = [_place(root, path) for path in rows["path"]]
        there = pd.Series([place is not None for place in places], index=rows.index)
        if not there.any():
            raise missing("radin_ct", root, f"holds none of the {len(rows):,} CT images that are listed")
        if on_missing == "error" and not there.all():
            raise InputError(
                f"radin_ct: {(~there).sum():,} of {len(rows):,} listed images have no file below {root}, such as "
                f"{rows.loc[~there, 'path'].iloc[0]}. Add the images, or load with on_missing='skip'."
            )
        skipped += [(image_id, "no image file") for image_id in rows.loc[~there, "image_id"]]
        rows = rows.assign(path=places)[there]
    return ImageTable("radin_ct", root, rows.assign(group=rows["image_id"]), "image", tuple(skipped))


def _lists(root: Path) -> Mapping[str, Path]:
    """The lists in `root`, or in a folder in it: part → file. There are a million images below, so no deeper."""
    places = [root, *sorted(place for place in root.iterdir() if place.is_dir())]
    found = {part: [place / name for place in places if (place / name).is_file()] for part, name in LISTS.items()}
    return {part: files[0] for part, files in found.items() if files}


def _listed(root: Path, lists: Mapping[str, Path]) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """The lines of the sixteen classes; path is still that of the list."""
    rows = pd.concat([read_csv(file, ("filename", "label")).assign(part=part) for part, file in lists.items()])
    ct = rows[rows["filename"].map(lambda name: "CT" in PurePosixPath(name).parts[:-1])]
    if ct.empty and len(rows):
        raise InputError(
            f"{next(iter(lists.values()))}: no line has a path with a folder CT; the first is "
            f"{rows['filename'].iloc[0]!r}. Take the original lists of RadImageNet."
        )
    labels = [_label(*pair) for pair in zip(ct["filename"], ct["label"], strict=True)]
    chosen = ct.assign(label=labels, path=ct["filename"]).dropna(subset="label")
    image_id = chosen["path"].map(lambda path: PurePosixPath(path).stem)
    names = pd.DataFrame({"image_id": image_id}).assign(**{key: chosen[key] for key in ("path", "label", "part")})
    others = len(ct) - len(chosen)
    skipped = [(f"{others:,} CT images", "of classes that the paper does not take")] if others else []
    return names.reset_index(drop=True), skipped


def _label(filename: str, label: str) -> str | None:
    """The class of a line: by its label, by its folder, or by both folders (lung/normal)."""
    *_, above, folder, _ = ("", "", *PurePosixPath(filename).parts)
    found = (CLASSES.get(plain(name)) for name in (label, folder, f"{above}_{folder}"))
    return next(filter(None, found), None)


def _place(root: Path, listed: str) -> str | None:
    """Where a listed image is, relative to `root`: by its whole path, or by that below radiology_ai."""
    below = PurePosixPath(*PurePosixPath(listed).parts[1:])
    places = (PurePosixPath(listed), below, *(PurePosixPath(home.name) / listed for home in _homes(root)))
    return next((str(place) for place in places if ".." not in place.parts and (root / place).is_file()), None)


def _homes(root: Path) -> list[Path]:
    return sorted(place for place in root.iterdir() if (place / "radiology_ai").is_dir())


def _in_folders(root: Path) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        label = CLASSES.get(plain(path.parent.name))
        if label is None:
            skipped.append((str(path), f"not in a class folder such as {next(iter(FOLDERS))}"))
        else:
            rows.append({"image_id": f"{label}/{path.stem}", "path": str(path), "label": label})
    return pd.DataFrame(rows), skipped


def _taken(rows: pd.DataFrame) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """As many of each class as the paper has, in the order of the table, and what was left."""
    digest = rows["image_id"].map(lambda name: hashlib.sha256(name.encode()).hexdigest())
    rank = digest.groupby(rows["label"]).rank(method="first")
    chosen = rank <= rows["label"].map(SIZES)
    left = [
        (f"{n:,} images of {label}", f"the paper has {SIZES[label]:,} and does not say which")
        for label, n in rows.loc[~chosen, "label"].value_counts(sort=False).items()
    ]
    return rows[chosen], left
