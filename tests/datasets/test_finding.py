"""Datasets are recognised by their whole layout, wherever they were unpacked; everything else is yours, by its name."""

import os
from functools import partial
from pathlib import Path

import pytest

from lib import paths
from lib.datasets import finding, loaders, named
from lib.datasets.catalogue import describe
from lib.errors import InputError, MissingDataset


def touch(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


TILE = "1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601.tif"
TILES = tuple(f"{folder}/{TILE}" for folder in named.KATHER)
KATHER = tuple(f"k/Kather_5000/{name}" for name in TILES)
BREAKHIS = (
    "BreaKHis_v1/histology_slides/breast/benign/SOB/adenosis/s/40X/SOB_B_A-14-22549AB-40-001.png",
    "BreaKHis_v1/histology_slides/breast/malignant/SOB/x/s/400X/SOB_M_DC-14-2523-400-010.png",
)
HAM = ("skin/HAM10000_metadata.csv", "skin/images/ISIC_0027419.jpg")


def test_each_dataset_is_found_in_its_original_layout(tmp_path, recwarn):
    breast = tmp_path / "BreaKHis_v1/histology_slides/breast"
    assert finding.find(touch(tmp_path, *KATHER, *BREAKHIS, *HAM)) == {
        "kather": tmp_path / "k/Kather_5000",
        "bh40x": breast,
        "bh400x": breast,
        "ham10000": tmp_path / "skin",
    }
    assert not recwarn.list


ALIKE = {
    "nothing known": ("melanoma/1.png", "naevus/2.JPG"),
    "two of Kather's": ("01_TUMOR/1.png", "02_STROMA/2.png", "10_NERVE/3.png"),
    "all, other names": tuple(f"{folder}/1.png" for folder in named.KATHER),
    "one more": (*TILES, "09_NERVE/1.png"),
    "one less": TILES[:7],
    "BreakHis's two": ("benign/1.png", "malignant/2.png", "malignant/SOB_M_DC-14-2523-400-010.png"),
    "HAM10000's table": ("HAM10000_metadata.csv", "nv/1.png", "nv/2.png", "mel/ISIC_0027419.jpg"),
    "cars and vans": ("cars_train/00001.jpg", "cars_test/00001.jpg", "vans/00001.jpg"),
    "some of the ovarian": ("Serous/1.jpg", "Mucinous/1.jpg", "Clear_Cell/1.jpg"),
    "a bird among others": ("melanoma/1.jpg", "naevus/1.jpg", "Blue_Jay/1.jpg"),
    "another part of DeepFashion": ("Eval/list_eval_partition.txt", "Eval/01.jpg", "img/img_00000001.jpg"),
    "a list elsewhere": ("list_eval_partition.txt", "MEN/01_1_front.jpg", "WOMEN/01_1_front.jpg"),
    "ODIR's table": ("full_df.csv", "normal/1.jpg", "glaucoma/2.jpg", "glaucoma/2_left.jpg"),
}


@pytest.mark.parametrize("names", ALIKE.values(), ids=ALIKE)
@pytest.mark.filterwarnings("ignore:.*taken as your own images", "ignore:.*are not read")
def test_what_only_resembles_a_known_dataset_is_yours(tmp_path, names):
    here = touch(tmp_path / "My images", *names)
    assert finding.find(here) == {"my-images": here}


def test_images_with_known_names_among_others_and_folders_beside_a_known_dataset_are_pointed_out(tmp_path):
    here = touch(tmp_path / "mine", *TILES, "09_NERVE/1.png")
    with pytest.warns(UserWarning, match=r"8 of 9 images are named like those of kather.*NAME=kather takes these 8"):
        finding.find(here)
    assert finding.find(here, "kather") == {"kather": here}
    touch(tmp_path / "two", *KATHER, "birds/wren/1.png", "notes/a.txt", ".cache/a/1.png")
    with pytest.warns(UserWarning, match=r"Not used, because no known dataset: birds in .*DATA=<that folder>"):
        assert list(finding.find(tmp_path / "two")) == ["kather"]


def test_a_known_name_takes_that_dataset_only_and_is_an_error_elsewhere_and_any_other_is_ones_own(tmp_path):
    touch(tmp_path, *KATHER, *BREAKHIS, *HAM)
    (tmp_path / "skin/HAM10000_metadata.csv").write_text("lesion_id,image_id,dx,dx_type,age,sex,localization\n")
    kather, breast = tmp_path / "k/Kather_5000", tmp_path / "BreaKHis_v1/histology_slides/breast"
    assert finding.find(tmp_path, "Kather") == {"kather": kather}
    assert finding.find(tmp_path, "breakhis") == {"bh40x": breast, "bh400x": breast}
    assert finding.find(tmp_path, "bh40x") == {"bh40x": breast}
    assert finding.find(tmp_path, "ham10000") == {"ham10000": tmp_path / "skin"}
    for missing in ("ovarian", "bh100x"):
        with pytest.raises(MissingDataset, match=f"needs {missing}"):
            finding.find(tmp_path, missing)
    assert finding.find(kather, "Kather's tiles again") == {"kather-s-tiles-again": kather}
    loose = touch(tmp_path / "loose", *(Path(name).name for name in BREAKHIS))
    assert finding.find(loose, "breakhis") == {"bh400x": loose, "bh40x": loose}


@pytest.mark.parametrize("names", [(), ("a/readme.txt",), ("loose.png",), (".hidden/1.png",)])
def test_nothing_is_found_without_class_folders_of_images(tmp_path, names):
    assert finding.find(touch(tmp_path, *names)) == {}
    with pytest.raises(InputError, match=r"DATA=.*nowhere is not a folder"):
        finding.find(tmp_path / "nowhere")


def test_own_names_are_safe_and_mean_nothing_else():
    for text, name in {"eyes": "eyes", "  Ärzte & Co. ": "arzte-co", "folder": "folder", "x" * 300: "x" * 60}.items():
        assert finding.own_name(text) == name
    for text in ("bh200x", "glomerulus", "originals", "all", "2024-05-01", "1e5", "no"):
        assert finding.own_name(text) == f"own-{text}"


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    return tmp_path / "data"


def test_own_images_are_linked_under_their_name_and_loaded_by_it(data, tmp_path):
    here = touch(tmp_path / "birds", "wren/1.png", "finch/1.png")
    assert finding.link(here) == {"birds": here}
    assert finding.link(here, "Garden") == {"garden": here}
    (data / "originals").mkdir()
    (data / "kather").symlink_to(here)
    assert loaders.own() == ["birds", "garden"]
    table = loaders.load("garden", paths.images("garden"))
    assert table.name == "garden" and table.classes == ["finch", "wren"]
    assert describe(table) == "garden, your own images, 2 images, 2 classes"
    with pytest.raises(InputError, match=r"unknown dataset 'gardn': did you mean garden or .*NAME=<name>"):
        loaders.load("gardn", here)


def test_a_default_name_is_not_taken_from_another_folder_and_a_given_one_is(data, tmp_path):
    first, second = (touch(tmp_path / place / "eyes", "l/1.png", "r/1.png") for place in ("a", "b"))
    finding.link(first)
    with pytest.raises(InputError, match=r"eyes is the name of .*a/eyes already\. .*NAME=<name>, or say NAME=eyes"):
        finding.link(second)
    assert (data / "eyes").resolve() == first.resolve()
    with pytest.warns(UserWarning, match=r"eyes was .*a/eyes and is .*b/eyes from now on"):
        finding.link(second, "eyes")
    assert (data / "eyes").resolve() == second.resolve()


def test_a_folder_of_slides_alone_is_told_what_is_missing(data, tmp_path):
    with pytest.raises(InputError, match=r"it holds 2 \.svs, 1 \.pdf, none of which is read here \(cut"):
        finding.link(touch(tmp_path / "slides", "a/1.svs", "b/2.svs", "b/report.pdf"))


def test_a_folder_of_ones_own_in_data_is_not_taken_for_another(data, tmp_path, recwarn):
    names = ("l/1.png", "l/2.png", "r/1.png", "r/2.png")
    assert finding.link(touch(data / "eyes", *names)) == {"eyes": data / "eyes"}
    with pytest.raises(InputError, match=r"data/eyes is there already, and is not .*NAME=<name>"):
        finding.link(touch(tmp_path / "eyes", *names))
    assert not (data / "eyes").is_symlink() and not recwarn.list


@pytest.mark.parametrize("name", ["fat/b.png", "fat/notes.txt"])
def test_a_link_that_leads_nowhere_is_named_before_anything_runs(data, tmp_path, name):
    here = touch(tmp_path / "mine", "fat/1.png", "oil/1.png", "oil/.lock")
    (here / name).symlink_to(tmp_path / "gone.png")
    with pytest.raises(InputError, match=rf"{name}: a link to {tmp_path}/gone.png, where no file is. Mend, move or"):
        finding.link(here)
    (here / name).unlink()
    (here / "oil/.#2.png").symlink_to("nowhere")  # as an editor leaves it: neither a loader nor DVC reads hidden files
    assert finding.link(here) == {"mine": here}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (b"fat/M\xfcller.png", r"fat/M\\xfcller.png: the name is no UTF-8. Rename"),
        (b"fat/M\xfcller.txt", r"fat/M\\xfcller.txt: the name is no UTF-8. Rename"),
        (b"fat/2\r.png", r"fat/2\\r.png: the name holds a carriage return. Rename"),
    ],
)
def test_a_name_that_no_table_can_hold_is_refused_before_anything_runs(data, tmp_path, name, message):
    here = touch(tmp_path / "mine", "fat/1.png", "oil/1.png", os.fsdecode(name))
    for read in (finding.link, partial(loaders.load, "folder")):
        with pytest.raises(InputError, match=message):
            read(here)


def test_a_known_dataset_put_there_by_hand_is_used_and_said_so(data, tmp_path):
    touch(data / "kather", "01_TUMOR/x.png")
    with pytest.warns(UserWarning, match=r"data/kather is used, not .*Kather_5000"):
        assert finding.link(touch(tmp_path / "one", *KATHER)) == {"kather": data / "kather"}


@pytest.mark.filterwarnings("ignore:Not used")
def test_real_samples_are_recognised(real):
    home = real()
    assert finding.find(home) == {
        "kather": home / "kather2016_sample",
        "bh200x": home / "breakhis_sample/200X_224px",
        "ham10000": home / "ham10000",
        "cub": home / "cub_sample",
        "odir": home / "odir_sample",
        "chest_xray": home / "chest_xray_sample",
    }
