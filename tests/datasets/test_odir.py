import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets import odir
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

HEAD = (
    "ID,Patient Age,Patient Sex,Left-Fundus,Right-Fundus,Left-Diagnostic Keywords,Right-Diagnostic Keywords,"
    "N,D,G,C,A,H,M,O,labels,target,filename"
)
ROWS = [
    "0,69,Female,0_left.jpg,0_right.jpg,cataract,normal fundus,0,0,0,1,0,0,0,0,['N'],"
    '"[1, 0, 0, 0, 0, 0, 0, 0]",0_right.jpg',
    "0,69,Female,0_left.jpg,0_right.jpg,cataract,normal fundus,0,0,0,1,0,0,0,0,['C'],"
    '"[0, 0, 0, 1, 0, 0, 0, 0]",0_left.jpg',
    "2,42,Male,2_left.jpg,2_right.jpg,laser spot，moderate non proliferative retinopathy,"
    "moderate non proliferative retinopathy,0,1,0,0,0,0,0,1,['D'],"
    '"[0, 1, 0, 0, 0, 0, 0, 0]",2_left.jpg',
    "7,50,Male,7_left.jpg,7_right.jpg,glaucoma,wet age-related macular degeneration，glaucoma,0,0,1,0,1,0,0,0,"
    "\"['G', 'A']\",\"[0, 0, 1, 0, 1, 0, 0, 0]\",7_right.jpg",
    "9,?,Male,9_left.jpg,9_right.jpg,pathological myopia,normal fundus,0,0,0,0,0,0,1,0,['M'],"
    '"[0, 0, 0, 0, 0, 0, 1, 0]",9_left.jpg',
]


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)


@pytest.fixture
def root(tmp_path):
    """As published: the challenge's images as they were taken, and the same ones cropped."""
    (tmp_path / "full_df.csv").write_text("\n".join([HEAD, *ROWS]) + "\n", encoding="utf-8")
    for name in ("0_left", "0_right", "2_left", "2_right", "7_right"):
        draw(tmp_path / f"ODIR-5K/ODIR-5K/Training Images/{name}.jpg")
    draw(tmp_path / "preprocessed_images/0_right.jpg")
    draw(tmp_path / "ODIR-5K/ODIR-5K/Testing Images/937_left.jpg")
    return tmp_path


def test_an_eye_has_the_label_of_the_eye_and_the_group_of_its_patient(root):
    table = odir.load(root)
    assert table.group_kind == "patient" and table.groups.tolist() == ["0", "0", "2"]
    assert table.rows["image_id"].tolist() == ["0_right", "0_left", "2_left"]
    assert table.labels.tolist() == ["normal", "cataract", "diabetes"]
    assert table.rows["eye"].tolist() == ["right", "left", "left"]
    assert table.rows["patient"].tolist() == ["C", "C", "DO"]
    assert table.rows["keywords"].tolist()[:2] == ["normal fundus", "cataract"]
    assert table.rows["age"].tolist() == [69, 69, 42] and table.rows["sex"].tolist() == ["Female", "Female", "Male"]
    assert read_image(table.path(0)).size == (12, 9)


def test_what_is_left_out_is_listed_with_the_reason(root):
    skipped = dict(odir.load(root).skipped)
    first = "ODIR-5K/ODIR-5K/Training Images/0_right.jpg"
    assert skipped["7_right.jpg"] == "several labels for one eye"
    assert skipped["9_left.jpg"] == "no image file"
    assert skipped["preprocessed_images/0_right.jpg"] == f"a second file of this image, {first} is used"
    unlisted = [what for what, why in skipped.items() if why == "no row in full_df.csv"]
    assert sorted(name.rsplit("/", 1)[1] for name in unlisted) == ["2_right.jpg", "937_left.jpg"]
    assert len(skipped) == 5


def test_an_age_that_is_no_number_is_missing(root):
    draw(root / "9_left.jpg")
    rows = odir.load(root).rows.set_index("image_id")
    assert pd.isna(rows.loc["9_left", "age"]) and rows.loc["9_left", "label"] == "myopia"


def test_a_row_without_its_file_may_be_an_error(root):
    with pytest.raises(InputError, match=r"1 of 5 rows have no image file .* such as 9_left\.jpg"):
        odir.load(root, on_missing="error")
    with pytest.raises(InputError, match="on_missing='ask'"):
        odir.load(root, on_missing="ask")


@pytest.mark.parametrize(("old", "new"), [("['C']", "['X']"), ("['C']", "[]"), ("0_left.jpg\n", "left.jpg\n")])
def test_a_table_of_another_kind_is_refused(root, old, new):
    file = root / "full_df.csv"
    file.write_text(file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(InputError, match="1 rows are not as published"):
        odir.load(root)


def test_no_table_and_no_images_are_a_missing_dataset(tmp_path):
    with pytest.raises(MissingDataset, match=r"has no full_df\.csv"):
        odir.load(tmp_path)
    (tmp_path / "full_df.csv").write_text("\n".join([HEAD, *ROWS]) + "\n", encoding="utf-8")
    with pytest.raises(MissingDataset, match=r"holds none of the 5 images in full_df\.csv"):
        odir.load(tmp_path)


def test_real_photographs(real):
    table = odir.load(real("odir_sample"))
    assert len(table) == 5509 and len(set(table.groups)) == 2891 and table.skipped == ()
    counts = table.rows["label"].value_counts().to_dict()
    assert counts["normal"] == 2458 and counts["hypertension"] == 116 and len(counts) == 8
    own = {letter: name for letter, name in odir.DIAGNOSES.items() if name not in ("normal", "other")}
    agree = [any(own.get(letter) == row.label for letter in row.patient) for row in table.rows.itertuples()]
    diseased = ~table.rows["label"].isin(["normal", "other"])
    assert np.mean(np.array(agree)[diseased]) > 0.99
