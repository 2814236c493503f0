import numpy as np
import pytest
from PIL import Image

from lib.datasets import cub, finding, loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)


ORIGINAL = {
    "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.jpg": ("Black_footed_Albatross", "Diomedeidae", "train"),
    "019.Gray_Catbird/Gray_Catbird_0031_20968.jpg": ("Gray_Catbird", "Mimidae", "train"),
    "022.Chuck_will_Widow/Chuck_Will_Widow_0005_796982.jpg": ("Chuck_will_Widow", "Caprimulgidae", "train"),
    "055.Evening_Grosbeak/Evening_Grosbeak_0018_37959.jpg": ("Evening_Grosbeak", "Fringillidae", "train"),
    "100.Brown_Pelican/Brown_Pelican_0001_94022.jpg": ("Brown_Pelican", "Pelecanidae", "train"),
    "101.White_Pelican/White_Pelican_0022_96284.jpg": ("White_Pelican", "Pelecanidae", "test"),
    "118.House_Sparrow/House_Sparrow_0006_111034.jpg": ("House_Sparrow", "Passeridae", "test"),
    "200.Common_Yellowthroat/Common_Yellowthroat_0003_190521.jpg": ("Common_Yellowthroat", "Parulidae", "test"),
}
"""Photo → species, family, and its side of the split, which goes by the number of the species."""


@pytest.fixture
def root(tmp_path):
    """As CUB_200_2011.tgz unpacks."""
    home = tmp_path / "CUB_200_2011"
    for name in ORIGINAL:
        draw(home / "images" / name)
    (home / "images.txt").write_text("".join(f"{i} {name}\n" for i, name in enumerate(ORIGINAL, start=1)))
    (home / "train_test_split.txt").write_text("".join(f"{i} {i % 2}\n" for i in range(1, len(ORIGINAL) + 1)))
    return tmp_path


def test_species_families_and_the_split_are_read_from_the_folders(root):
    """The split of metric learning, by species, and not that of train_test_split.txt."""
    table = loaders.load("cub", root)
    assert list(table.rows[["label", "family", "split"]].itertuples(index=False, name=None)) == list(ORIGINAL.values())
    assert table.rows["image_id"][0] == "001.Black_footed_Albatross/Black_Footed_Albatross_0046_18"
    assert len(set(table.groups)) == len(ORIGINAL) and table.group_kind == "image" and table.skipped == ()
    assert read_image(table.path(0)).size == (12, 9)


def test_a_part_of_the_species_keeps_the_standard_split(root):
    """Test species alone make no training species, though half of what is there would be one."""
    for name, (_, _, split) in ORIGINAL.items():
        if split == "train":
            (root / "CUB_200_2011/images" / name).unlink()
    assert loaders.load("cub", root).rows["split"].tolist() == ["test"] * 3


def test_folders_that_lost_their_numbers_have_families_and_are_halved_in_alphabetical_order(tmp_path):
    for species in ("Gadwall", "Bobolink", "Blue_Jay", "Mallard", "Ovenbird"):
        draw(tmp_path / "images" / species / "0000.jpg")
    rows = loaders.load("cub", tmp_path).rows
    assert rows[["label", "family", "split"]].to_numpy().tolist() == [
        ["Blue_Jay", "Corvidae", "train"],
        ["Bobolink", "Icteridae", "train"],
        ["Gadwall", "Anatidae", "train"],
        ["Mallard", "Anatidae", "test"],
        ["Ovenbird", "Parulidae", "test"],
    ]


def test_what_is_no_photo_of_a_species_is_left_out_and_listed(root):
    others = [
        "CUB_200_2011/images/Tyrannosaurus/1.jpg",
        "CUB_200_2011/segmentations/001.Black_footed_Albatross/Black_Footed_Albatross_0046_18.png",
    ]
    for other in others:
        draw(root / other)
    table = loaders.load("cub", root)
    assert len(table) == len(ORIGINAL)
    assert sorted(table.skipped) == [(other, "not in images/<species>/") for other in others]


def test_no_photos_is_a_missing_dataset(tmp_path):
    draw(tmp_path / "photo.jpg")
    with pytest.raises(MissingDataset, match=r"needs cub: .* holds no photos in images/<species>/ \(1 other images\)"):
        loaders.load("cub", tmp_path)


def test_it_is_found_by_the_names_of_its_folders(root, tmp_path):
    assert finding.find(tmp_path) == {"cub": root / "CUB_200_2011"}


def test_class_folders_of_something_else_are_no_birds(tmp_path):
    for name in ("melanoma", "naevus", "Blue_Jay"):
        draw(tmp_path / "mine/images" / name / "1.jpg")
    with pytest.raises(InputError):  # class folders of one class, images
        finding.find(tmp_path / "mine")
    assert finding.find(tmp_path / "mine/images") == {"images": tmp_path / "mine/images"}


def test_a_name_belongs_to_one_family():
    names = [name for several in cub.FAMILIES.values() for name in several.split()]
    assert len(names) == len(set(names)) == len(cub.FAMILY)


def test_real_photos(real):
    table = loaders.load("cub", real("cub_sample"))
    assert len(table) == 4550 and len(table.classes) == 77 and table.skipped == ()
    families = table.rows.groupby("family")["label"].nunique()
    assert families.sum() == 77 and len(families) == 26 and families.max() == families["Parulidae"]
    parts = {split: set(rows["label"]) for split, rows in table.rows.groupby("split")}
    assert {split: len(labels) for split, labels in parts.items()} == {"train": 39, "test": 38}
    assert max(parts["train"]) < min(parts["test"])
    assert max(read_image(table.path(0)).size) == 160
