"""Kather et al. 2016: 5,000 tiles of colorectal cancer histology, eight tissue classes, 150 x 150 pixels."""

import re
from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable

LABELS = ("tumor", "stroma", "complex", "lympho", "debris", "mucosa", "adipose", "empty")
FOLDERS = {f"{number:02d}_{label.upper()}": label for number, label in enumerate(LABELS, start=1)}

# 1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601
TILE = re.compile(r"[0-9A-F]+_(?P<source_image>(?P<slide>CRC-Prim-HE-\d+)\w*)\.tif_Row_(?P<row>\d+)_Col_(?P<col>\d+)")


def load(root: Path) -> ImageTable:
    """Return the table of the tiles in the folders 01_TUMOR … 08_EMPTY anywhere below `root`.

    Columns besides the usual: slide (CRC-Prim-HE-10), source_image (CRC-Prim-HE-10_020), row and col (pixels).

    The group is the slide. The paper cut its tiles from ten slides, and the names count them from 01 to 10;
    what follows numbers the pieces of a slide (some occur as ``_001`` and ``_001b``, or as ``_copy``). In a sample
    of 240 tiles the colour of a tile finds its own slide first for 50 % of the tiles when tiles of its own piece
    are left out, where chance within the class is 17 %: a split by piece keeps stain and patient on both sides.
    28 of the 30 EMPTY tiles of that sample share slide 06, and these 28 also share one piece, 06_005.
    For a split by piece give ``table.rows["source_image"]`` as groups to ``folds.assign``.

    Raises MissingDataset if there are no such tiles.
    """
    rows, skipped = [], []
    for path in filter(is_image, visible_files(root)):
        folder, tile = path.parent.name, TILE.fullmatch(path.stem)
        if folder not in FOLDERS:
            skipped.append((str(path), "not in a class folder 01_TUMOR … 08_EMPTY"))
        elif tile is None:
            skipped.append((str(path), "not a tile name like 1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601.tif"))
        else:
            row = {"image_id": f"{folder}/{path.stem}", "path": str(path), "label": FOLDERS[folder]}
            rows.append(row | {"group": tile["slide"]} | tile.groupdict())
    if not rows:
        raise missing("kather", root, f"holds no tiles ({len(skipped)} other images)")
    table = pd.DataFrame(rows).astype({"row": int, "col": int})
    return ImageTable("kather", root, table, "slide", tuple(skipped))
