"""Every dataset is loaded by its name; what is missing says what it is, where it comes from, and how to get it."""

import pytest

from lib import paths
from lib.datasets import loaders, named, radin_ct
from lib.datasets.catalogue import DATASETS, describe, facts
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset
from lib.fingerprints import fingerprint


def test_class_sizes_are_those_of_the_paper_and_do_not_add_up_to_its_text():
    bps, ct = DATASETS["bps"].classes, DATASETS["radin_ct"].classes
    assert sum(bps.values()) == 18_678 == 18_703 - 25 and set(bps) == set(named.BPS.values())
    assert sum(ct.values()) == 29_833 == 20_932 + 5_980 + 2_991 - 70 and set(ct) == set(radin_ct.FOLDERS.values())


def test_drawn_tiles_are_read_from_their_table_as_text(tmp_path, make):
    lines = ["image_id,path,label,subtype,patient", "0001,tiles/1.png,NA,NA-1,007", "0002,tiles/2.png,fat,fat-1,008"]
    table = loaders.load("tissue", make(tmp_path, {"table.csv": "\n".join(lines)}))
    assert table.labels.tolist() == ["NA", "fat"] and table.groups.tolist() == ["007", "008"]
    assert table.group_kind == "patient" and table.path(1) == tmp_path / "tiles/2.png"
    with pytest.raises(MissingDataset, match="lists no images"):
        loaders.load("tissue", make(tmp_path, {"table.csv": f"{lines[0]}\n"}))


def test_an_unknown_name_is_answered_with_a_close_one_and_a_private_set_named(tmp_path):
    with pytest.raises(InputError, match=r"unknown dataset 'kathre': did you mean kather\?"):
        loaders.load("kathre", tmp_path)
    with pytest.raises(MissingDataset, match=r"glomerulus is a private collection .* only the paper's own numbers"):
        loaders.load("glomerulus", tmp_path)


@pytest.mark.parametrize("name", ["kather", "breakhis", "ham10000", "ovarian", "bps"])
def test_a_missing_dataset_says_what_it_is_and_how_to_get_it(tmp_path, name):
    known, nowhere = DATASETS[name], tmp_path / "nowhere"
    with pytest.raises(MissingDataset) as caught:
        loaders.load(name, nowhere)
    by_hand = f"Download it by hand: {known.page}\n" if known.page else f"make data NAME={name}"
    parts = (f"{nowhere} does not exist", known.doi, known.licence, known.size, f"data/{name} ", by_hand)
    assert [part for part in parts if part not in str(caught.value)] == []
    assert f"{known.images:,} images" in str(caught.value)
    nowhere.write_text("x")
    with pytest.raises(MissingDataset, match="is not a folder"):
        loaders.load(name, nowhere)


@pytest.mark.parametrize("name", DATASETS)
def test_an_empty_folder_is_a_missing_dataset(tmp_path, name):
    with pytest.raises(MissingDataset, match=f"needs {name}: "):
        loaders.load(name, tmp_path)


def test_the_catalogue_and_the_layouts_name_the_same_datasets():
    assert list(DATASETS) == list(loaders.LAYOUTS)
    images = {name: facts.images for name, facts in DATASETS.items()}
    assert [images[name] for name in ("cub", "cars", "sop", "in_shop")] == [11788, 16185, 120053, 52712]  # as published
    assert [images[name] for name in ("tissue", "kather", "breakhis", "ham10000")] == [None, 5000, 7909, 10015]
    assert sum(images[f"bh{m}x"] for m in (40, 100, 200, 400)) == images["breakhis"]


def test_pictures_are_published_of_drawn_tiles_and_of_kather_alone():
    shown = {name: one for name, one in DATASETS.items() if one.pictures is not None}
    assert set(shown) == {*paths.DRAWN, "kather"} and facts("birds").pictures is None
    for part in (shown["kather"].doi, shown["kather"].licence, shown["kather"].citation):
        assert part in shown["kather"].pictures


def test_a_training_does_not_depend_on_the_catalogue():
    """Its words would be in the key of everything that was trained."""
    trainings = {f"lib.training.{file.stem}" for file in (paths.ROOT / "lib/training").glob("*.py")}
    assert "lib/datasets/table.py " in (code := fingerprint(trainings - {"lib.training.pretrain"}))
    assert not any(f"lib/datasets/{name}" in code for name in ("catalogue", "loaders", "named", "lists"))


REAL = {
    "kather2016_sample": ("kather", 240, 8, 10, 150),
    "breakhis_sample/200X_224px": ("bh200x", 801, 8, 42, 224),
    "breakhis_sample/originals": ("breakhis", 24, 8, 16, 700),
    "ham10000": ("ham10000", 8587, 7, 6378, 224),
    "odir_sample": ("odir", 5509, 8, 2891, 160),
    "cub_sample": ("cub", 4550, 77, 4550, 160),
    "chest_xray_sample": ("chest_xray", 60, 2, 33, 512),
}


@pytest.mark.parametrize("folder", REAL)
def test_real_images(real, folder):
    name, n, n_classes, n_groups, side = REAL[folder]
    table = loaders.load(name, real(folder))
    assert (len(table), len(table.classes), len(set(table.groups)), table.skipped) == (n, n_classes, n_groups, ())
    assert side in read_image(table.path(0)).size
    if name == "cub":
        assert table.rows.groupby("split")["label"].nunique().to_dict() == {"train": 39, "test": 38}
        assert table.rows["family"].nunique() == 26
    if name == "kather":
        empty = table.rows[table.rows["label"] == "empty"]
        assert empty["source_image"].value_counts().to_dict() == {"CRC-Prim-HE-06_005": 28, "CRC-Prim-HE-10_026": 2}


def test_captions_say_how_many_images_there_are(tmp_path, make):
    table = loaders.load("ovarian", make(tmp_path, ["Serous/1.png", "Mucinous/1.png"]))
    assert describe(table) == "ovarian cancer subtypes, 2 of 498 images, 2 classes"
