"""Cars-196 (Krause et al. 2013): 16,185 photos of 196 models of cars."""

from pathlib import Path

import numpy as np
import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.images import visible_files
from lib.datasets.listing import OnMissing, listed, locate
from lib.datasets.table import ImageTable
from lib.errors import InputError

ALL = "cars_annos.mat"
FOLDER = "car_ims"
PARTS = {"cars_train_annos.mat": "cars_train", "cars_test_annos_withlabels.mat": "cars_test"}
NAMES = "cars_meta.mat"
TRAINING = 98


def load(root: Path, on_missing: OnMissing = "skip") -> ImageTable:
    """Return the table of cars_annos.mat with the photos in ``car_ims``, anywhere below `root`.

    Where one of both is not there, of the parts that were published later: cars_train_annos.mat for ``cars_train``,
    cars_test_annos_withlabels.mat for ``cars_test``, and cars_meta.mat for the names; the photos are the same.

    The label is the model (BMW M3 Coupe 2012); every image is a group of its own. Column besides the usual: split, the
    standard one of metric learning: models 1 to 98 train, 99 to 196 test. (What the files call train and test is for
    classification and has every model on both sides.)

    Photos and rows without a partner are listed in ``skipped``; on_missing="error" makes a row without its photo an
    InputError. Raises MissingDataset if the files or all photos are missing, InputError for a file of another kind.
    """
    parts = {name: locate(root, name) for name in (*PARTS, NAMES)}
    folders = {path.parent.name for path in visible_files(root)}
    if (file := locate(root, ALL)) and (FOLDER in folders or None in parts.values()):
        rows = [(note["relative_im_path"], note["class"]) for note in _records(file, "relative_im_path", "class")]
        names = _content(file, "class_names")
    else:
        rows, names = _of_parts(root, parts)
    table = pd.DataFrame(rows, columns=["path", "number"])
    if not table["number"].between(1, len(names)).all():
        raise InputError(f"{root}: a photo has a model that is not one of the {len(names)} names. Take the originals.")
    table["label"] = [names[number - 1] for number in table["number"]]
    table["image_id"] = table["path"].str.removesuffix(".jpg")
    table["split"] = np.where(table["number"] <= TRAINING, "train", "test")
    return listed("cars", root, table.drop(columns="number"), on_missing)


def _of_parts(root: Path, files: dict[str, Path | None]) -> tuple[list[tuple[str, int]], list[str]]:
    """Path and number of the model of every photo, and the names of the models."""
    if lacking := [name for name, file in files.items() if file is None]:
        raise missing("cars", root, f"has neither {ALL} nor {', '.join(lacking)}")
    rows = [
        (f"{folder}/{note['fname']}", note["class"])
        for name, folder in PARTS.items()
        for note in _records(files[name], "fname", "class")
    ]
    return rows, _content(files[NAMES], "class_names")


def _records(file: Path, *fields: str) -> list[dict]:
    """The annotations in `file`, one dict per photo; a class is an int."""
    records = _content(file, "annotations")
    if not all(isinstance(record, dict) and record.keys() >= set(fields) for record in records):
        raise InputError(f"{file}: its annotations have no {' and '.join(fields)}. Take the original file.")
    return [record | {"class": int(record["class"])} for record in records]


def _content(file: Path, variable: str) -> list:
    from scipy.io import loadmat  # heavy: whoever has no cars does not wait for it

    try:
        return np.atleast_1d(loadmat(file, simplify_cells=True)[variable]).tolist()
    except Exception as error:  # damage shows in many ways
        raise InputError(f"{file}: cannot read its {variable} ({error!r}). Take the original file.") from error
