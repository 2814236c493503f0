"""Anybody's class folders: labels, patients by folders or by a list, and notices of what may not be meant so."""

import re

import pytest
from PIL import Image

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

FILES = ["fat/1.png", "fat/2.JPG", "fat/3.jpeg", "muscle/1.tif", "muscle/2.TIFF", "muscle/3.bmp", "muscle/4.webp"]


def test_class_folders_give_labels_and_every_image_its_own_group(tmp_path, make):
    table = loaders.load("folder", make(tmp_path, [*FILES, ".hidden.png", "fat/._1.png", ".git/1.png", "README.md"]))
    assert table.rows["image_id"].tolist() == FILES == table.groups.tolist()
    assert table.labels.tolist() == ["fat"] * 3 + ["muscle"] * 4
    assert table.group_kind == "image" and [what for what, _ in table.skipped] == ["README.md"]
    assert all(read_image(table.path(i)).size == (12, 9) for i in range(len(FILES)))


@pytest.mark.parametrize(
    ("groups", "notice"),
    [
        ({"fat/ann/1.png": "ann", "fat/bob/1.png": "bob", "fat/x.png": "fat/x.png", "oil/ann/1.png": "ann"}, None),
        (
            {"fat/A/ann/1.png": "A/ann", "fat/B/ann/1.png": "B/ann", "oil/A/ann/1.png": "A/ann"},
            "3 levels of folders, as above fat/A/ann/1.png. Of these, A/ann is taken for the patient: .* 2 patients",
        ),
        (
            {"fat/ann/day1/1.png": "ann", "fat/ann/day2/1.png": "ann", "fat/bob/1.png": "bob", "oil/ann/1.png": "ann"},
            r"Of these, ann is taken for the patient: the lowest, or the one above that holds .*groups\.csv",
        ),
    ],
    ids=["patients", "sites of patients", "parts of a patient"],
)
def test_the_lowest_folder_is_the_patient_across_classes(tmp_path, make, recwarn, groups, notice):
    table = loaders.load("folder", make(tmp_path, list(groups)))
    assert dict(zip(table.rows["image_id"], table.groups, strict=True)) == groups
    assert table.group_kind == "patient"
    levels = [str(one.message) for one in recwarn if "levels of folders" in str(one.message)]
    assert re.search(notice, levels[0]) if notice else not levels


def test_a_class_of_one_image_and_pictures_in_two_classes_are_named(tmp_path, make):
    make(tmp_path, ["fat/1.png", "oil/1.png", "oil/2.png", "rare/1.png"])
    for number, name in enumerate(["fat/1.png", "oil/1.png", "rare/1.png"]):
        Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / name)
    (tmp_path / "fat/hard.png").hardlink_to(tmp_path / "oil/1.png")
    (tmp_path / "fat/soft.png").symlink_to(tmp_path / "oil/2.png")
    (tmp_path / "oil/again.png").write_bytes((tmp_path / "oil/2.png").read_bytes())
    with pytest.warns(UserWarning) as heard:
        loaders.load("folder", tmp_path)
    alone, twins = (str(one.message).removeprefix(f"{tmp_path}: ") for one in heard)
    assert alone.startswith("classes of one image (1): rare.")
    assert twins.startswith(
        "pictures in more than one class (2): fat/hard.png = oil/1.png, fat/soft.png = oil/2.png = oil/again.png."
    )


def test_a_picture_of_two_patients_is_named(tmp_path, make):
    make(tmp_path, names := [f"{label}/p{n}/1.png" for label in ("fat", "oil") for n in (1, 2)])
    for number, name in enumerate(names):
        Image.new("RGB", (9, 9), (number, 0, 0)).save(tmp_path / name)
    (tmp_path / "fat/p2/copy.png").hardlink_to(tmp_path / "fat/p1/1.png")
    (tmp_path / "oil/p1/again.png").hardlink_to(tmp_path / "oil/p1/1.png")
    with pytest.warns(UserWarning) as heard:
        loaders.load("folder", tmp_path)
    (said,) = (str(one.message) for one in heard)
    assert "pictures of more than one patient (1): fat/p1/1.png = fat/p2/copy.png. With one patient left out" in said


def test_groups_come_from_a_list_by_path_or_file_name_in_any_unicode_form(tmp_path, make):
    lines = "path,group\nfat\\1.png,007\n2.png,ann\n./oil/1.png,007\nnot_here.png,zoe\nfat/Jose\u0301.png,a\n"
    images = ("fat/1.png", "fat/2.png", "fat/Jos\u00e9.png", "oil/1.png")
    table = loaders.load("folder", make(tmp_path, dict.fromkeys(images) | {"groups.csv": lines}))
    assert table.groups.tolist() == ["007", "ann", "a", "007"]
    assert table.group_kind == "group" and table.skipped == ()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("path,patient\nfat/1.png,a", "groups.csv: no column group; it has path, patient"),
        ("path,group\nfat/1.png,a\nfat/2.png,b", "1 of 3 images have no row, such as muscle/1.png"),
        ("path,group\n1.png,a\n2.png,b", "several images are called 1.png"),
        ("path,group\nfat/1.png,a\nfat/1.png,b", "fat/1.png is listed more than once"),
        ("path,group\nfat/1.png,a\nfat/2.png,\nmuscle/1.png,b", "1 rows have no group, such as fat/2.png"),
    ],
)
def test_a_list_that_does_not_settle_the_groups_is_an_error(tmp_path, make, lines, message):
    make(tmp_path, {"fat/1.png": None, "fat/2.png": None, "muscle/1.png": None, "groups.csv": lines})
    with pytest.raises(InputError, match=message):
        loaders.load("folder", tmp_path)


def test_an_empty_class_folder_and_other_formats_are_left_out_with_a_notice(tmp_path, make):
    make(tmp_path, [*FILES, "fat/1.svs", "fat/2.SVS", "muscle/case.pdf", "muscle/noending", "about.pdf"])
    (tmp_path / "bone").mkdir()
    with pytest.warns(UserWarning) as heard:
        table = loaders.load("folder", tmp_path)
    assert "4 files in class folders are not read: 2 .svs, 1 .pdf, 1 without ending. What" in str(heard[0].message)
    assert "no images in these class folders, which are left out: bone" in str(heard[1].message)
    assert table.classes == ["fat", "muscle"] and len(table.skipped) == 6
    assert table.skipped[-1] == ("bone", "class folder without images")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([*FILES, "stray.png"], "1 images lie outside the class folders, such as stray.png"),
        (FILES[:3], r"only one class \(fat\)"),
        (["nv/1.png", "nv /2.png"], "only one class"),
        (["Train/fat/1.png", "test/fat/2.png"], "the folders Train, test look like a split"),
        (
            ["set/images/a/1.png", "set/images/a/p/2.png", "set/images/b/1.png"],
            "If a, b are the classes, say DATA=.*/set/im",
        ),
        (["MEL/1.png", "mel/2.png", "nv/1.png"], r"MEL .* and mel .* differ in capitals only"),
        (["fat/1.ndpi", "muscle/2.ndpi", "muscle/3.dcm"], r"holds no images \(.png, .*\), but 2 .ndpi, 1 .dcm"),
    ],
)
def test_what_cannot_be_class_folders_is_refused(tmp_path, make, files, message):
    with pytest.raises(MissingDataset if "holds no" in message else InputError, match=message):
        loaders.load("folder", make(tmp_path, files))


def test_class_folders_in_two_spellings_are_one_class(tmp_path, make):
    with pytest.warns(UserWarning, match="'nv', 'nv ' are taken as one label, nv"):
        table = loaders.load("folder", make(tmp_path, ["nv/1.png", "nv /2.png", "mel/1.png", "mel/2.png"]))
    assert table.labels.tolist() == ["mel", "mel", "nv", "nv"] and all(table.path(i).is_file() for i in range(4))
