"""Datasets that come with a list of their images: found beside the list and read; a wrong list or image is named."""

import json
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from lib.datasets import loaders, radin_ct
from lib.errors import InputError, MissingDataset
from tests.datasets.conftest import Case, columns

LISTED = ("ham10000", "odir", "cars", "sop", "in_shop", "inaturalist", "radin_ct")

HAM10000 = """lesion_id,image_id,dx,dx_type,age,sex,localization
HAM_1,ISIC_0000001,bkl,histo,80.0,male,scalp
HAM_1,ISIC_0000002,bkl,histo,80.0,male,scalp
HAM_2,ISIC_0000003,nv,follow_up,,female,back
HAM_3,ISIC_0000004,df,histo,unknown,unknown,unknown
"""
ODIR = """ID,Patient Age,Patient Sex,Left-Diagnostic Keywords,Right-Diagnostic Keywords,N,D,G,C,A,H,M,O,labels,filename
0,69,Female,cataract,normal fundus,0,0,0,1,0,0,0,0,['N'],0_right.jpg
0,69,Female,cataract,normal fundus,0,0,0,1,0,0,0,0,['C'],0_left.jpg
2,?,Male,laser spot，moderate retinopathy,moderate retinopathy,0,1,0,0,0,0,0,1,['D'],2_left.jpg
7,50,Male,glaucoma,wet macular degeneration，glaucoma,0,0,1,0,1,0,0,0,"['G', 'A']",7_right.jpg
"""
CARS = {"000001": 1, "000002": 98, "000003": 99, "000004": 196}

SOP = {
    "Ebay_train.txt": """image_id class_id super_class_id path
1 1 1 bicycle_final/111085122871_0.JPG
2 1 1 bicycle_final/111085122871_1.JPG
3 2 12 coffee_maker_final/111265328556_0.JPG
""",
    "Ebay_test.txt": """image_id class_id super_class_id path
59552 11319 12 toaster_final/251952414262_2.JPG
""",
}

GARMENTS = {
    "WOMEN/Dresses/id_00000002/02_1_front": ("id_00000002", "train"),
    "WOMEN/Dresses/id_00000002/02_2_side": ("id_00000002", "train"),
    "MEN/Denim/id_00000080/01_1_front": ("id_00000080", "query"),
    "MEN/Denim/id_00000080/01_7_additional": ("id_00000080", "gallery"),
}


def in_shop(rows: dict[str, tuple[str, str]]) -> str:
    """The list of In-Shop, in columns of fixed width below the number of its rows."""
    lines = [f"{f'img/{image}.jpg':<70} {item} {status:<8}" for image, (item, status) in rows.items()]
    return "\n".join([str(len(rows)), "image_name item_id evaluation_status", *lines]) + "\n"


RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
SPECIES = [
    ("Turdus merula", "Animalia", "Chordata", "Aves", "Passeriformes", "Turdidae", "Turdus"),
    ("Bellis perennis", "Plantae", "Tracheophyta", "Magnoliopsida", "Asterales", "Asteraceae", "Bellis"),
]
CATEGORIES = [
    {"id": i, "name": name, **dict(zip(RANKS, ranks, strict=True))} for i, (name, *ranks) in enumerate(SPECIES)
]
NATURE = {
    "train2018.json": {f"Aves/0/{'0a' * 16}": 0, f"Plantae/1/{'0b' * 16}": 1},
    "val2018.json": {f"Aves/0/{'0c' * 16}": 0},
}


def inaturalist(photos: dict[str, int], first: int) -> str:
    """A list as first released, without the names of species; annotations are in another order than images."""
    ids = dict(zip(photos, range(first, 100), strict=False))
    images = [{"id": ids[photo], "file_name": f"train_val2018/{photo}.jpg"} for photo in photos]
    labels = [{"id": 99, "image_id": ids[photo], "category_id": species} for photo, species in photos.items()]
    hidden = [{"id": i, "name": str(i), "supercategory": "Aves"} for i in range(2)]
    return json.dumps({"images": images, "annotations": labels[::-1], "categories": hidden})


CT = {
    "train": [
        ("CT/abd/normal/abd-normal041004.png", "abd-normal", "normal abdomen"),
        ("CT/lung/normal/lung-normal000032.png", "lung-normal", "normal lung"),
        ("CT/abd/liver_lesion/liver0001.png", "liver_lesion_ct", "liver lesions"),
        ("CT/abd/gallbladder_pathology/gall0001.png", "gallbladder_pathology_ct", None),
        ("MR/abd/liver_lesion/liver0001mr.png", "liver_lesion", None),
    ],
    "val": [("CT/lung/Nodule/nodule0007.png", "12", "nodule")],  # known by its folder
    "test": [("US/ovary/o1.png", "ovary", None)],
}
CT_ROWS = [(f"rin/radiology_ai/{path}", label) for lines in CT.values() for path, _, label in lines if label]


def radin_ct_lists(lines: dict[str, list[tuple[str, ...]]] = CT) -> dict[str, str]:
    """The three lists of RadImageNet."""
    return {
        f"RadiologyAI_{part}.csv": "\n".join(["filename,label", *(f"radiology_ai/{of[0]},{of[1]}" for of in some)])
        + "\n"
        for part, some in lines.items()
    }


def matlab(photos: dict[str, int], path: str) -> Callable[[Path], None]:
    """A struct array as MATLAB writes it, classes as uint8, with the names of 196 models."""
    boxes = [(f"bbox_{side}", object) for side in ("x1", "y1", "x2", "y2")]
    records = np.empty((1, len(photos)), dtype=[*boxes, ("class", object), (path, object)])
    for i, (photo, model) in enumerate(photos.items()):
        records[0, i] = (1, 2, 3, 4, np.uint8(model), photo)
    names = np.array([f"Maker Model {model} 2012" for model in range(1, 197)], dtype=object).reshape(1, -1)
    return partial(savemat, mdict={"annotations": records, "class_names": names})


CASES = {
    "ham10000": Case(
        "skin",
        {"HAM10000_metadata.csv": HAM10000} | {f"part_{i % 2}/ISIC_000000{i}.jpg": None for i in (1, 2, 3, 4)},
        {
            "label": ["bkl", "bkl", "nv", "df"],
            "group": ["HAM_1", "HAM_1", "HAM_2", "HAM_3"],
            "age": [80.0, 80.0, np.nan, np.nan],
            "localization": ["scalp", "scalp", "back", "unknown"],
        },
        "lesion",
    ),
    "odir": Case(
        "eyes",
        {"full_df.csv": ODIR, **{f"images/{name}.jpg": None for name in ("0_left", "0_right", "2_left", "7_right")}},
        {
            "image_id": ["0_right", "0_left", "2_left"],
            "label": ["normal", "cataract", "diabetes"],
            "group": ["0", "0", "2"],
            "age": [69, 69, np.nan],
            "keywords": ["normal fundus", "cataract", "laser spot，moderate retinopathy"],
            "patient": ["C", "C", "DO"],
        },
        "patient",
        (("7_right", "several labels for one eye"),),
    ),
    "cars": Case(
        "cars",
        {
            "cars_annos.mat": matlab(
                {f"car_ims/{photo}.jpg": model for photo, model in CARS.items()}, "relative_im_path"
            ),
            **{f"car_ims/{photo}.jpg": None for photo in CARS},
        },
        {
            "image_id": [f"car_ims/{photo}" for photo in CARS],
            "label": [f"Maker Model {model} 2012" for model in CARS.values()],
            "split": ["train", "train", "test", "test"],
        },
    ),
    "cars in parts": Case(
        "c",
        {
            "devkit/cars_train_annos.mat": matlab({"00001.jpg": 7, "00002.jpg": 150}, "fname"),
            "cars_test_annos_withlabels.mat": matlab({"00001.jpg": 150}, "fname"),
            "devkit/cars_meta.mat": matlab({"none.jpg": 1}, "fname"),
            **{f"{name}.jpg": None for name in ("cars_train/00001", "cars_train/00002", "cars_test/00001")},
        },
        {
            "image_id": ["cars_train/00001", "cars_train/00002", "cars_test/00001"],
            "split": ["train", "test", "test"],
        },
    ),
    "sop": Case(
        "Stanford_Online_Products",
        SOP | {line.split()[-1]: None for text in SOP.values() for line in text.splitlines()[1:]},
        {
            "label": ["1", "1", "2", "11319"],
            "split": ["train"] * 3 + ["test"],
            "category": ["bicycle", "bicycle", "coffee_maker", "toaster"],
        },
    ),
    "in_shop": Case(
        "shop",
        {"Eval/list_eval_partition.txt": in_shop(GARMENTS), **{f"Img/img/{image}.jpg": None for image in GARMENTS}},
        {
            "image_id": list(GARMENTS),
            "gender": ["WOMEN", "WOMEN", "MEN", "MEN"],
            "category": ["Dresses", "Dresses", "Denim", "Denim"],
            **columns("label split", GARMENTS.values()),
        },
    ),
    "inaturalist": Case(
        "inat",
        {
            "categories.json": json.dumps(CATEGORIES),
            **{name: inaturalist(photos, 10 * i) for i, (name, photos) in enumerate(NATURE.items())},
            **{f"train_val2018/{photo}.jpg": None for photos in NATURE.values() for photo in photos},
        },
        {
            **columns("label " + " ".join(RANKS), [SPECIES[0], SPECIES[1], SPECIES[0]]),
            "part": ["train", "train", "validation"],
        },
    ),
    "radin_ct": Case(
        "rin",
        radin_ct_lists() | {f"radiology_ai/{path}": None for lines in CT.values() for path, *_ in lines},
        columns("path label", CT_ROWS) | {"part": ["train"] * 3 + ["validation"]},
        skipped=(("1 CT images", "of classes that the paper does not take"),),
    ),
}
"""Case → what is in it; its first word is the dataset."""


@pytest.mark.parametrize("name", CASES)
def test_a_published_layout_is_recognised_and_read(check_published, name):
    check_published(name.split()[0], CASES[name])


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("ham10000", {"masks/ISIC_0000001_segmentation.png": "not in the list of images"}),
        ("ham10000", {"part_9/ISIC_0000001.jpg": "a second file of this image, part_1/ISIC_0000001.jpg is used"}),
        ("cars", {"copy/car_ims/000004.jpg": "a second file of this image, car_ims/000004.jpg is used"}),
        ("odir", {"Testing Images/937_left.jpg": "not in the list of images"}),
    ],
)
def test_other_images_are_left_out_and_listed(check_left_out, name, others):
    check_left_out(name.split()[0], CASES[name], others)


@pytest.mark.parametrize("name", LISTED)
def test_a_listed_image_without_a_file_is_left_out(place, name):
    home = place(CASES[name])
    table = loaders.load(name, home)
    table.path(0).unlink()
    fewer = loaders.load(name, home)
    image_id = table.rows["image_id"][0]
    assert fewer.rows["image_id"].tolist() == table.rows["image_id"].tolist()[1:]
    assert dict(fewer.skipped)[image_id].startswith("no image file")
    for row in range(1, len(table)):
        table.path(row).unlink()
    for eye in home.rglob("*_right.jpg"):
        eye.unlink()
    with pytest.raises(MissingDataset, match=rf"needs {name}: {home} holds none of the \d images that are listed"):
        loaders.load(name, home)


def test_a_label_that_loses_all_its_images_is_told_from_others(place):
    home = place(CASES["ham10000"])
    for number in (1, 4):
        next(home.rglob(f"ISIC_000000{number}.jpg")).unlink()
    assert loaders.load("ham10000", home).skipped == (
        ("ISIC_0000001", "no image file"),
        ("ISIC_0000004", "no image file, as for all of its label"),
    )


HAM, EYES, SHOP = "HAM10000_metadata.csv", "full_df.csv", "Eval/list_eval_partition.txt"
EMPTY = json.dumps({"images": [], "annotations": [], "categories": []})


@pytest.mark.parametrize(
    ("name", "file", "content", "message"),
    [
        ("ham10000", HAM, "image_id,dx\n", "HAM10000_metadata.csv: no column lesion_id, dx_type"),
        ("ham10000", HAM, HAM10000.replace("HAM_2", ""), "1 rows have no group, such as ISIC_0000003"),
        ("ham10000", HAM, HAM10000 + HAM10000.splitlines()[2], "ISIC_0000002 in two rows of the list of images"),
        ("odir", EYES, ODIR.replace("['C']", "['X']"), "1 rows are not as published, such as '0_left.jpg'"),
        ("odir", EYES, ODIR.replace("0_left.jpg\n", "left.jpg\n"), "1 rows are not as published"),
        ("cars", "cars_annos.mat", matlab({"car_ims/000001.jpg": 197}, "relative_im_path"), "one of the 196 names"),
        ("cars", "cars_annos.mat", matlab({"000001.jpg": 1}, "fname"), "have no relative_im_path and class"),
        ("cars", "cars_annos.mat", "<html>not found</html>", "cars_annos.mat: cannot read its annotations"),
        ("sop", "Ebay_train.txt", "", "Ebay_train.txt: cannot be read as a list"),
        ("sop", "Ebay_train.txt", "image_id path\n1 a/1_0.JPG\n", "Ebay_train.txt: has no column class_id"),
        ("sop", "Ebay_train.txt", SOP["Ebay_train.txt"][:-40], "Ebay_train.txt: has a line that breaks off"),
        ("in_shop", SHOP, in_shop({"WOMEN/id_1/a": ("id_1", "train")}), "img/WOMEN/id_1/a.jpg is no path like img"),
        ("in_shop", SHOP, in_shop({"MEN/Denim/id_1/a": ("id_1", "val")}), "evaluation_status 'val' is none of train"),
        ("inaturalist", "val2018.json", '{"images": [', r"val2018\.json: cannot be read as JSON"),
        ("inaturalist", "train2018.json", '{"images": []}', "has no annotations, categories"),
        ("inaturalist", "train2018.json", EMPTY, "images and annotations do not fit"),
        ("inaturalist", "categories.json", json.dumps(CATEGORIES[:1]), "there is no category 1"),
        ("inaturalist", "categories.json", json.dumps([c | {"genus": ""} for c in CATEGORIES]), "empty ranks"),
        ("radin_ct", "RadiologyAI_train.csv", "file,class\na.png,b\n", "RadiologyAI_train.csv: no column filename"),
        ("tissue", "table.csv", "image_id,path,label,person\n1,1.png,a,7\n", "table.csv: no column patient; it has"),
    ],
)
def test_a_list_of_another_kind_is_named(tmp_path, place, make, name, file, content, message):
    home = make(place(CASES[name]) if name in CASES else tmp_path, {file: content})
    with pytest.raises(InputError, match=message):
        loaders.load(name, home)


@pytest.mark.parametrize(
    ("name", "file", "message"),
    [
        ("ham10000", "HAM10000_metadata.csv", "has no HAM10000_metadata.csv"),
        ("odir", "full_df.csv", "has no full_df.csv"),
        ("cars", "cars_annos.mat", "has neither cars_annos.mat nor cars_train_annos.mat, "),
        (
            "cars in parts",
            "cars_test_annos_withlabels.mat",
            "has neither cars_annos.mat nor cars_test_annos_withlabels.mat",
        ),
        ("sop", "Ebay_test.txt", "has no Ebay_test.txt"),
        ("in_shop", "Eval", "has no list_eval_partition.txt"),
    ],
)
def test_a_missing_list_is_named(place, tmp_path, name, file, message):
    gone = place(CASES[name]) / file
    shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    with pytest.raises(MissingDataset, match=message):
        loaders.load(name.split()[0], tmp_path)


def test_cars_are_read_from_what_is_there_and_whole(place, make, tmp_path):
    home = place(CASES["cars in parts"])
    make(home, {"cars_annos.mat": matlab({"car_ims/000001.jpg": 7}, "relative_im_path")})  # as copies have it
    assert len(loaders.load("cars", tmp_path)) == 3
    make(home, ["car_ims/000001.jpg"])
    assert loaders.load("cars", tmp_path).rows["image_id"].tolist() == ["car_ims/000001"]


def test_inaturalist_may_name_its_species_in_the_lists(place):
    home = place(CASES["inaturalist"])
    (home / "categories.json").unlink()
    with pytest.raises(InputError, match=r"without kingdom, .* categories\.json"):
        loaders.load("inaturalist", home)
    (home / "val2018.json").unlink()
    file = home / "train2018.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"categories": CATEGORIES}))
    table = loaders.load("inaturalist", home)
    assert table.rows["genus"].tolist() == ["Turdus", "Bellis"] and len(table.skipped) == 1


def test_radin_ct_lists_may_lie_beside_or_in_the_folder_of_images(place, tmp_path):
    home = place(CASES["radin_ct"])
    expected = loaders.load("radin_ct", home).labels.tolist()
    (tmp_path / "split").mkdir()
    for file in home.glob("*.csv"):
        file.rename(tmp_path / "split" / file.name)
    assert loaders.load("radin_ct", tmp_path).labels.tolist() == expected
    for file in (tmp_path / "split").iterdir():
        file.rename(home / "radiology_ai" / file.name)
    assert loaders.load("radin_ct", home / "radiology_ai").labels.tolist() == expected


def test_no_more_of_a_class_than_the_paper_has_and_always_the_same(make, tmp_path, monkeypatch):
    monkeypatch.setitem(radin_ct.SIZES, "normal lung", 3)
    lines = [(f"CT/lung/normal/lung-normal{i:06d}.png", "lung-normal") for i in range(9)]
    make(tmp_path, [f"radiology_ai/{path}" for path, _ in lines])
    tables = []
    for order in (1, -1):
        make(tmp_path, radin_ct_lists({"train": lines[::order]}))
        tables.append(loaders.load("radin_ct", tmp_path))
    assert set(tables[0].rows["path"]) == set(tables[1].rows["path"]) and len(tables[0]) == 3
    assert tables[0].skipped == (("6 images of normal lung", "the paper has 3 and does not say which"),)
