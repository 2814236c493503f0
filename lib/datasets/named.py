"""Datasets whose folders and file names say all: a row, or why an image is left out, from the path of each image."""

import re
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from lib.datasets import trees
from lib.datasets.catalogue import DATASETS
from lib.datasets.reading import Place, from_paths
from lib.datasets.table import ImageTable

Row = dict[str, Any] | str | None


def plain(name: str) -> str:
    """The letters of a folder's name in lower case: Clear_Cell, clear-cell and "Clear Cell" are one."""
    return re.sub("[^a-z]", "", name.lower())


def spellings(folders: Mapping[str, str]) -> dict[str, str]:
    """Class by the plain name of its folder, as published or as the class is called here."""
    return {plain(name): label for folder, label in folders.items() for name in (folder, label)}


def outside(folders: Iterable[str]) -> str:
    """Why an image is left out that lies in none of these folders."""
    return f"not in a class folder {', '.join(folders)}"


KATHER = DATASETS["kather"].folders
# 1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601
TILE = re.compile(r"[0-9A-F]+_(?P<source_image>(?P<slide>CRC-Prim-HE-\d+)\w*)\.tif_Row_(?P<row>\d+)_Col_(?P<col>\d+)")


def kather(place: Place) -> ImageTable:
    """Kather et al. 2016. Extras: source_image (CRC-Prim-HE-10_020), slide (CRC-Prim-HE-10), row and col (pixels).

    The group is the slide. The paper cut its tiles from ten slides, and the names count them from 01 to 10; what
    follows numbers the pieces of a slide (some occur as ``_001`` and ``_001b``, or as ``_copy``). In a sample of 240
    tiles the colour of a tile finds its own slide first for 50 % of the tiles when tiles of its own piece are left out,
    where chance within the class is 17 %: a split by piece keeps stain and patient on both sides. 28 of the 30 EMPTY
    tiles of that sample share slide 06, and these 28 also share one piece, 06_005.
    """

    def row(path: PurePosixPath) -> Row:
        folder, tile = path.parent.name, TILE.fullmatch(path.stem)
        if folder not in KATHER:
            return outside(KATHER)
        if tile is None:
            return "not a tile name like 1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601.tif"
        pixels = {"row": int(tile["row"]), "col": int(tile["col"])}
        known = {"image_id": f"{folder}/{path.stem}", "label": KATHER[folder], "group": tile["slide"]}
        return known | tile.groupdict() | pixels

    return from_paths(place, row, "slide", "tiles")


SUBTYPES = DATASETS["breakhis"].folders
# SOB_B_A-14-22549AB-100-027, in mirrors SOB_B_A-14-29960CD-200-npz000
BREAKHIS = re.compile(
    rf"(?P<procedure>[A-Z]+)_(?P<subtype>{'|'.join(SUBTYPES)})-(?P<year>\d\d)-(?P<number>\d+)(?P<blocks>[A-Z]*)"
    r"-(?P<magnification>40|100|200|400)-(?P<sequence>\w+)"
)


def breakhis(place: Place) -> ImageTable:
    """BreakHis (Spanhol et al. 2016): all of it, or one magnification as bh200x; the label is the subtype.

    Extras: tumour (benign, malignant), procedure, slide (14-22549AB), year, magnification, sequence.

    The group is the patient: year and number without the block letters. The published 82 "patients" are slide ids, and
    22549AB, 22549CD and 22549G count as three of them. Here they are one person, so that blocks of one operation never
    lie on both sides of a split. A number can also carry two labels: 14-29960 has adenosis and fibroadenoma, and
    14-13412 is filed as ductal and as lobular carcinoma.
    """
    wanted = None if place.name == "breakhis" else place.name.removeprefix("bh").upper()

    def row(path: PurePosixPath) -> Row:
        parsed = BREAKHIS.fullmatch(path.stem)
        if parsed is None:
            return "not a BreakHis name like SOB_B_A-14-22549AB-100-027.png"
        magnification, patient = f"{parsed['magnification']}X", f"{parsed['year']}-{parsed['number']}"
        if wanted not in (None, magnification):
            return None
        return {
            "image_id": path.stem,
            "label": SUBTYPES[parsed["subtype"]],
            "group": patient,
            "tumour": {"B": "benign", "M": "malignant"}[parsed["subtype"][0]],
            "procedure": parsed["procedure"],
            "slide": patient + parsed["blocks"],
            "year": 2000 + int(parsed["year"]),
            "magnification": magnification,
            "sequence": parsed["sequence"],
        }

    return from_paths(place, row, "patient", f"BreakHis images at {wanted}" if wanted else "BreakHis images")


CHEST = ("normal", "pneumonia")
"""In capitals as published, inside of train, val and test."""
RADIOGRAPH = re.compile(r"(?:NORMAL2-)?IM-(?P<image>\d+)-.*|person(?P<person>\d+)_.*")


def chest_xray(place: Place) -> ImageTable:
    """Chest radiographs of children (Kermany et al. 2018), foreign to all other archives.

    The group is the patient: a number that file names carry, of another count in each class.
    """

    def row(path: PurePosixPath) -> Row:
        label, name = path.parent.name.lower(), RADIOGRAPH.fullmatch(path.stem)
        if label not in CHEST or name is None:
            return f"{outside(CHEST)}, or not named like its images"
        patient = f"{label} {int(name['image'] or name['person'])}"
        return {"image_id": f"{label}/{path.name}", "label": label, "group": patient}

    return from_paths(place, row, "patient", "such radiographs")


FAMILY = trees.load("cub", "taxonomy").parents
"""Species in the dataset's spelling → family; the dataset itself names no families."""
SPECIES = re.compile(rf"(?:(?P<number>\d{{3}})\.)?(?P<name>{'|'.join(trees.load('cub', 'taxonomy').leaves)})")
"""The folder of a species: 001.Black_footed_Albatross; in copies that lost their numbers, Black_footed_Albatross."""
TRAINING_SPECIES = 100
"""The last species of the standard training half of metric learning."""


def cub(place: Place) -> ImageTable:
    """CUB-200-2011 (Wah et al. 2011): photos in ``images/<species>/``; nobody says which photos show one bird.

    Extras: family, and split, the standard one of metric learning: species 1 to 100 train, 101 to 200 test, so that no
    species is on both sides. (The file train_test_split.txt is for classification: it has every species on both sides.)
    Of copies whose folders have lost their numbers, the first half of the species in alphabetical order trains, the
    larger half if their number is odd.
    """

    def row(path: PurePosixPath) -> Row:
        species = SPECIES.fullmatch(path.parent.name)
        if species is None or path.parts[-3:-2] != ("images",):
            return "not in images/<species>/"
        name = species["name"]
        image_id = f"{path.parent.name}/{path.stem}"
        return {"image_id": image_id, "label": name, "family": FAMILY[name], "number": species["number"]}

    table = from_paths(place, row, "image", "photos in images/<species>/")
    rows, names = table.rows, table.classes
    if rows["number"].notna().all():
        training = rows["number"].astype(int) <= TRAINING_SPECIES
    else:
        training = rows["label"].isin(names[: (len(names) + 1) // 2])
    rows = rows.drop(columns="number").assign(split=np.where(training, "train", "test"))
    return ImageTable(table.name, table.root, rows, table.group_kind, table.skipped)


BPS = DATASETS["bps"].folders
SLIDE = re.compile(r"(?P<patient>TCGA-\w{2}-\w{4})\b.*")
REGION = re.compile(r"(?P<region>(consep|crag|dpath|glas|pannuke)_\d+).*")
"""How the images of BCSS and of Lizard are named; a patch is taken for one of theirs if it is named so."""


def bps(place: Place) -> ImageTable:
    """BPS, patches of six tissues after ACIR: cut from BCSS (Amgad et al. 2019) and Lizard (Graham et al. 2021).

    The patches of the paper are not published, nor how they were cut: :mod:`lib.datasets.cutting` cuts some. The group
    is where a patch was cut: the patient of TCGA whose slide it is, or the region of Lizard; a patch of any other name
    is a group of its own. The paper splits by image, so that patches of one patient are on both sides (AC-23). Extra:
    source (BCSS, Lizard, other).
    """
    labels = spellings(BPS)

    def row(path: PurePosixPath) -> Row:
        label = labels.get(plain(path.parent.name))
        if label is None:
            return outside(BPS)
        source, group = origin(path.stem)
        image_id = f"{label}/{path.stem}"
        return {"image_id": image_id, "label": label, "group": group or image_id, "source": source}

    return from_paths(place, row, "source", "patches in class folders")


def origin(name: str) -> tuple[str, str]:
    """The set that a patch of this name is from, and its group there; "" if that is not known.

    >>> origin("TCGA-A1-A0SK-DX1_xmin45749_ymin25055_MPP-0.2500_512_0"), origin("crag_12_0_256"), origin("7")
    (('BCSS', 'TCGA-A1-A0SK'), ('Lizard', 'crag_12'), ('other', ''))
    """
    if slide := SLIDE.fullmatch(name):
        return "BCSS", slide["patient"]
    if region := REGION.fullmatch(name):
        return "Lizard", region["region"]
    return "other", ""


OVARIAN = DATASETS["ovarian"].folders


def ovarian(place: Place) -> ImageTable:
    """Ovarian cancer, four subtypes and non-cancerous tissue (Kasture, Mendeley Data 2021).

    The set names no patient. Every image is a group of its own, so that folds by group are folds by image here, and
    what two images of one patient or one slide add to a result cannot be measured.

    The paper about linear prototypes has 405 training and 93 test images of a public set with these classes; that these
    are all 498 of this one is why it is taken to be the set. By that count none is left over for the queries that the
    paper draws from "unused portions".
    """
    labels = spellings(OVARIAN)

    def row(path: PurePosixPath) -> Row:
        label = labels.get(plain(path.parent.name))
        return {"image_id": f"{label}/{path.name}", "label": label} if label else outside(OVARIAN)

    return from_paths(place, row, "image", "images in class folders")
