import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from lib.datasets import cars
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

NAMES = np.array([f"Maker Model {number} 2012" for number in range(1, 197)], dtype=object)
BOX = ("bbox_x1", "bbox_y1", "bbox_x2", "bbox_y2")


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)


def annotations(field, photos, **more):
    """A struct array as MATLAB writes it, classes as uint8."""
    kinds = [*((name, object) for name in BOX), ("class", object), (field, object), *((name, object) for name in more)]
    rows = np.empty((1, len(photos)), dtype=kinds)
    for i, (path, number) in enumerate(photos.items()):
        rows[0, i] = (1, 2, 3, 4, np.uint8(number), path, *more.values())
    return rows


def save(file, photos, field="relative_im_path", **more):
    file.parent.mkdir(parents=True, exist_ok=True)
    savemat(file, {"annotations": annotations(field, photos, **more), "class_names": NAMES.reshape(1, -1)})


@pytest.fixture
def root(tmp_path):
    """As cars_annos.mat and car_ims.tgz come."""
    photos = {"car_ims/000001.jpg": 1, "car_ims/000002.jpg": 98, "car_ims/000003.jpg": 99, "car_ims/000004.jpg": 196}
    save(tmp_path / "cars_annos.mat", photos, test=np.uint8(1))
    for name in photos:
        draw(tmp_path / name)
    return tmp_path


def test_models_and_the_split_between_them(root):
    table = cars.load(root)
    assert table.labels.tolist() == [f"Maker Model {number} 2012" for number in (1, 98, 99, 196)]
    assert table.rows["split"].tolist() == ["train", "train", "test", "test"]
    assert table.rows["image_id"].tolist()[0] == "car_ims/000001" == table.groups[0]
    assert table.group_kind == "image" and table.skipped == ()
    assert read_image(table.path(3)).size == (12, 9)


def test_the_parts_that_were_published_later(tmp_path):
    """Both have a photo 00001.jpg, and every model is in both, but the split goes by model."""
    save(tmp_path / "devkit/cars_train_annos.mat", {"00001.jpg": 7, "00002.jpg": 150}, "fname")
    save(tmp_path / "cars_test_annos_withlabels.mat", {"00001.jpg": 150}, "fname")  # one record alone, too
    save(tmp_path / "devkit/cars_meta.mat", {"none.jpg": 1}, "fname")
    for name in ("cars_train/00001.jpg", "cars_train/00002.jpg", "cars_test/00001.jpg"):
        draw(tmp_path / name)
    table = cars.load(tmp_path)
    assert table.rows[["image_id", "split"]].to_numpy().tolist() == [
        ["cars_train/00001", "train"],
        ["cars_train/00002", "test"],
        ["cars_test/00001", "test"],
    ]
    save(tmp_path / "cars_annos.mat", {"car_ims/000001.jpg": 7})  # copies of the parts have it as well
    assert len(cars.load(tmp_path)) == 3
    draw(tmp_path / "car_ims/000001.jpg")
    assert cars.load(tmp_path).rows["image_id"].tolist() == ["car_ims/000001"]
    (tmp_path / "cars_annos.mat").unlink()
    (tmp_path / "cars_test_annos_withlabels.mat").rename(tmp_path / "cars_test_annos.mat")
    with pytest.raises(MissingDataset, match=r"has neither cars_annos.mat nor cars_test_annos_withlabels.mat"):
        cars.load(tmp_path)


def test_rows_and_photos_without_a_partner_are_listed(root):
    (root / "car_ims/000002.jpg").unlink()
    draw(root / "car_ims/000009.jpg")
    draw(root / "copy/car_ims/000004.jpg")
    table = cars.load(root)
    assert len(table) == 3
    assert table.skipped == (
        ("car_ims/000009.jpg", "not in the list of images"),
        ("copy/car_ims/000004.jpg", "a second file of this image, car_ims/000004.jpg is used"),
        ("car_ims/000002", "no image file"),
    )
    with pytest.raises(InputError, match=r"1 of 4 listed images have no file below .*, such as car_ims/000002.jpg"):
        cars.load(root, on_missing="error")
    with pytest.raises(InputError, match="on_missing='ignore' is unknown"):
        cars.load(root, on_missing="ignore")


def test_files_of_another_kind_are_named(root):
    save(root / "cars_annos.mat", {"car_ims/000001.jpg": 197})
    with pytest.raises(InputError, match="a model that is not one of the 196 names"):
        cars.load(root)
    save(root / "cars_annos.mat", {"000001.jpg": 1}, "fname")
    with pytest.raises(InputError, match=r"cars_annos.mat: its annotations have no relative_im_path and class"):
        cars.load(root)
    (root / "cars_annos.mat").write_text("<html>not found</html>")
    with pytest.raises(InputError, match=r"cars_annos.mat: cannot read its annotations .* Take the original file"):
        cars.load(root)


def test_no_files_or_no_photos_is_a_missing_dataset(root, tmp_path):
    for photo in root.rglob("*.jpg"):
        photo.unlink()
    with pytest.raises(MissingDataset, match=r"needs cars: .* holds none of the 4 images that are listed"):
        cars.load(root)
    (root / "cars_annos.mat").unlink()
    with pytest.raises(MissingDataset, match=r"has neither cars_annos.mat nor cars_train_annos.mat"):
        cars.load(root)
