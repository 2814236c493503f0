"""Datasets whose folders and file names say all: recognised, read, and what is not theirs left out."""

import pytest

from lib.datasets import loaders, named, radin_ct
from lib.errors import InputError, MissingDataset
from tests.datasets.conftest import Case, columns

KATHER = {
    f"{folder}/{code}_CRC-Prim-HE-{source}.tif_Row_{row}_Col_451.tif": None
    for folder, code, source, row in zip(
        named.KATHER,
        ("1025D", "1000E", "A", "B", "C", "104D0", "F", "1027"),
        ("10_020", "04", "01_001b", "01_002", "02_001", "07_001_copy", "03_001", "06_005"),
        range(1, 9),
        strict=True,
    )
}
DUCTAL, LOBULAR = "ductal carcinoma", "lobular carcinoma"
BREAKHIS = {
    "benign/SOB/adenosis/s/100X/SOB_B_A-14-22549AB-100-027.png": ("adenosis", "14-22549", "14-22549AB", 2014, "100X"),
    "benign/SOB/adenosis/s/SOB_B_A-14-22549CD-200-npz000.png": ("adenosis", "14-22549", "14-22549CD", 2014, "200X"),
    "malignant/SOB/dc/s/200X/SOB_M_DC-14-13412-200-026.png": (DUCTAL, "14-13412", "14-13412", 2014, "200X"),
    "malignant/SOB/lc/s/40X/SOB_M_LC-15-13412EF-40-003.png": (LOBULAR, "15-13412", "15-13412EF", 2015, "40X"),
}
BIRDS = {
    "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg": ("Black_footed_Albatross", "Diomedeidae", "train"),
    "022.Chuck_will_Widow/Chuck_Will_Widow_0005_796982.jpg": ("Chuck_will_Widow", "Caprimulgidae", "train"),
    "100.Brown_Pelican/Brown_Pelican_0001_94022.jpg": ("Brown_Pelican", "Pelecanidae", "train"),
    "101.White_Pelican/White_Pelican_0022_96284.jpg": ("White_Pelican", "Pelecanidae", "test"),
    "118.House_Sparrow/House_Sparrow_0006_111034.jpg": ("House_Sparrow", "Passeridae", "test"),
    "200.Common_Yellowthroat/Common_Yellowthroat_0003_190521.jpg": ("Common_Yellowthroat", "Parulidae", "test"),
}
"""The split goes by the number of the species, not by train_test_split.txt."""
PATCHES = {
    "Fat/7": ("fat", "fat/7", "other"),
    "Inflammatory/TCGA-A2-A0YE-DX1_7": ("inflammatory", "TCGA-A2-A0YE", "BCSS"),
    "Necrosis/TCGA-A2-A0YE-DX1_8": ("necrosis", "TCGA-A2-A0YE", "BCSS"),
    "Stroma/crag_12_0_0": ("stroma", "crag_12", "Lizard"),
    "gland/glas_3_0_0": ("gland", "glas_3", "Lizard"),
    "tumor/TCGA-A1-A0SK-DX1_0_256": ("tumour", "TCGA-A1-A0SK", "BCSS"),
}
RADIOGRAPHS = {
    "normal/IM-0011-0001-0001": "normal 11",
    "normal/NORMAL2-IM-0012-0001": "normal 12",
    "pneumonia/person11_virus_1": "pneumonia 11",
    "pneumonia/person7_bacteria_8": "pneumonia 7",
}


CASES = {
    "kather": Case(
        "k/Kather_5000",
        KATHER,
        {
            "label": list(named.KATHER.values()),
            "group": [f"CRC-Prim-HE-{slide}" for slide in ("10", "04", "01", "01", "02", "07", "03", "06")],
            "row": list(range(1, 9)),
            "col": [451] * 8,
        },
        "slide",
    ),
    "breakhis": Case(
        "BreaKHis_v1/histology_slides/breast",
        BREAKHIS,
        columns("label group slide year magnification", BREAKHIS.values()),
        "patient",
    ),
    "ovarian": Case(
        "OvarianCancer",
        {f"{folder}/1.{ending}": None for folder in named.OVARIAN for ending in ("JPG", "png")},
        {"label": [label for label in named.OVARIAN.values() for _ in range(2)]},
    ),
    "cub": Case(
        "CUB_200_2011",
        {f"images/{photo}": None for photo in BIRDS} | {"train_test_split.txt": "1 0\n"},
        columns("label family split", BIRDS.values()),
    ),
    "bps": Case(
        "patches",
        {f"{name}.png": None for name in PATCHES},
        columns("label group source", PATCHES.values()),
        "source",
    ),
    "radin_ct in folders": Case(
        "ct",
        {f"{folder}/1.png": None for folder in radin_ct.FOLDERS},
        {"label": [radin_ct.FOLDERS[folder] for folder in sorted(radin_ct.FOLDERS)]},
    ),
    "chest_xray": Case(
        "x",
        {f"{name}.jpeg": None for name in RADIOGRAPHS},
        {"label": ["normal", "normal", "pneumonia", "pneumonia"], "group": list(RADIOGRAPHS.values())},
        "patient",
    ),
    "chest_xray in capitals": Case(
        "x/test",
        {f"{name.split('/')[0].upper()}/{name.split('/')[1]}.jpeg": None for name in RADIOGRAPHS},
        {"label": ["normal", "normal", "pneumonia", "pneumonia"], "group": list(RADIOGRAPHS.values())},
        "patient",
    ),
}
"""Case → what is in it; its first word is the dataset."""


@pytest.mark.parametrize("name", CASES)
def test_a_published_layout_is_recognised_and_read(check_published, name):
    check_published(name.split()[0], CASES[name])


def test_one_magnification_of_breakhis_is_a_dataset(place, tmp_path):
    place(CASES["breakhis"])
    table = loaders.load("bh200x", tmp_path)
    assert set(table.rows["magnification"]) == {"200X"} and len(table) == 2 and table.skipped == ()
    with pytest.raises(MissingDataset, match=r"no BreakHis images at 400X \(4 other images\)"):
        loaders.load("bh400x", tmp_path)


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("kather", {"01_TUMOR/thumbnail.png": "not a tile name", "larger/CRC_1.tif": "not in a class folder 01_TUMOR"}),
        ("breakhis", {"SOB_M_A-14-22549AB-100-027.png": "not a BreakHis name"}),  # adenosis is benign
        ("breakhis", {"SOB_B_A-14-22549AB-50-027.png": "not a BreakHis name"}),
        ("breakhis", {"mask_SOB_B_A-14-22549AB-100-028.png": "not a BreakHis name"}),
        ("ovarian", {"HGSC/1.jpg": "not in a class folder Clear_Cell, Endometri"}),
        (
            "cub",
            {"images/Tyrannosaurus/1.jpg": "not in images", "masks/200.Common_Yellowthroat/1.png": "not in images"},
        ),
        ("bps", {"rgbs_colorNormalized/TCGA-A1-A0SK-DX1.png": "not in a class folder tumor"}),
        ("radin_ct in folders", {"gallbladder_ct/1.png": "not in a class folder such as abd_normal_ct"}),
        ("chest_xray", {"normal/logo.png": "not named like its images"}),
    ],
)
def test_other_images_are_left_out_and_listed(check_left_out, name, others):
    check_left_out(name.split()[0], CASES[name], others)


def test_spellings_of_copies_are_the_same_classes_and_the_same_image_ids(tmp_path, make):
    folders = ("clear_cell", "Clear Cell", "ENDOMETRIOID", "Endometri", "Non-Cancerous")
    make(tmp_path / "deep/er", [f"{folder}/{number}.jpg" for number, folder in enumerate(folders)])
    classes = ("clear cell", "clear cell", "endometrioid", "endometrioid", "non-cancerous")
    expected = [f"{name}/{number}.jpg" for number, name in enumerate(classes)]
    assert sorted(loaders.load("ovarian", tmp_path).rows["image_id"]) == expected
    make(tmp_path, ["test/Clear_Cell/0.jpg"])
    with pytest.raises(InputError, match=r"such as clear cell/0\.jpg in deep/er/clear_cell/0\.jpg, test/Clear_Cell"):
        loaders.load("ovarian", tmp_path)


def test_copies_of_cub_without_numbers_are_halved_in_alphabetical_order(tmp_path, make):
    species = ("Gadwall", "Bobolink", "Blue_Jay", "Mallard", "Ovenbird")
    rows = loaders.load("cub", make(tmp_path, [f"images/{name}/0.jpg" for name in species])).rows
    halves = {"train": ["Blue_Jay", "Bobolink", "Gadwall"], "test": ["Mallard", "Ovenbird"]}
    assert {part: sorted(rows["label"][rows["split"] == part]) for part in halves} == halves and len(rows) == 5
