"""Datasets are recognised by their layout, wherever they were unpacked."""

from pathlib import Path

import pytest

from lib.datasets import finding
from lib.errors import InputError


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


KATHER = ("k/Kather_5000/01_TUMOR/a.tif", "k/Kather_5000/08_EMPTY/b.tif")
BREAKHIS = (
    "BreaKHis_v1/histology_slides/breast/benign/SOB/adenosis/s/40X/SOB_B_A-14-22549AB-40-001.png",
    "BreaKHis_v1/histology_slides/breast/malignant/SOB/x/s/400X/SOB_M_DC-14-2523-400-010.png",
)
HAM = ("skin/HAM10000_metadata.csv", "skin/images/ISIC_0027419.jpg")


def test_each_dataset_is_found_in_its_original_layout(tmp_path):
    breast = tmp_path / "BreaKHis_v1/histology_slides/breast"
    assert finding.find(touch(tmp_path, *KATHER, *BREAKHIS, *HAM)) == {
        "kather": tmp_path / "k/Kather_5000",
        "bh40x": breast,
        "bh400x": breast,
        "ham10000": tmp_path / "skin",
    }


def test_the_folder_itself_may_be_the_dataset(tmp_path):
    touch(tmp_path, *KATHER)
    assert finding.find(tmp_path / "k/Kather_5000") == {"kather": tmp_path / "k/Kather_5000"}


def test_class_folders_are_yours_if_nothing_is_known(tmp_path):
    assert finding.find(touch(tmp_path, "melanoma/1.png", "naevus/2.JPG")) == {"folder": tmp_path}


@pytest.mark.parametrize("names", [(), ("a/readme.txt",), ("loose.png",), (".hidden/1.png",)])
def test_nothing_is_found_without_class_folders_of_images(tmp_path, names):
    assert finding.find(touch(tmp_path, *names)) == {}


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(InputError, match=r"DATA=.*nowhere is not a folder"):
        finding.find(tmp_path / "nowhere")
