import numpy as np
import pytest
from PIL import Image

from lib.datasets import in_shop
from lib.datasets.images import read_image
from lib.errors import InputError, MissingDataset
from lib.geometry import PoincareBall, Sphere
from lib.metrics.retrieval import evaluate

ROWS = [
    ("img/WOMEN/Dresses/id_00000002/02_1_front.jpg", "id_00000002", "train"),
    ("img/WOMEN/Dresses/id_00000002/02_2_side.jpg", "id_00000002", "train"),
    ("img/MEN/Denim/id_00000080/01_1_front.jpg", "id_00000080", "query"),
    ("img/MEN/Denim/id_00000080/01_7_additional.jpg", "id_00000080", "gallery"),
    ("img/WOMEN/Tees_Tanks/id_00000090/03_1_front.jpg", "id_00000090", "query"),
    ("img/WOMEN/Tees_Tanks/id_00000090/03_4_full.jpg", "id_00000090", "gallery"),
]


def listing(rows):
    lines = [f"{image:<70} {item} {status:<8}" for image, item, status in rows]
    return "\n".join([str(len(rows)), "image_name item_id evaluation_status", *lines]) + "\n"


@pytest.fixture
def root(tmp_path):
    """As published: the list in Eval/, and Img/img.zip unpacked where it lies."""
    for image, _, _ in ROWS:
        path = tmp_path / "Img" / image
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(np.random.default_rng(0).integers(0, 256, (9, 12, 3), dtype=np.uint8)).save(path)
    (tmp_path / "Eval").mkdir()
    (tmp_path / "Eval/list_eval_partition.txt").write_text(listing(ROWS))
    return tmp_path


def test_garments_and_the_published_split(root):
    table = in_shop.load(root)
    assert table.labels.tolist() == [item for _, item, _ in ROWS]
    assert table.rows["split"].tolist() == ["train", "train", "query", "gallery", "query", "gallery"]
    assert table.rows["gender"].tolist() == ["WOMEN", "WOMEN", "MEN", "MEN", "WOMEN", "WOMEN"]
    assert table.rows["category"].tolist() == ["Dresses"] * 2 + ["Denim"] * 2 + ["Tees_Tanks"] * 2
    assert table.rows["image_id"][0] == "WOMEN/Dresses/id_00000002/02_1_front" == table.groups[0]
    assert table.group_kind == "image" and table.skipped == ()
    assert read_image(table.path(0)).size == (12, 9)


@pytest.mark.parametrize("geometry", [Sphere(), PoincareBall(0.1)])
def test_queries_are_searched_in_the_gallery_alone(root, geometry):
    """Each query has one right answer in the gallery: nearest for the first, second for the other."""
    rows = in_shop.load(root).rows
    points = np.array([[0.9, 0.9], [0.9, 0.8], [0.5, 0.0], [0.5, 0.1], [0.4, 0.2], [0.1, 0.5]])
    query, gallery = (np.flatnonzero(rows["split"] == split) for split in ("query", "gallery"))
    labels = rows["label"].to_numpy(dtype=str)
    found = evaluate(points[query], points[gallery], labels[query], labels[gallery], geometry, (1, 2), block=1)
    assert found.values["hit_rate", 1].tolist() == [1.0, 0.0]
    assert found.values["hit_rate", 2].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("img/WOMEN/id_1/a.jpg", "id_1", "train")], r"img/WOMEN/id_1/a.jpg is no path like img/WOMEN"),
        ([(*ROWS[0][:2], "val")], "evaluation_status 'val' is none of train, query, gallery"),
        ([(*ROWS[0][:2], "")], "has a line that breaks off"),
    ],
)
def test_a_list_of_another_kind_is_named(root, rows, message):
    (root / "Eval/list_eval_partition.txt").write_text(listing(rows))
    with pytest.raises(InputError, match=message):
        in_shop.load(root)


def test_no_list_or_no_photos_is_a_missing_dataset(root):
    for photo in root.rglob("*.jpg"):
        photo.unlink()
    with pytest.raises(MissingDataset, match=r"needs in_shop: .* holds none of the 6 images that are listed"):
        in_shop.load(root)
    (root / "Eval/list_eval_partition.txt").unlink()
    with pytest.raises(MissingDataset, match=r"has no list_eval_partition.txt"):
        in_shop.load(root)
