"""Ovarian cancer: 498 histology images, four subtypes and non-cancerous tissue, 98 to 100 images of each.

Mendeley Data 2021, "OvarianCancer&SubtypesDatasetHistopathology" (Kasture).
"""

import re
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

FOLDERS = {
    "Clear_Cell": "clear cell",
    "Endometri": "endometrioid",
    "Mucinous": "mucinous",
    "Non_Cancerous": "non-cancerous",
    "Serous": "serous",
}
"""Folder as published → label."""


def plain(name: str) -> str:
    """Return the letters of a folder name in lower case: Clear_Cell, clear-cell and "Clear Cell" are one."""
    return re.sub("[^a-z]", "", name.lower())


# Both spellings of every class: Endometri as published, Endometrioid as some copies have it.
LABELS = {plain(spelling): label for folder, label in FOLDERS.items() for spelling in (folder, label)}


def load(root: Path) -> ImageTable:
    """Return the table of the images whose folder is called after one of the five classes, anywhere below `root`.

    Capitals and what stands between the words do not matter, and Endometrioid is Endometri. image_id is label and file
    name, so that it does not depend on where the folders lie.

    The set names no patient. Every image is a group of its own, so that folds by group are folds by image here, and
    what two images of one patient or one slide add to a result cannot be measured.

    The paper about linear prototypes has 405 training and 93 test images of a public set with these classes; that
    these are all 498 of this one is why it is taken to be the set. By that count none is left over for the queries
    that the paper draws from "unused portions".

    Raises MissingDataset if there are no such images, InputError for two files with the same image_id.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        label = LABELS.get(plain(path.parent.name))
        if label is None:
            skipped.append((str(path), f"not in a class folder {', '.join(FOLDERS)}"))
        else:
            image_id = f"{label}/{path.name}"
            rows.append({"image_id": image_id, "path": str(path), "label": label, "group": image_id})
    if not rows:
        raise missing("ovarian", root, f"holds no images in class folders ({len(skipped)} other images)")
    return ImageTable("ovarian", root, pd.DataFrame(rows), "image", tuple(skipped))
