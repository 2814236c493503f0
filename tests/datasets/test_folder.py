import re
import warnings

import numpy as np
import pytest
from PIL import Image

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

FILES = ["fat/1.png", "fat/2.JPG", "fat/3.jpeg", "muscle/1.tif", "muscle/2.TIFF", "muscle/3.bmp"]


def make(root, files):
    image = Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 10, 3), dtype=np.uint8))
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        image.save(root / name)
    return root


def test_class_folders_give_labels_and_every_image_its_own_group(tmp_path):
    table = loaders.load("folder", make(tmp_path, FILES))
    assert table.rows["image_id"].tolist() == FILES
    assert table.labels.tolist() == ["fat"] * 3 + ["muscle"] * 3
    assert table.groups.tolist() == FILES
    assert table.group_kind == "image"
    assert all(read_image(table.path(i)).size == (10, 12) for i in range(6))


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
            r"Of these, ann is taken for the patient: the lowest, or the one above that holds images itself.*groups=",
        ),
    ],
    ids=["patients", "sites of patients", "parts of a patient"],
)
def test_the_lowest_folder_is_the_patient_across_classes(tmp_path, recwarn, groups, notice):
    table = loaders.load("folder", make(tmp_path, groups))
    assert dict(zip(table.rows["image_id"], table.groups, strict=True)) == groups
    assert table.group_kind == "patient"
    assert loaders.load("folder", tmp_path, group_kind="slide").group_kind == "slide"
    levels = [str(one.message) for one in recwarn if "levels of folders" in str(one.message)]
    assert re.search(notice, levels[0]) if notice else not levels


def test_a_class_of_one_image_and_pictures_in_two_classes_are_named(tmp_path):
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


def test_a_list_of_groups_in_another_unicode_form_is_understood(tmp_path):
    make(tmp_path / "images", ["fat/Jos\u00e9.png", "oil/2.png"])
    (tmp_path / "groups.csv").write_text("path,group\nfat/Jose\u0301.png,a\n2.png,b\n", encoding="utf-8")
    assert loaders.load("folder", tmp_path / "images", groups=tmp_path / "groups.csv").groups.tolist() == ["a", "b"]


def test_groups_come_from_a_csv_by_path_or_file_name(tmp_path):
    make(tmp_path / "images", ["fat/1.png", "fat/2.png", "muscle/1.png"])
    csv = tmp_path / "groups.csv"
    csv.write_text("path,group\nfat\\1.png,007\n2.png,ann\n./muscle/1.png,007\nnot_here.png,zoe\n")
    table = loaders.load("folder", tmp_path / "images", groups=csv, group_kind="patient")
    assert table.groups.tolist() == ["007", "ann", "007"]
    assert table.group_kind == "patient"
    assert loaders.load("folder", tmp_path / "images", groups=csv).group_kind == "group"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("path,patient\nfat/1.png,a", "groups.csv: no column group; it has path, patient"),
        ("path,group\nfat/1.png,a\nfat/2.png,b", "1 of 3 images have no row, such as muscle/1.png"),
        ("path,group\nfat/2.png,b", "2 of 3 images have no row, such as fat/1.png"),
        ("path,group\n1.png,a\n2.png,b", "several images are called 1.png"),
        ("path,group\nfat/1.png,a\nfat/1.png,b", "fat/1.png is listed more than once"),
        ("path,group\nfat/1.png,a\nfat/2.png,\nmuscle/1.png,b", "1 rows have no group, such as fat/2.png"),
    ],
)
def test_a_csv_that_does_not_settle_the_groups_is_an_error(tmp_path, lines, message):
    make(tmp_path / "images", ["fat/1.png", "fat/2.png", "muscle/1.png"])
    (tmp_path / "groups.csv").write_text(lines)
    with pytest.raises(InputError, match=message):
        loaders.load("folder", tmp_path / "images", groups=tmp_path / "groups.csv")


def test_hidden_files_are_ignored_and_others_listed(tmp_path):
    make(tmp_path, FILES)
    for name in (".hidden.png", "fat/._1.png", "fat/slide.svs", "README.md"):
        (tmp_path / name).touch()
    (tmp_path / ".git").mkdir()
    with pytest.warns(UserWarning, match="1 files in class folders are not read"):
        table = loaders.load("folder", tmp_path)
    assert len(table) == 6
    assert [what for what, _ in table.skipped] == ["README.md", "fat/slide.svs"]


def test_an_empty_class_folder_is_skipped_with_a_warning_or_an_error(tmp_path):
    make(tmp_path, FILES)
    (tmp_path / "bone").mkdir()
    with pytest.warns(UserWarning, match="bone: no images in this class folder"):
        table = loaders.load("folder", tmp_path)
    assert table.classes == ["fat", "muscle"]
    assert table.skipped == (("bone", "class folder without images"),)
    with warnings.catch_warnings(), pytest.raises(InputError, match="bone: no images in this class folder"):
        warnings.simplefilter("error")
        loaders.load("folder", tmp_path, on_empty="error")
    with pytest.raises(InputError, match="on_empty='ignore' is unknown"):
        loaders.load("folder", tmp_path, on_empty="ignore")


def test_images_outside_class_folders_are_an_error(tmp_path):
    make(tmp_path, [*FILES, "stray.png"])
    with pytest.raises(InputError, match=r"1 images lie outside the class folders, such as stray.png"):
        loaders.load("folder", tmp_path)


def test_one_class_is_not_enough(tmp_path):
    with pytest.raises(InputError, match=r"only one class \(fat\)"):
        loaders.load("folder", make(tmp_path, FILES[:3]))


def test_folders_called_train_and_test_are_not_classes(tmp_path):
    with pytest.raises(InputError, match="the folders Train, test look like a split"):
        loaders.load("folder", make(tmp_path, ["Train/fat/1.png", "test/fat/2.png"]))


def test_formats_that_are_not_read_are_counted_and_named(tmp_path):
    make(tmp_path, FILES)
    for name in ("fat/1.svs", "fat/2.SVS", "muscle/case.pdf", "muscle/noending", "about.pdf"):
        (tmp_path / name).touch()
    with pytest.warns(
        UserWarning, match=r"4 files in class folders are not read: 2 .svs, 1 .pdf, 1 without ending\. What"
    ):
        loaders.load("folder", tmp_path)


def test_a_folder_of_formats_that_are_not_read_says_which(tmp_path):
    for name in ("fat/1.ndpi", "muscle/2.ndpi", "muscle/3.dcm"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(MissingDataset, match=r"holds no images \(.png, .*\), but 2 .ndpi, 1 .dcm"):
        loaders.load("folder", tmp_path)


def test_webp_is_read(tmp_path):
    table = loaders.load("folder", make(tmp_path, ["fat/1.webp", "muscle/1.WEBP"]))
    assert [read_image(table.path(i)).size for i in range(2)] == [(10, 12)] * 2


def test_one_level_too_many_suggests_the_inner_folder(tmp_path):
    make(tmp_path, ["set/images/a/1.png", "set/images/a/p/2.png", "set/images/b/1.png", "set/images/c/1.png"])
    with pytest.raises(InputError, match=rf"If a, b, c are the classes, say DATA={tmp_path}/set/images\."):
        loaders.load("folder", tmp_path)


def test_class_folders_in_two_spellings_are_one_class(tmp_path):
    make(tmp_path, ["nv/1.png", "nv /2.png", "mel/1.png"])
    with pytest.warns(UserWarning, match="'nv', 'nv ' are taken as one label, nv"):
        table = loaders.load("folder", tmp_path)
    assert table.labels.tolist() == ["mel", "nv", "nv"]
    assert all(table.path(i).is_file() for i in range(3))
    (tmp_path / "mel").rename(tmp_path / "MEL")
    make(tmp_path, ["mel/2.png"])
    with pytest.warns(UserWarning), pytest.raises(InputError, match=r"MEL .* and mel .* differ in capitals only"):
        loaders.load("folder", tmp_path)


def test_two_spellings_of_one_class_are_one_class_only(tmp_path):
    with pytest.raises(InputError, match="only one class"):
        loaders.load("folder", make(tmp_path, ["nv/1.png", "nv /2.png"]))


def test_a_folder_without_images_is_a_missing_dataset(tmp_path):
    (tmp_path / "fat").mkdir()
    (tmp_path / "fat/notes.txt").touch()
    with pytest.raises(MissingDataset, match="holds no images"):
        loaders.load("folder", tmp_path)
