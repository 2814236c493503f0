import json

import numpy as np
import pytest
from PIL import Image

from lib.datasets import inaturalist
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset

RANKS = ("kingdom", "phylum", "class", "order", "family", "genus")
SPECIES = [
    ("Turdus merula", "Animalia", "Chordata", "Aves", "Passeriformes", "Turdidae", "Turdus"),
    ("Turdus philomelos", "Animalia", "Chordata", "Aves", "Passeriformes", "Turdidae", "Turdus"),
    ("Bellis perennis", "Plantae", "Tracheophyta", "Magnoliopsida", "Asterales", "Asteraceae", "Bellis"),
]
PHOTOS = {
    "train2018.json": [("Aves/0/a.jpg", 0), ("Aves/0/b.jpg", 0), ("Aves/1/c.jpg", 1), ("Plantae/2/d.jpg", 2)],
    "val2018.json": [("Aves/0/e.jpg", 0), ("Plantae/2/f.jpg", 2)],
}
HIDDEN = [{"id": i, "name": str(i), "supercategory": "Aves"} for i in range(3)]
NAMED = [{"id": i, "name": name, **dict(zip(RANKS, ranks, strict=True))} for i, (name, *ranks) in enumerate(SPECIES)]


@pytest.fixture
def root(tmp_path):
    """As train_val2018.tar.gz, train2018.json.tar.gz, val2018.json.tar.gz and categories.json unpack."""
    number = iter(range(100))
    for name, photos in PHOTOS.items():
        images, annotations = [], []
        for path, species in photos:
            at = next(number)
            images.append({"id": at, "file_name": f"train_val2018/{path}", "height": 9, "width": 12, "license": 3})
            annotations.append({"id": at + 1000, "image_id": at, "category_id": species})
            file = tmp_path / "train_val2018" / path
            file.parent.mkdir(parents=True, exist_ok=True)
            Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(file)
        content = {"images": images, "annotations": annotations[::-1], "categories": HIDDEN}
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "categories.json").write_text(json.dumps(NAMED))
    return tmp_path


def test_species_ranks_and_the_published_parts(root):
    table = inaturalist.load(root)
    photos = [(path, SPECIES[species], name) for name, several in PHOTOS.items() for path, species in several]
    assert table.rows["path"].tolist() == [f"train_val2018/{path}" for path, _, _ in photos]
    assert table.labels.tolist() == [species[0] for _, species, _ in photos]
    assert table.rows[list(RANKS)].to_numpy().tolist() == [list(species[1:]) for _, species, _ in photos]
    assert table.rows["part"].tolist() == ["train"] * 4 + ["validation"] * 2
    assert table.rows["image_id"][0] == "train_val2018/Aves/0/a" == table.groups[0]
    assert table.group_kind == "image" and table.skipped == ()
    assert read_image(table.path(0)).size == (12, 9)


def test_names_may_stand_in_the_lists_themselves(root):
    (root / "categories.json").unlink()
    (root / "val2018.json").unlink()
    file = root / "train2018.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"categories": NAMED}))
    table = inaturalist.load(root)
    assert len(table) == 4 and table.rows["genus"].tolist() == ["Turdus"] * 3 + ["Bellis"]
    assert sorted(table.skipped) == [
        ("train_val2018/Aves/0/e.jpg", "not in the list of images"),
        ("train_val2018/Plantae/2/f.jpg", "not in the list of images"),
    ]


def test_hidden_names_are_asked_for(root):
    (root / "categories.json").unlink()
    with pytest.raises(InputError, match=r"without kingdom, .* categories\.json"):
        inaturalist.load(root)


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("train2018.json", lambda content: content | {"annotations": content["annotations"][:1] * 2}, "do not fit"),
        ("train2018.json", lambda content: {"images": []}, "has no annotations, categories"),
        ("categories.json", lambda content: content[:2], "there is no category 2"),
        ("categories.json", lambda content: [content[0] | {"genus": ""}, *content[1:]], "empty ranks"),
    ],
)
def test_lists_that_do_not_fit_are_refused(root, file, change, message):
    (root / file).write_text(json.dumps(change(json.loads((root / file).read_text()))))
    with pytest.raises(InputError, match=message):
        inaturalist.load(root)


def test_a_broken_list_is_named(root):
    (root / "val2018.json").write_text('{"images": [')
    with pytest.raises(InputError, match=r"val2018\.json: cannot be read as JSON"):
        inaturalist.load(root)


def test_without_lists_it_is_missing(tmp_path):
    with pytest.raises(MissingDataset, match=r"has neither train2018\.json nor val2018\.json"):
        inaturalist.load(tmp_path)
