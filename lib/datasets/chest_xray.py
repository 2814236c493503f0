"""Chest radiographs of children, normal and with pneumonia (Kermany et al. 2018): foreign to all other archives."""

import re
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

FOLDERS = ("normal", "pneumonia")
"""In capitals as published, inside of train, val and test."""
FILE = re.compile(r"(?:NORMAL2-)?IM-(?P<image>\d+)-.*|person(?P<person>\d+)_.*")


def load(root: Path) -> ImageTable:
    """Return the table of the radiographs in folders normal and pneumonia, in capitals or not, anywhere below `root`.

    The group is the patient: a number that file names carry, of another count in each class. image_id is label and
    file name. Raises MissingDataset if there are no such images, InputError for two files with the same image_id.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        label, name = path.parent.name.lower(), FILE.fullmatch(path.stem)
        if label not in FOLDERS or name is None:
            skipped.append((str(path), f"not in a folder {' or '.join(FOLDERS)}, or not named like its images"))
            continue
        patient = f"{label} {int(name['image'] or name['person'])}"
        rows.append({"image_id": f"{label}/{path.name}", "path": str(path), "label": label, "group": patient})
    if not rows:
        raise missing("chest_xray", root, f"holds no such radiographs ({len(skipped)} other images)")
    return ImageTable("chest_xray", root, pd.DataFrame(rows), "patient", tuple(skipped))
