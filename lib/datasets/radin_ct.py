"""RadIN-CT: sixteen classes of the CT images of RadImageNet (Mei et al. 2022), as ACIR takes them (Section 4.1)."""

import hashlib
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pandas as pd

from lib.datasets.catalogue import DATASETS
from lib.datasets.named import plain
from lib.datasets.reading import UNLISTED, Place, from_list, from_paths
from lib.datasets.table import ImageTable, read_csv
from lib.errors import InputError

FOLDERS = DATASETS["radin_ct"].folders
LISTS = {"train": "RadiologyAI_train.csv", "validation": "RadiologyAI_val.csv", "test": "RadiologyAI_test.csv"}
"""The lists of RadImageNet; their columns are filename and label."""
HOME = "radiology_ai/"
"""What the path of every listed image begins with."""
CLASSES = {plain(folder).removesuffix("ct"): label for folder, label in FOLDERS.items()}
SIZES = DATASETS["radin_ct"].classes


def read(place: Place) -> ImageTable:
    """The table of the sixteen classes, from the lists of RadImageNet or from class folders.

    As published, RadImageNet is three lists with lines such as
    ``radiology_ai/CT/lung/normal/lung-normal000032.png,lung-normal``, and the folder ``radiology_ai``. A line belongs
    here if its path has a folder CT and its folder or its label is one of the sixteen classes. Without lists, the
    images of the class folders of ACIR's code (:data:`FOLDERS`) are the table.

    The paper takes a part of each class and does not say which (AC-2). If there are more images than in its table, as
    many are taken, those with the smallest hash of their path, so that everybody has the same. The set names no
    patient: every image is a group of its own, and neighbouring slices of one examination can be on both sides of a
    split, here as in the paper (AC-23). Extra, from lists: part (train, validation, test of RadImageNet).
    """
    lists = {part: file for part, name in LISTS.items() if (file := place.find(name))}
    if not lists:
        table = from_paths(place, _in_folder, "image", f"images in class folders, nor {', '.join(LISTS.values())}")
        rows, left = _taken(table.rows)
        return replace(table, rows=rows, skipped=(*table.skipped, *left))
    rows, others = _listed(lists)
    rows, left = _taken(rows)
    table = from_list(place, rows)
    lost = [(what, why) for what, why in table.skipped if why != UNLISTED]  # RadImageNet has a million others
    return replace(table, skipped=(*others, *left, *lost))


def _in_folder(path: PurePosixPath) -> dict[str, str] | str:
    label = CLASSES.get(plain(path.parent.name).removesuffix("ct"))
    if label is None:
        return f"not in a class folder such as {next(iter(FOLDERS))}"
    return {"image_id": f"{label}/{path.stem}", "label": label}


def _listed(lists: dict[str, Path]) -> tuple[pd.DataFrame, list[tuple[str, str]]]:
    """The lines of the sixteen classes, and how many CT images are of others."""
    rows = pd.concat([read_csv(file, ("filename", "label")).assign(part=part) for part, file in lists.items()])
    ct = rows[rows["filename"].map(lambda name: "CT" in PurePosixPath(name).parts[:-1])]
    if ct.empty and len(rows):
        raise InputError(
            f"{next(iter(lists.values()))}: no line has a path with a folder CT; the first is "
            f"{rows['filename'].iloc[0]!r}. Take the original lists of RadImageNet."
        )
    labels = [_label(*pair) for pair in zip(ct["filename"], ct["label"], strict=True)]
    chosen = ct.assign(label=labels, path=ct["filename"].str.removeprefix(HOME)).dropna(subset="label")
    image_ids = chosen["path"].map(lambda path: PurePosixPath(path).stem)
    others = len(ct) - len(chosen)
    left = [(f"{others:,} CT images", "of classes that the paper does not take")] if others else []
    return chosen.assign(image_id=image_ids)[["image_id", "path", "label", "part"]].reset_index(drop=True), left


def _label(filename: str, label: str) -> str | None:
    """The class of a line: by its label, by its folder, or by both folders (lung/normal)."""
    *_, above, folder, _ = ("", "", *PurePosixPath(filename).parts)
    names = (label, folder, f"{above}_{folder}")
    return next(filter(None, (CLASSES.get(plain(name).removesuffix("ct")) for name in names)), None)


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
