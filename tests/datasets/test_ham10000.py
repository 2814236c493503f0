import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

METADATA = """lesion_id,image_id,dx,dx_type,age,sex,localization
HAM_1,ISIC_0000001,bkl,histo,80.0,male,scalp
HAM_1,ISIC_0000002,bkl,histo,80.0,male,scalp
HAM_2,ISIC_0000003,nv,follow_up,,female,back
HAM_3,ISIC_0000004,df,histo,unknown,unknown,unknown
"""


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)).save(path)


@pytest.fixture
def root(tmp_path):
    (tmp_path / "HAM10000_metadata.csv").write_text(METADATA)
    draw(tmp_path / "HAM10000_images_part_1/ISIC_0000001.jpg")
    draw(tmp_path / "HAM10000_images_part_2/ISIC_0000002.jpg")
    draw(tmp_path / "HAM10000_images_part_2/ISIC_0000003.jpg")
    draw(tmp_path / "HAM10000_images_part_2/ISIC_0000004.jpg")
    return tmp_path


def test_metadata_and_images_meet(root):
    table = loaders.load("ham10000", root)
    assert table.labels.tolist() == ["bkl", "bkl", "nv", "df"]
    assert table.groups.tolist() == ["HAM_1", "HAM_1", "HAM_2", "HAM_3"]
    assert table.group_kind == "lesion"
    assert table.path(1) == root / "HAM10000_images_part_2/ISIC_0000002.jpg"
    np.testing.assert_array_equal(table.rows["age"], [80.0, 80.0, np.nan, np.nan])
    assert table.rows.loc[2, ["dx_type", "sex", "localization"]].tolist() == ["follow_up", "female", "back"]
    assert table.skipped == ()
    assert read_image(table.path(0)).size == (40, 30)


def test_rows_without_an_image_are_counted_and_a_label_that_vanishes_is_named(root):
    (root / "HAM10000_images_part_1/ISIC_0000001.jpg").unlink()
    (root / "HAM10000_images_part_2/ISIC_0000004.jpg").unlink()
    table = loaders.load("ham10000", root)
    assert table.rows["image_id"].tolist() == ["ISIC_0000002", "ISIC_0000003"]
    assert table.classes == ["bkl", "nv"]
    assert table.skipped == (
        ("ISIC_0000001", "no image file"),
        ("ISIC_0000004", "no image file, as for all of label df"),
    )


def test_rows_without_an_image_can_be_an_error(root):
    assert len(loaders.load("ham10000", root, on_missing="error")) == 4
    (root / "HAM10000_images_part_2/ISIC_0000003.jpg").unlink()
    with pytest.raises(InputError, match=r"1 of 4 rows have no image file below .*, such as ISIC_0000003"):
        loaders.load("ham10000", root, on_missing="error")


def test_an_unknown_choice_is_an_error(root):
    with pytest.raises(InputError, match="on_missing='ignore' is unknown"):
        loaders.load("ham10000", root, on_missing="ignore")


def test_masks_and_second_copies_are_left_out_and_listed(root):
    draw(root / "masks/ISIC_0000001_segmentation.png")
    draw(root / "ham10000_images_part_1/ISIC_0000001.jpg")
    table = loaders.load("ham10000", root)
    assert len(table) == 4 and table.path(0) == root / "HAM10000_images_part_1/ISIC_0000001.jpg"
    assert table.skipped == (
        (
            "ham10000_images_part_1/ISIC_0000001.jpg",
            "a second file of this image, HAM10000_images_part_1/ISIC_0000001.jpg is used",
        ),
        ("masks/ISIC_0000001_segmentation.png", "no row in HAM10000_metadata.csv"),
    )


def test_a_missing_column_names_file_and_column(root):
    pd.read_csv(root / "HAM10000_metadata.csv").drop(columns="lesion_id").to_csv(root / "HAM10000_metadata.csv")
    with pytest.raises(InputError, match=r"HAM10000_metadata.csv: no column lesion_id; it has"):
        loaders.load("ham10000", root)


def test_a_row_without_lesion_or_listed_twice_is_an_error(root):
    (root / "HAM10000_metadata.csv").write_text(METADATA.replace("HAM_2", ""))
    with pytest.raises(InputError, match="1 rows have no group, such as ISIC_0000003"):
        loaders.load("ham10000", root)
    (root / "HAM10000_metadata.csv").write_text(METADATA + "HAM_3,ISIC_0000004,nv,histo,40,male,back\n")
    with pytest.raises(InputError, match="such as ISIC_0000004"):
        loaders.load("ham10000", root)


def test_no_metadata_or_no_images_is_a_missing_dataset(root, tmp_path):
    for image in root.rglob("*.jpg"):
        image.unlink()
    with pytest.raises(MissingDataset, match=r"holds none of the 4 images in HAM10000_metadata.csv"):
        loaders.load("ham10000", root)
    (root / "HAM10000_metadata.csv").unlink()
    with pytest.raises(MissingDataset, match=r"has no HAM10000_metadata.csv"):
        loaders.load("ham10000", root)


def test_real_images(real):
    table = loaders.load("ham10000", real("ham10000"))
    assert len(table) == 8587 and len(set(table.groups)) == 6378 and len(table.classes) == 7
    assert table.skipped == ()
    assert read_image(table.path(0)).size == (224, 224)


def test_a_row_that_stands_twice_is_called_one(root):
    (root / "HAM10000_metadata.csv").write_text(METADATA + METADATA.splitlines()[2] + "\n")
    with pytest.raises(InputError, match=r"ISIC_0000002 in two rows of the list of images.* Keep one row of each"):
        loaders.load("ham10000", root)
