import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets import loaders, radin_ct
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

LINES = {
    "train": [
        ("radiology_ai/CT/abd/normal/abd-normal041004.png", "abd-normal", "normal abdomen"),
        ("radiology_ai/CT/lung/normal/lung-normal000032.png", "lung-normal", "normal lung"),
        ("radiology_ai/CT/lung/Airspace_opacity/foldernumber0001.png", "Airspace_opacity", "airspace opacity"),
        ("radiology_ai/CT/abd/liver_lesion/liver0001.png", "liver_lesion_ct", "liver lesions"),
        ("radiology_ai/CT/abd/gallbladder_pathology/gall0001.png", "gallbladder_pathology_ct", None),
        ("radiology_ai/MR/abd/liver_lesion/liver0001mr.png", "liver_lesion", None),
    ],
    "val": [("radiology_ai/CT/lung/Nodule/nodule0007.png", "Nodule", "nodule")],
    "test": [
        ("radiology_ai/CT/abd/splenic_lesion/spleen0003.png", "splenic_lesion_ct", "splenic lesion"),
        ("radiology_ai/US/ovary/o1.png", "ovary", None),
    ],
}
WANTED = [(path, label) for lines in LINES.values() for path, _, label in lines if label]


def draw(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)).save(path)


def write(folder, lines=None):
    folder.mkdir(parents=True, exist_ok=True)
    for part, some in (lines or LINES).items():
        rows = pd.DataFrame([line[:2] for line in some], columns=["filename", "label"])
        rows.to_csv(folder / f"RadiologyAI_{part}.csv", index=False)


@pytest.fixture
def root(tmp_path):
    """As published: three lists, and radiology_ai beside them."""
    write(tmp_path)
    for lines in LINES.values():
        for path, *_ in lines:
            draw(tmp_path / path)
    return tmp_path


def test_the_lists_give_classes_and_parts(root):
    table = loaders.load("radin_ct", root)
    assert list(zip(table.rows["path"], table.labels.tolist(), strict=True)) == WANTED
    assert table.rows["part"].tolist() == ["train"] * 4 + ["validation", "test"]
    assert table.rows["image_id"][0] == "abd-normal041004" == table.groups[0] and table.group_kind == "image"
    assert table.skipped == (("1 CT images", "of classes that the paper does not take"),)
    assert read_image(table.path(0)).mode == "RGB"


def test_the_lists_may_lie_in_radiology_ai_or_in_a_folder_of_their_own(root, tmp_path_factory):
    inside, apart = root / "radiology_ai", tmp_path_factory.mktemp("apart")
    for file in root.glob("*.csv"):
        file.rename(inside / file.name)
    found = loaders.load("radin_ct", inside)
    assert found.rows["path"].tolist() == [path.removeprefix("radiology_ai/") for path, _ in WANTED]
    write(apart / "RadImageNet_split")
    (apart / "RadImageNet_data").symlink_to(root, target_is_directory=True)
    split = loaders.load("radin_ct", apart)
    assert split.rows["path"].tolist() == [f"RadImageNet_data/{path}" for path, _ in WANTED]
    assert split.labels.tolist() == found.labels.tolist()


def test_a_class_is_told_by_its_folder_where_the_label_is_another_word(root):
    write(root, LINES | {"val": [("radiology_ai/CT/lung/Nodule/nodule0007.png", "12", "nodule")]})
    assert loaders.load("radin_ct", root).rows.set_index("part").loc["validation", "label"] == "nodule"


def test_class_folders_of_the_papers_code_will_do(tmp_path):
    for folder in radin_ct.FOLDERS:
        draw(tmp_path / folder / "1.png")
    draw(tmp_path / "gallbladder_ct" / "1.png")
    table = loaders.load("radin_ct", tmp_path)
    assert table.classes == sorted(radin_ct.SIZES) and len(table) == 16
    assert table.skipped == (("gallbladder_ct/1.png", "not in a class folder such as abd_normal_ct"),)


def test_no_more_of_a_class_than_the_paper_has_and_always_the_same(root, monkeypatch):
    monkeypatch.setitem(radin_ct.SIZES, "normal lung", 3)
    names = [f"radiology_ai/CT/lung/normal/lung-normal{i:06d}.png" for i in range(9)]
    for name in names:
        draw(root / name)
    write(root, {"train": [(name, "lung-normal") for name in names], "val": LINES["val"], "test": LINES["test"]})
    first, all_of_them = loaders.load("radin_ct", root), loaders.load("radin_ct", root, everything=True)
    assert (first.labels == "normal lung").sum() == 3 and (all_of_them.labels == "normal lung").sum() == 9
    write(root, {"train": [(name, "lung-normal") for name in names[::-1]], "val": LINES["val"], "test": []})
    again = loaders.load("radin_ct", root)
    taken = [set(table.rows.query("label == 'normal lung'")["path"]) for table in (first, again)]
    assert taken[0] == taken[1]
    assert ("6 images of normal lung", "the paper has 3 and does not say which") in first.skipped


def test_a_listed_image_without_a_file_is_left_out_or_an_error(root):
    (root / WANTED[1][0]).unlink()
    assert ("lung-normal000032", "no image file") in loaders.load("radin_ct", root).skipped
    with pytest.raises(InputError, match=r"1 of 6 listed images have no file .*lung-normal000032\.png"):
        loaders.load("radin_ct", root, on_missing="error")


def test_other_lists_are_refused(root):
    write(root, {"train": [("ultrasound/1.png", "ovary")], "val": [], "test": []})
    with pytest.raises(InputError, match=r"no line has a path with a folder CT; the first is 'ultrasound/1\.png'"):
        loaders.load("radin_ct", root)
    (root / "RadiologyAI_train.csv").write_text("file,class\na.png,b\n")
    with pytest.raises(InputError, match=r"RadiologyAI_train\.csv: no column filename, label"):
        loaders.load("radin_ct", root)
    with pytest.raises(InputError, match="everything"):
        loaders.load("radin_ct", root, everything=1)


def test_nothing_there_is_a_missing_dataset(tmp_path):
    with pytest.raises(MissingDataset, match=r"has neither RadiologyAI_train\.csv .* nor class folders"):
        loaders.load("radin_ct", tmp_path)
    write(tmp_path)
    with pytest.raises(MissingDataset, match=r"holds none of the 6 CT images .*(?s:.)*radimagenet\.com"):
        loaders.load("radin_ct", tmp_path)


def test_class_sizes_are_those_of_the_paper_and_do_not_add_up_to_its_text():
    assert len(radin_ct.SIZES) == 16 and sum(radin_ct.SIZES.values()) == 29_833
    assert 20_932 + 5_980 + 2_991 == 29_903
    assert set(radin_ct.SIZES) == set(radin_ct.FOLDERS.values())
