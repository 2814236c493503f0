"""In-shop Clothes Retrieval of DeepFashion (Liu et al. 2016): 52,712 photos of 7,982 garments."""

from pathlib import Path

from lib.datasets.catalogue import missing
from lib.datasets.listing import OnMissing, listed, locate, read_words
from lib.datasets.table import ImageTable
from lib.errors import InputError

LIST = "list_eval_partition.txt"
COLUMNS = ("image_name", "item_id", "evaluation_status")
SPLITS = ("train", "query", "gallery")


def load(root: Path, on_missing: OnMissing = "skip") -> ImageTable:
    """Return the table of list_eval_partition.txt with the photos in ``img/``, anywhere below `root`.

    The label is the garment (item_id); every image is a group of its own. Columns besides the usual: split (train,
    query, gallery: the published one; the garments of query and gallery are the same, those of train are others),
    gender (MEN, WOMEN) and category (Dresses). The Hyp-ViT paper prints 7,986 garments; the parts that it names add up
    to 3,997 + 3,985 = 7,982 (erratum HV-6).

    Photos and rows without a partner are listed in ``skipped``; on_missing="error" makes a row without its photo an
    InputError. Raises MissingDataset if the list or all photos are missing, InputError for a list of another kind.
    """
    file = locate(root, LIST)
    if file is None:
        raise missing("in_shop", root, f"has no {LIST}")
    rows = read_words(file, COLUMNS, skip=1)[list(COLUMNS)]
    if unknown := set(rows["evaluation_status"]) - set(SPLITS):
        raise InputError(f"{file}: evaluation_status {min(unknown)!r} is none of {', '.join(SPLITS)}.")
    parts = rows["image_name"].str.split("/")  # img/WOMEN/Dresses/id_00000002/02_1_front.jpg
    if (odd := parts.str.len() != 5).any():
        raise InputError(
            f"{file}: {rows.loc[odd, 'image_name'].iloc[0]} is no path like "
            "img/WOMEN/Dresses/id_00000002/02_1_front.jpg. Take the original file."
        )
    rows = rows.rename(columns={"image_name": "path", "item_id": "label", "evaluation_status": "split"})
    image_ids = rows["path"].str.removeprefix("img/").str.rsplit(".", n=1).str[0]
    rows = rows.assign(image_id=image_ids, gender=parts.str[1], category=parts.str[2])
    return listed("in_shop", root, rows, on_missing)
