"""BPS: patches of six tissues, cut from BCSS (Amgad et al. 2019) and Lizard (Graham et al. 2021), after ACIR.

The patches of the paper are not published, nor how they were cut: :mod:`lib.datasets.cutting` cuts some.
"""

import re
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

SIZES = {"tumour": 6659, "stroma": 4052, "inflammatory": 2798, "necrosis": 1876, "fat": 1674, "gland": 1619}
"""Class → images of it in the paper; they add up to 18,678, where Section 4.1 and the split have 18,703 (AC-1)."""

FOLDERS = {
    "tumor": "tumour",
    "Stroma": "stroma",
    "Inflammatory": "inflammatory",
    "Necrosis": "necrosis",
    "Fat": "fat",
    "gland": "gland",
}
"""Folder, as ACIR's code names the classes → class."""

LABELS = {spelling.lower(): label for folder, label in FOLDERS.items() for spelling in (folder, label)}

SLIDE = re.compile(r"(?P<patient>TCGA-\w{2}-\w{4})\b.*")
REGION = re.compile(r"(?P<region>(consep|crag|dpath|glas|pannuke)_\d+).*")
"""How the images of BCSS and of Lizard are named; a patch is taken for one of theirs if it is named so."""


def load(root: Path) -> ImageTable:
    """Return the table of the patches whose folder is called after one of the six classes, anywhere below `root`.

    Capitals do not matter, and tumor is tumour. The group is where a patch was cut: the patient of TCGA of whose slide
    it is (TCGA-A1-A0SK at the beginning of its name), or the region of Lizard (crag_12); a patch of any other name is a
    group of its own. The paper splits by image, so that patches of one patient ask and answer (AC-23). Columns besides
    the usual: source (BCSS, Lizard, other).

    BCSS and Lizard as they are downloaded hold regions and masks, no patches: the message says how to cut them.
    Raises MissingDataset if there are no such patches, InputError for two with the same image_id.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        label = LABELS.get(path.parent.name.lower())
        if label is None:
            skipped.append((str(path), f"not in a class folder {', '.join(FOLDERS)}"))
        else:
            image_id = f"{label}/{path.stem}"
            source, group = origin(path.stem)
            row = {"image_id": image_id, "path": str(path), "label": label, "group": group or image_id}
            rows.append(row | {"source": source})
    if not rows:
        raise missing("bps", root, f"holds no patches in class folders ({len(skipped)} other images)")
    return ImageTable("bps", root, pd.DataFrame(rows), "source", tuple(skipped))


def origin(name: str) -> tuple[str, str]:
    """The set that an image of this name is from and what its group is there, "" where that is not known.

    >>> origin("TCGA-A1-A0SK-DX1_xmin45749_ymin25055_MPP-0.2500_512_0"), origin("crag_12_0_256"), origin("7")
    (('BCSS', 'TCGA-A1-A0SK'), ('Lizard', 'crag_12'), ('other', ''))
    """
    if slide := SLIDE.fullmatch(name):
        return "BCSS", slide["patient"]
    if region := REGION.fullmatch(name):
        return "Lizard", region["region"]
    return "other", ""
