"""Stanford Online Products (Oh Song et al. 2016): 120,053 photos of 22,634 products."""

from pathlib import Path

import pandas as pd

from lib.datasets.catalogue import missing
from lib.datasets.listing import OnMissing, listed, locate, read_words
from lib.datasets.table import ImageTable

LISTS = {"Ebay_train.txt": "train", "Ebay_test.txt": "test"}
COLUMNS = ("class_id", "path")


def load(root: Path, on_missing: OnMissing = "skip") -> ImageTable:
    """Return the table of Ebay_train.txt and Ebay_test.txt with the photos, anywhere below `root`.

    The label is the product (its class_id, as text); every image is a group of its own. Columns besides the usual:
    split (train, test: the published one, by product) and category (bicycle … toaster, twelve of them).

    Photos and rows without a partner are listed in ``skipped``; on_missing="error" makes a row without its photo an
    InputError. Raises MissingDataset if a list or all photos are missing, InputError for a list of another kind.
    """
    parts = []
    for name, split in LISTS.items():
        if (file := locate(root, name)) is None:
            raise missing("sop", root, f"has no {name}")
        parts.append(read_words(file, COLUMNS)[list(COLUMNS)].assign(split=split))
    rows = pd.concat(parts, ignore_index=True).rename(columns={"class_id": "label"})
    folders = rows["path"].str.split("/").str[0]  # bicycle_final/111085122871_0.JPG
    rows = rows.assign(image_id=rows["path"].str.rsplit(".", n=1).str[0], category=folders.str.removesuffix("_final"))
    return listed("sop", root, rows, on_missing)
