import numpy as np
import pytest
from PIL import Image

from lib.datasets import sop
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

TRAIN = """image_id class_id super_class_id path
1 1 1 bicycle_final/111085122871_0.JPG
2 1 1 bicycle_final/111085122871_1.JPG
3 2 12 coffee_maker_final/111265328556_0.JPG
"""
TEST = """image_id class_id super_class_id path
59552 11319 12 toaster_final/251952414262_2.JPG
59553 11319 12 toaster_final/251952414262_4.JPG
"""


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path, "JPEG")


@pytest.fixture
def root(tmp_path):
    """As Stanford_Online_Products.zip unpacks."""
    home = tmp_path / "Stanford_Online_Products"
    for text in (TRAIN, TEST):
        for line in text.splitlines()[1:]:
            draw(home / line.split()[-1])
    (home / "Ebay_train.txt").write_text(TRAIN)
    (home / "Ebay_test.txt").write_text(TEST)
    (home / "Ebay_info.txt").write_text(TRAIN + TEST)
    return tmp_path


def test_products_and_the_published_split(root):
    table = sop.load(root)
    assert table.labels.tolist() == ["1", "1", "2", "11319", "11319"]
    assert table.rows["split"].tolist() == ["train"] * 3 + ["test"] * 2
    assert table.rows["category"].tolist() == ["bicycle", "bicycle", "coffee_maker", "toaster", "toaster"]
    assert table.rows["image_id"][0] == "bicycle_final/111085122871_0" == table.groups[0]
    assert table.group_kind == "image" and table.skipped == ()
    assert read_image(table.path(4)).size == (12, 9)


def test_rows_without_a_photo_are_listed_or_an_error(root):
    (root / "Stanford_Online_Products/bicycle_final/111085122871_1.JPG").unlink()
    table = sop.load(root)
    assert len(table) == 4 and table.skipped == (("bicycle_final/111085122871_1", "no image file"),)
    with pytest.raises(InputError, match="1 of 5 listed images have no file"):
        sop.load(root, on_missing="error")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"Ebay_train.txt: cannot be read as a list"),
        ("image_id path\n1 bicycle_final/111085122871_0.JPG\n", r"Ebay_train.txt: has no column class_id"),
        (TRAIN[:-40], r"Ebay_train.txt: has a line that breaks off"),
    ],
)
def test_a_list_of_another_kind_is_named(root, text, message):
    (root / "Stanford_Online_Products/Ebay_train.txt").write_text(text)
    with pytest.raises(InputError, match=message):
        sop.load(root)


def test_no_list_or_no_photos_is_a_missing_dataset(root):
    for photo in root.rglob("*.JPG"):
        photo.unlink()
    with pytest.raises(MissingDataset, match=r"needs sop: .* holds none of the 5 images that are listed"):
        sop.load(root)
    (root / "Stanford_Online_Products/Ebay_test.txt").unlink()
    with pytest.raises(MissingDataset, match=r"has no Ebay_test.txt"):
        sop.load(root)
