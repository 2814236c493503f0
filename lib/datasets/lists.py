"""Datasets that come with a list of their images: the list as rows, for :func:`lib.datasets.reading.from_list`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from lib.datasets.catalogue import DATASETS
from lib.datasets.reading import Place, from_list
from lib.datasets.table import ImageTable, read_csv
from lib.errors import InputError

ORIGINAL = "Take the original file."


def stems(paths: pd.Series) -> pd.Series:
    """Listed paths without the ending."""
    return paths.str.rsplit(".", n=1).str[0]


def read_words(file: Path, columns: Sequence[str], skip: int = 0) -> pd.DataFrame:
    """These columns of a list with blanks between them and their names above, every value as text.

    skip: lines before the names. Raises InputError naming the file, and the column if one is missing.
    """
    try:
        rows = pd.read_csv(file, sep=r"\s+", skiprows=skip, dtype=str, keep_default_na=False, index_col=False)
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as a list ({error}). {ORIGINAL}") from error
    lacking = [column for column in columns if column not in rows]
    if lacking or not rows[list(columns)].fillna("").all(axis=None):  # text is true unless it is empty
        what = f"no column {', '.join(lacking)}" if lacking else "a line that breaks off"
        raise InputError(f"{file}: has {what}; expected the columns {', '.join(columns)}. {ORIGINAL}")
    return rows[list(columns)]


def drawn(place: Place) -> ImageTable:
    """Tiles that this project draws: their ``table.csv``, grouped by patient."""
    rows = read_csv(place.need("table.csv"), ["image_id", "path", "label", "patient"])
    if rows.empty:
        raise place.missing("has a table.csv that lists no images")
    return ImageTable(place.name, place.root, rows.assign(group=rows["patient"]), "patient")


HAM10000 = "HAM10000_metadata.csv"


def ham10000(place: Place) -> ImageTable:
    """HAM10000 (Tschandl et al. 2018): the label is dx, the group lesion_id; a lesion has up to six images.

    Extras: dx_type, age (years, float), sex, localization.
    """
    extras = ["dx_type", "age", "sex", "localization"]
    rows = read_csv(place.need(HAM10000), ["lesion_id", "image_id", "dx", *extras])
    rows = rows.rename(columns={"dx": "label", "lesion_id": "group"})
    rows = rows.assign(path=rows["image_id"], age=pd.to_numeric(rows["age"], errors="coerce"))
    return from_list(place, rows[["image_id", "path", "label", "group", *extras]], "lesion", endings=False)


ODIR = "full_df.csv"
DIAGNOSES = DATASETS["odir"].folders
KEYWORDS = {eye: f"{eye.capitalize()}-Diagnostic Keywords" for eye in ("left", "right")}


def odir(place: Place) -> ImageTable:
    """ODIR-5K (Li et al. 2021): fundus photographs, one row per eye; the group is the patient.

    The columns N to O are diagnoses of the patient, of both eyes together: a patient can have several, and an eye need
    not have those of its patient. The label is that of the column ``labels``, which is of the eye and names one
    (erratum LT-13); where the doctors' words for an eye name two diseases, this column has chosen one. Eyes with
    several labels are left out.

    Extras: eye, age (years), sex, keywords (the doctors' words for this eye) and patient (the letters of the patient's
    diagnoses, such as DO).
    """
    file = place.need(ODIR)
    needed = ("ID", "Patient Age", "Patient Sex", *KEYWORDS.values(), *DIAGNOSES, "labels", "filename")
    rows = read_csv(file, needed)
    eye = rows["filename"].str.extract(r"^\d+_(left|right)\.\w+$", expand=False)
    letters = rows["labels"].str.findall(r"\w+")
    odd = eye.isna() | letters.map(lambda names: not names or not set(names) <= set(DIAGNOSES))
    if odd.any():
        first = rows[odd].iloc[0]
        raise InputError(
            f"{file}: {odd.sum()} rows are not as published, such as {first['filename']!r} with the labels "
            f"{first['labels']!r}; expected 12_left.jpg and one of {', '.join(DIAGNOSES)}. {ORIGINAL}"
        )
    tidy = {
        "image_id": stems(rows["filename"]),
        "path": rows["filename"],
        "label": letters.str[0].map(DIAGNOSES),
        "group": rows["ID"],
        "eye": eye,
        "age": pd.to_numeric(rows["Patient Age"], errors="coerce"),
        "sex": rows["Patient Sex"],
        "keywords": rows[KEYWORDS["left"]].where(eye == "left", rows[KEYWORDS["right"]]),
        "patient": rows[list(DIAGNOSES)].apply(lambda row: "".join(row.index[row == "1"]), axis=1),
        "several": letters.str.len() > 1,
    }
    table = from_list(place, pd.DataFrame(tidy), "patient")
    several = table.rows["several"]
    left = [(name, "several labels for one eye") for name in table.rows.loc[several, "image_id"]]
    rows = table.rows[~several].drop(columns="several")
    return ImageTable(table.name, table.root, rows, table.group_kind, (*table.skipped, *left))


CARS = "cars_annos.mat"
CAR_PARTS = {"cars_train_annos.mat": "cars_train", "cars_test_annos_withlabels.mat": "cars_test"}
CAR_NAMES = "cars_meta.mat"
TRAINING_MODELS = 98


def cars(place: Place) -> ImageTable:
    """Cars-196 (Krause et al. 2013): cars_annos.mat with the photos in ``car_ims``; the label is the model.

    Where one of both is not there, the parts that were published later: cars_train_annos.mat for ``cars_train``,
    cars_test_annos_withlabels.mat for ``cars_test``, and cars_meta.mat for the names; the photos are the same.

    Extra: split, the standard one of metric learning: models 1 to 98 train, 99 to 196 test. (What the files call train
    and test is for classification and has every model on both sides.)
    """
    parts = {name: place.find(name) for name in (*CAR_PARTS, CAR_NAMES)}
    folders = {path.parent.name for path in place.files}
    if (file := place.find(CARS)) and ("car_ims" in folders or None in parts.values()):
        rows, names = _cars(file, "relative_im_path"), _matlab(file, "class_names")
    else:
        if lacking := [name for name, part in parts.items() if part is None]:
            raise place.missing(f"has neither {CARS} nor {', '.join(lacking)}")
        rows = [
            (f"{folder}/{photo}", model)
            for name, folder in CAR_PARTS.items()
            for photo, model in _cars(parts[name], "fname")
        ]
        names = _matlab(parts[CAR_NAMES], "class_names")
    table = pd.DataFrame(rows, columns=["path", "number"])
    if not table["number"].between(1, len(names)).all():
        raise InputError(
            f"{place.root}: a photo has a model that is not one of the {len(names)} names. Take the originals."
        )
    table["label"] = [names[number - 1] for number in table["number"]]
    table["image_id"] = table["path"].str.removesuffix(".jpg")
    table["split"] = np.where(table["number"] <= TRAINING_MODELS, "train", "test")
    return from_list(place, table.drop(columns="number"))


def _cars(file: Path, path: str) -> list[tuple[str, int]]:
    """The photo in field ``path`` and the number of its model, of every annotation in a file."""
    records = _matlab(file, "annotations")
    if not all(isinstance(record, dict) and record.keys() >= {path, "class"} for record in records):
        raise InputError(f"{file}: its annotations have no {path} and class. {ORIGINAL}")
    return [(record[path], int(record["class"])) for record in records]


def _matlab(file: Path, variable: str) -> list:
    from scipy.io import loadmat  # heavy: whoever has no cars does not wait for it

    try:
        return np.atleast_1d(loadmat(file, simplify_cells=True)[variable]).tolist()
    except Exception as error:  # damage shows in many ways
        raise InputError(f"{file}: cannot read its {variable} ({error!r}). {ORIGINAL}") from error


PRODUCTS = {"Ebay_train.txt": "train", "Ebay_test.txt": "test"}


def sop(place: Place) -> ImageTable:
    """Stanford Online Products (Oh Song et al. 2016): the label is the product (its class_id, as text).

    Extras: split (train, test: the published one, by product) and category (bicycle … toaster, twelve of them).
    """
    parts = [read_words(place.need(name), ("class_id", "path")).assign(split=split) for name, split in PRODUCTS.items()]
    rows = pd.concat(parts, ignore_index=True).rename(columns={"class_id": "label"})
    folders = rows["path"].str.split("/").str[0]  # bicycle_final/111085122871_0.JPG
    rows = rows.assign(image_id=stems(rows["path"]), category=folders.str.removesuffix("_final"))
    return from_list(place, rows)


IN_SHOP = "list_eval_partition.txt"


def in_shop(place: Place) -> ImageTable:
    """In-shop Clothes Retrieval of DeepFashion (Liu et al. 2016): the label is the garment (item_id).

    Extras: split (train, query, gallery: the published one; the garments of query and gallery are the same, those of
    train are others), gender (MEN, WOMEN) and category (Dresses). The Hyp-ViT paper prints 7,986 garments; the parts
    that it names add up to 3,997 + 3,985 = 7,982 (erratum HV-6).
    """
    file = place.need(IN_SHOP)
    rows = read_words(file, ("image_name", "item_id", "evaluation_status"), skip=1)
    rows = rows.rename(columns={"image_name": "path", "item_id": "label", "evaluation_status": "split"})
    splits = ("train", "query", "gallery")
    if unknown := set(rows["split"]) - set(splits):
        raise InputError(f"{file}: evaluation_status {min(unknown)!r} is none of {', '.join(splits)}.")
    parts = rows["path"].str.split("/")  # img/WOMEN/Dresses/id_00000002/02_1_front.jpg
    if (odd := parts.str.len() != 5).any():
        raise InputError(
            f"{file}: {rows.loc[odd, 'path'].iloc[0]} is no path like img/WOMEN/Dresses/id_00000002/02_1_front.jpg. "
            f"{ORIGINAL}"
        )
    image_ids = stems(rows["path"].str.removeprefix("img/"))
    return from_list(place, rows.assign(image_id=image_ids, gender=parts.str[1], category=parts.str[2]))


INATURALIST = {"train": "train2018.json", "validation": "val2018.json"}
CATEGORIES = "categories.json"
RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")


def inaturalist(place: Place) -> ImageTable:
    """iNaturalist 2018 (Van Horn et al. 2018): train2018.json and val2018.json, or one of them; species are labels.

    Extras: kingdom, phylum, class, order, family, genus, and part (train, validation: the published one, with every
    species on both sides). The lists as first released hide the names: a species is a number there, and its ranks are
    not given. The names were released afterwards as categories.json, which is read if it lies beside the lists.
    """
    files = {part: file for part, name in INATURALIST.items() if (file := place.find(name))}
    if not files:
        raise place.missing(f"has neither {' nor '.join(INATURALIST.values())}")
    named = place.find(CATEGORIES)
    parts = []
    for part, file in files.items():
        content = _json(file, ("images", "annotations", "categories"))
        species = _species(_json(named) if named else content["categories"], named or file)
        images, labels = (pd.DataFrame(content[what]) for what in ("images", "annotations"))
        try:
            rows = images[["id", "file_name"]].merge(
                labels[["image_id", "category_id"]], left_on="id", right_on="image_id", validate="one_to_one"
            )
        except (KeyError, pd.errors.MergeError) as error:
            raise InputError(f"{file}: images and annotations do not fit ({error}). {ORIGINAL}") from error
        if lost := sorted(set(rows["category_id"]) - set(species.index)):
            raise InputError(f"{named or file}: there is no category {lost[0]}. Take the file of the same year.")
        parts.append(rows.join(species, on="category_id").assign(part=part))
    rows = pd.concat(parts, ignore_index=True).rename(columns={"name": "label", "file_name": "path"})
    rows = rows.assign(image_id=stems(rows["path"]))
    return from_list(place, rows[["image_id", "path", "label", *RANKS, "part"]])


def _species(categories: Any, file: Path) -> pd.DataFrame:
    """The name and the ranks of every category, by its id."""
    table, columns = pd.DataFrame(categories), ["name", *RANKS]
    lacking = [column for column in ("id", *columns) if column not in table]
    if lacking or (table[columns].isna() | (table[columns] == "")).any(axis=None):
        what = f"without {', '.join(lacking)}" if lacking else "with empty ranks"
        raise InputError(
            f"{file}: categories {what}. The names of the species were released as {CATEGORIES} (see the page of the "
            "2018 competition): put it beside the lists."
        )
    return table.set_index("id")[columns].astype(str)


def _json(file: Path, needed: tuple[str, ...] = ()) -> Any:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read as JSON ({error}). {ORIGINAL}") from error
    if lacking := [name for name in needed if name not in content]:
        raise InputError(f"{file}: has no {', '.join(lacking)}. {ORIGINAL}")
    return content
