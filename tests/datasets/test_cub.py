import numpy as np
import pytest
from PIL import Image

from lib import datasets
from lib.datasets import cub
from lib.errors import MissingDataset


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)


ORIGINAL = {
    "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg": ("Black_footed_Albatross", "train"),
    "100.Brown_Pelican/Brown_Pelican_0001_94022.jpg": ("Brown_Pelican", "train"),
    "101.White_Pelican/White_Pelican_0022_96284.jpg": ("White_Pelican", "test"),
    "200.Common_Yellowthroat/Common_Yellowthroat_0003_190521.jpg": ("Common_Yellowthroat", "test"),
}


@pytest.fixture
def root(tmp_path):
    """As CUB_200_2011.tgz unpacks."""
    home = tmp_path / "CUB_200_2011"
    for name in ORIGINAL:
        draw(home / "images" / name)
    (home / "images.txt").write_text("".join(f"{i} {name}\n" for i, name in enumerate(ORIGINAL, start=1)))
    (home / "train_test_split.txt").write_text("1 0\n2 1\n3 0\n4 1\n")
    return tmp_path


def test_species_and_the_split_between_them(root):
    table = cub.load(root)
    assert list(table.rows[["label", "split"]].itertuples(index=False, name=None)) == list(ORIGINAL.values())
    assert table.rows["image_id"][0] == "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18"
    assert len(set(table.groups)) == 4 and table.group_kind == "image" and table.skipped == ()
    assert datasets.read_image(table.path(0)).size == (12, 9)


def test_a_part_of_the_species_keeps_the_standard_split(root):
    """Two test species alone are no training species, though they are half of what is there."""
    for name in list(ORIGINAL)[:2]:
        (root / "CUB_200_2011/images" / name).unlink()
    assert cub.load(root).rows["split"].tolist() == ["test", "test"]


def test_folders_without_numbers_are_halved_in_alphabetical_order(tmp_path):
    for species in ("Gadwall", "Bobolink", "Blue_Jay", "Mallard", "Ovenbird"):
        draw(tmp_path / "images" / species / "0000.jpg")
    table = cub.load(tmp_path)
    assert table.rows.set_index("label")["split"].to_dict() == {
        "Blue_Jay": "train",
        "Bobolink": "train",
        "Gadwall": "train",
        "Mallard": "test",
        "Ovenbird": "test",
    }


def test_segmentations_are_left_out_and_listed(root):
    mask = "CUB_200_2011/segmentations/001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.png"
    draw(root / mask)
    table = cub.load(root)
    assert len(table) == 4 and table.skipped == ((mask, "not in images/<species>/"),)


def test_no_photos_is_a_missing_dataset(tmp_path):
    draw(tmp_path / "photo.jpg")
    with pytest.raises(MissingDataset, match=r"needs cub: .* holds no photos in images/<species>/ \(1 other images\)"):
        cub.load(tmp_path)


def test_real_photos(real):
    table = cub.load(real("cub_sample"))
    assert len(table) == 4550 and len(table.classes) == 77 and table.skipped == ()
    parts = {split: set(rows["label"]) for split, rows in table.rows.groupby("split")}
    assert {split: len(labels) for split, labels in parts.items()} == {"train": 39, "test": 38}
    assert max(parts["train"]) < min(parts["test"])
    assert max(datasets.read_image(table.path(0)).size) == 160
