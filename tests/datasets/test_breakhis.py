from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

HOME = "BreaKHis_v1/histology_slides/breast"
FILES = [
    "benign/SOB/adenosis/SOB_B_A_14-22549AB/100X/SOB_B_A-14-22549AB-100-027.png",
    "benign/SOB/adenosis/SOB_B_A_14-22549CD/200X/SOB_B_A-14-22549CD-200-001.png",
    "benign/SOB/adenosis/SOB_B_A_14-22549G/200X/SOB_B_A-14-22549G-200-npz000.jpg",
    "malignant/SOB/ductal_carcinoma/SOB_M_DC_14-13412/200X/SOB_M_DC-14-13412-200-026.png",
    "malignant/SOB/lobular_carcinoma/SOB_M_LC_14-13412/200X/SOB_M_LC-14-13412-200-026.png",
    "malignant/SOB/papillary_carcinoma/SOB_M_PC_15-190EF/40X/SOB_M_PC-15-190EF-40-003.png",
]


@pytest.fixture
def root(tmp_path):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (46, 70, 3), dtype=np.uint8))
    for name in FILES:
        path = tmp_path / HOME / name
        path.parent.mkdir(parents=True, exist_ok=True)
        image.save(path)
    return tmp_path


def test_names_are_read(root):
    table = loaders.load("breakhis", root)
    extras = ["label", "tumour", "slide", "year", "magnification", "sequence", "procedure"]
    assert list(table.rows[extras].itertuples(index=False, name=None)) == [
        ("adenosis", "benign", "14-22549AB", 2014, "100X", "027", "SOB"),
        ("adenosis", "benign", "14-22549CD", 2014, "200X", "001", "SOB"),
        ("adenosis", "benign", "14-22549G", 2014, "200X", "npz000", "SOB"),
        ("ductal carcinoma", "malignant", "14-13412", 2014, "200X", "026", "SOB"),
        ("lobular carcinoma", "malignant", "14-13412", 2014, "200X", "026", "SOB"),
        ("papillary carcinoma", "malignant", "15-190EF", 2015, "40X", "003", "SOB"),
    ]
    assert table.group_kind == "patient"
    assert read_image(table.path(0)).size == (70, 46)


def test_blocks_of_one_number_are_one_patient_also_across_subtypes(root):
    assert loaders.load("breakhis", root).groups.tolist() == ["14-22549"] * 3 + ["14-13412"] * 2 + ["15-190"]


def test_one_magnification(root):
    table = loaders.load("breakhis", root, magnification="200X")
    assert table.rows["path"].tolist() == [f"{HOME}/{name}" for name in FILES[1:5]]


def test_an_unknown_magnification_names_the_four(root):
    with pytest.raises(InputError, match=r"magnification '20X' is not in BreakHis\. Use 40X, 100X, 200X, 400X"):
        loaders.load("breakhis", root, magnification="20X")


def test_a_magnification_that_is_not_there_says_which_are(root):
    with pytest.raises(MissingDataset, match=r"no BreakHis images at 400X \(found: 1 at 100X, 4 at 200X, 1 at 40X\)"):
        loaders.load("breakhis", root, magnification="400X")


@pytest.mark.parametrize(
    "name",
    [
        "SOB_M_A-14-22549AB-100-027.png",  # adenosis is benign
        "SOB_B_A-14-22549AB-50-027.png",
        "SOB_B_A-14-22549AB-100-027 (1).png",
        "mask_SOB_B_A-14-22549AB-100-028.png",
    ],
)
def test_other_names_are_left_out_and_listed(root, name):
    (root / name).touch()
    table = loaders.load("breakhis", root)
    assert len(table) == len(FILES)
    assert [what for what, _ in table.skipped] == [name]


def test_an_image_in_two_folders_is_an_error(root):
    (root / "fold1").mkdir()
    (root / "fold1" / Path(FILES[0]).name).touch()
    with pytest.raises(InputError, match=r"SOB_B_A-14-22549AB-100-027 in .*, fold1/SOB_B_A"):
        loaders.load("breakhis", root)


def test_real_images_at_200x(real):
    table = loaders.load("breakhis", real("breakhis_sample/200X_224px"), magnification="200X")
    assert len(table) == 801 and len(table.classes) == 8 and table.skipped == ()
    assert table.rows["slide"].nunique() == 46 and len(set(table.groups)) == 42
    assert table.rows.groupby("label")["group"].nunique().loc[["adenosis", "phyllodes tumor"]].tolist() == [1, 1]


def test_real_originals(real):
    table = loaders.load("breakhis", real("breakhis_sample/originals"))
    assert len(table) == 24 and table.skipped == ()
    assert set(table.rows["magnification"]) == {"40X", "100X", "200X", "400X"}
    assert read_image(table.path(0)).size == (700, 460)
