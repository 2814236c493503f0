"""HAM10000 (Tschandl et al. 2018): 10,015 dermatoscopic images of 7,470 lesions, seven diagnoses."""

from pathlib import Path
from typing import Literal

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable, read_csv
from lib.errors import InputError

METADATA = "HAM10000_metadata.csv"
COLUMNS = ("lesion_id", "image_id", "dx", "dx_type", "age", "sex", "localization")


def load(root: Path, on_missing: Literal["skip", "error"] = "skip") -> ImageTable:
    """Return the table of HAM10000_metadata.csv in `root` with the images found anywhere below it.

    The label is dx, the group lesion_id: a lesion has up to six images. Columns besides the usual: dx_type,
    age (years, float), sex, localization. Rows without an image file are left out and listed in ``skipped``,
    where a label that loses all its rows is named; on_missing="error" makes them an InputError. Also in
    ``skipped``: images without a row (such as masks) and second files of one image (mirrors ship them).

    Raises MissingDataset if there are no metadata or no images, InputError if a column is missing.
    """
    if on_missing not in ("skip", "error"):
        raise InputError(f"on_missing={on_missing!r} is unknown. Use 'skip' or 'error'.")
    metadata = root / METADATA
    if not metadata.is_file():
        raise missing("ham10000", root, f"has no {METADATA}")
    rows = read_csv(metadata, COLUMNS)[list(COLUMNS)]
    known = set(rows["image_id"])
    files: dict[str, str] = {}
    skipped = []
    for path in filter(is_image, visible_files(root)):
        if path.stem not in known:
            skipped.append((str(path), f"no row in {METADATA}"))
        elif path.stem in files:
            skipped.append((str(path), f"a second file of this image, {files[path.stem]} is used"))
        else:
            files[path.stem] = str(path)
    if not files:
        raise missing("ham10000", root, f"holds none of the {len(rows):,} images in {METADATA}")
    there = rows["image_id"].isin(files)
    if on_missing == "error" and not there.all():
        raise InputError(
            f"{metadata}: {(~there).sum():,} of {len(rows):,} rows have no image file below {root}, "
            f"such as {rows.loc[~there, 'image_id'].iloc[0]}. Add the images, or load with on_missing='skip'."
        )
    gone = set(rows["dx"]) - set(rows.loc[there, "dx"])
    for image_id, dx in rows.loc[~there, ["image_id", "dx"]].itertuples(index=False):
        skipped.append((image_id, "no image file" + (f", as for all of label {dx}" if dx in gone else "")))
    rows = rows[there].rename(columns={"dx": "label", "lesion_id": "group"})
    rows = rows.assign(path=rows["image_id"].map(files), age=pd.to_numeric(rows["age"], errors="coerce"))
    columns = ["image_id", "path", "label", "group", "dx_type", "age", "sex", "localization"]
    return ImageTable("ham10000", root, rows[columns], "lesion", tuple(skipped))
