"""The ovarian set in its published layout, tiny; the folder names are those that readers of the original use."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib import paths
from lib.datasets import fetch, finding, folds, loaders, ovarian
from lib.datasets.catalogue import DATASETS
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

PUBLISHED = ("Clear_Cell", "Endometri", "Mucinous", "Non_Cancerous", "Serous")
LABELS = ["clear cell", "endometrioid", "mucinous", "non-cancerous", "serous"]


def draw(root: Path, *folders: str, n: int = 3) -> Path:
    for seed, folder in enumerate(folders):
        (root / folder).mkdir(parents=True, exist_ok=True)
        for i in range(n):
            pixels = np.random.default_rng([seed, i]).integers(0, 256, (12, 16, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(root / folder / f"{i + 1}.{'JPG' if i else 'jpg'}")
    return root


def test_folders_are_classes_and_every_image_is_a_group_of_its_own(tmp_path):
    table = loaders.load("ovarian", draw(tmp_path, *(f"OvarianCancer/{name}" for name in PUBLISHED)))
    assert table.classes == LABELS and table.skipped == ()
    assert table.rows["label"].value_counts().to_dict() == dict.fromkeys(LABELS, 3)
    assert table.rows["image_id"].tolist()[:2] == ["clear cell/1.jpg", "clear cell/2.JPG"]
    assert table.group_kind == "image" and len(set(table.groups)) == len(table) == 15
    assert read_image(table.path(14)).size == (16, 12)
    assert table.describe() == "ovarian cancer subtypes, 15 of 498 images, 5 classes"


@pytest.mark.parametrize(
    "folders",
    [
        ("clear_cell", "endometri", "mucinous", "non_cancerous", "serous"),
        ("Clear Cell", "Endometrioid", "MUCINOUS", "Non-Cancerous", "Serous"),
        ("ClearCell", "ENDOMETRIOID", "Mucinous", "NonCancerous", "serous"),
    ],
)
def test_spellings_of_copies_are_the_same_classes_and_the_same_image_ids(tmp_path, folders):
    published = loaders.load("ovarian", draw(tmp_path / "a", *PUBLISHED))
    copy = loaders.load("ovarian", draw(tmp_path / "b/deep/er", *folders))
    assert copy.classes == LABELS
    assert sorted(copy.rows["image_id"]) == sorted(published.rows["image_id"])


def test_the_same_file_name_in_two_classes_is_two_images_and_in_one_class_an_error(tmp_path):
    draw(tmp_path, "train/Serous", "train/Mucinous")
    assert len(loaders.load("ovarian", tmp_path)) == 6
    draw(tmp_path, "test/Serous", n=1)
    with pytest.raises(InputError, match=r"such as serous/1\.jpg in test/Serous/1\.jpg, train/Serous/1\.jpg"):
        loaders.load("ovarian", tmp_path)


def test_other_images_are_left_out_and_listed(tmp_path):
    draw(tmp_path, *PUBLISHED, "HGSC", n=1)
    (tmp_path / "Serous/notes.txt").touch()
    table = loaders.load("ovarian", tmp_path)
    assert len(table) == 5
    assert table.skipped == (("HGSC/1.jpg", f"not in a class folder {', '.join(PUBLISHED)}"),)


def test_a_folder_without_classes_says_where_to_download_by_hand(tmp_path):
    with pytest.raises(MissingDataset) as caught:
        loaders.load("ovarian", draw(tmp_path, "HGSC", n=2))
    facts, message = DATASETS["ovarian"], str(caught.value)
    for part in ("holds no images in class folders (2 other images)", "498 images", facts.doi, facts.licence):
        assert part in message
    assert f"Download it by hand: {facts.page}\n  Use your copy: put it into data/ovarian " in message
    assert "make data" not in message


def test_make_data_says_where_to_download_by_hand_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    assert "ovarian" not in fetch.names()
    with pytest.raises(MissingDataset, match=r"by hand: https://data\.mendeley\.com/datasets/kztymsrjx9/1"):
        fetch.fetch("ovarian")
    assert list(tmp_path.iterdir()) == []


def test_it_is_found_by_all_five_published_folders_and_not_by_some(tmp_path):
    assert set(ovarian.FOLDERS) == set(PUBLISHED)
    home = draw(tmp_path / "x/OvarianCancer", *PUBLISHED, n=1)
    assert finding.find(tmp_path) == {"ovarian": home}
    yours = draw(tmp_path / "yours", "Serous", "Mucinous", "Clear_Cell", n=1)
    assert finding.find(yours) == {"yours": yours}


def test_folds_by_group_are_folds_by_image(tmp_path):
    table = loaders.load("ovarian", draw(tmp_path, *PUBLISHED))
    fold_of = folds.assign(table.labels, table.groups, 3, "group", seed=0)
    for label in LABELS:
        assert sorted(fold_of[table.labels == label]) == [0, 1, 2]


def test_the_private_set_is_named_as_such(tmp_path):
    with pytest.raises(MissingDataset, match=r"glomerulus is a private collection .* only the paper's own numbers"):
        loaders.load("glomerulus", tmp_path)
