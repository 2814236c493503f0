"""ODIR-5K (Li et al. 2021): fundus photographs of both eyes of 3,500 patients, eight diagnoses."""

import re
from pathlib import Path
from typing import Literal

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import is_image, visible_files
from lib.datasets.table import ImageTable, read_csv
from lib.errors import InputError

METADATA = "full_df.csv"
DIAGNOSES = {
    "N": "normal",
    "D": "diabetes",
    "G": "glaucoma",
    "C": "cataract",
    "A": "macular degeneration",
    "H": "hypertension",
    "M": "myopia",
    "O": "other",
}
EYES = {"left": "Left", "right": "Right"}
COLUMNS = ("ID", "Patient Age", "Patient Sex", *(f"{eye}-Diagnostic Keywords" for eye in EYES.values()))
NEEDED = (*COLUMNS, *DIAGNOSES, "labels", "filename")
FILE = re.compile(r"(?P<patient>\d+)_(?P<eye>left|right)\.\w+")


def load(root: Path, on_missing: Literal["skip", "error"] = "skip") -> ImageTable:
    """Return the table of full_df.csv with the photographs found anywhere below `root`, one row per eye.

    The columns N to O are diagnoses of the patient, of both eyes together: a patient can have several, and an eye need
    not have those of its patient. The label is that of the column ``labels``, which is of the eye and names one
    (erratum LT-13); where the doctors' words for an eye name two diseases, this column has chosen one. The group is the
    patient (ID). Columns besides the usual: eye, age (years), sex, keywords (the doctors' words for this eye) and
    patient (the letters of the patient's diagnoses, such as DO).

    Left out and listed in ``skipped``: eyes with several labels, rows without an image file, images without a row (such
    as the challenge's own test images) and second files of one image. on_missing="error" makes a row without its file
    an InputError.

    Raises MissingDataset if there are no metadata or no images, InputError if a column is missing or a value unknown.
    """
    if on_missing not in ("skip", "error"):
        raise InputError(f"on_missing={on_missing!r} is unknown. Use 'skip' or 'error'.")
    metadata = root / METADATA
    if not metadata.is_file():
        raise missing("odir", root, f"has no {METADATA}")
    rows = read_csv(metadata, NEEDED)
    names = rows["filename"].str.extract(FILE)
    letters = rows["labels"].str.findall(r"\w+")
    odd = names["eye"].isna() | letters.map(lambda several: not several or not set(several) <= set(DIAGNOSES))
    if odd.any():
        first = rows[odd].iloc[0]
        raise InputError(
            f"{metadata}: {odd.sum()} rows are not as published, such as {first['filename']!r} with the labels "
            f"{first['labels']!r}; expected 12_left.jpg and one of {', '.join(DIAGNOSES)}. Take the original file."
        )
    rows = rows.assign(eye=names["eye"], label=letters.str[0].map(DIAGNOSES), several=letters.str.len() > 1)
    files, skipped = _files(root, set(rows["filename"]))
    if not files:
        raise missing("odir", root, f"holds none of the {len(rows):,} images in {METADATA}")
    there = rows["filename"].isin(files)
    if on_missing == "error" and not there.all():
        raise InputError(
            f"{metadata}: {(~there).sum():,} of {len(rows):,} rows have no image file below {root}, "
            f"such as {rows.loc[~there, 'filename'].iloc[0]}. Add the images, or load with on_missing='skip'."
        )
    skipped += [(name, "no image file") for name in rows.loc[~there, "filename"]]
    skipped += [(name, "several labels for one eye") for name in rows.loc[there & rows["several"], "filename"]]
    return ImageTable("odir", root, _tidy(rows[there & ~rows["several"]], files), "patient", tuple(skipped))


def _files(root: Path, known: set[str]) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """The image of each file name, and what is left out."""
    files: dict[str, str] = {}
    skipped = []
    for path in filter(is_image, visible_files(root)):
        if path.name not in known:
            skipped.append((str(path), f"no row in {METADATA}"))
        elif path.name in files:
            skipped.append((str(path), f"a second file of this image, {files[path.name]} is used"))
        else:
            files[path.name] = str(path)
    return files, skipped


def _tidy(rows: pd.DataFrame, files: dict[str, str]) -> pd.DataFrame:
    left, right = (rows[f"{eye}-Diagnostic Keywords"] for eye in EYES.values())
    return pd.DataFrame(
        {
            "image_id": rows["filename"].str.rsplit(".", n=1).str[0],
            "path": rows["filename"].map(files),
            "label": rows["label"],
            "group": rows["ID"],
            "eye": rows["eye"],
            "age": pd.to_numeric(rows["Patient Age"], errors="coerce"),
            "sex": rows["Patient Sex"],
            "keywords": left.where(rows["eye"] == "left", right),
            "patient": rows[list(DIAGNOSES)].apply(lambda row: "".join(row.index[row == "1"]), axis=1),
        }
    )
