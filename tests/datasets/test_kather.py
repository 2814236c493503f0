from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib.datasets import loaders
from lib.datasets.images import read_image
from lib.errors import MissingDataset

TILES = {
    "01_TUMOR/1025D_CRC-Prim-HE-10_020.tif_Row_1_Col_601.tif": (
        "tumor",
        "CRC-Prim-HE-10",
        "CRC-Prim-HE-10_020",
        1,
        601,
    ),
    "02_STROMA/1000E_CRC-Prim-HE-04.tif_Row_1501_Col_451.tif": (
        "stroma",
        "CRC-Prim-HE-04",
        "CRC-Prim-HE-04",
        1501,
        451,
    ),
    "06_MUCOSA/104D0_CRC-Prim-HE-07_001_copy.tif_Row_1501_Col_451.tif": (
        "mucosa",
        "CRC-Prim-HE-07",
        "CRC-Prim-HE-07_001_copy",
        1501,
        451,
    ),
    "08_EMPTY/1027_CRC-Prim-HE-06_005.tif_Row_1_Col_1.tif": ("empty", "CRC-Prim-HE-06", "CRC-Prim-HE-06_005", 1, 1),
}


@pytest.fixture
def root(tmp_path):
    tile = Image.fromarray(np.random.default_rng(0).integers(0, 256, (15, 15, 3), dtype=np.uint8))
    for name in TILES:
        path = tmp_path / "Kather_texture_2016_image_tiles_5000" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        tile.save(path)
    return tmp_path


def test_names_and_folders_are_read(root):
    table = loaders.load("kather", root)
    found = table.rows[["label", "slide", "source_image", "row", "col"]].itertuples(index=False, name=None)
    assert list(found) == list(TILES.values())
    assert table.groups.tolist() == [slide for _, slide, *_ in TILES.values()]
    assert table.group_kind == "slide"
    assert read_image(table.path(0)).size == (15, 15)
    assert table.skipped == ()


def test_the_same_tile_name_in_two_classes_stays_two_images(root):
    first = next(iter(TILES))
    home = root / "Kather_texture_2016_image_tiles_5000"
    (home / "02_STROMA" / Path(first).name).write_bytes((home / first).read_bytes())
    assert len(set(loaders.load("kather", root).rows["image_id"])) == len(TILES) + 1


def test_other_images_are_left_out_and_listed(root):
    (root / "larger").mkdir()
    (root / "larger/CRC-Prim-HE-01_APPLICATION.tif").touch()
    (root / "Kather_texture_2016_image_tiles_5000/01_TUMOR/thumbnail.png").touch()
    table = loaders.load("kather", root)
    assert len(table) == len(TILES)
    assert [Path(what).name for what, _ in table.skipped] == ["thumbnail.png", "CRC-Prim-HE-01_APPLICATION.tif"]
    assert "not a tile name" in table.skipped[0][1] and "not in a class folder" in table.skipped[1][1]


def test_a_folder_without_tiles_counts_what_it_found(tmp_path):
    (tmp_path / "photo.png").touch()
    with pytest.raises(MissingDataset, match=r"holds no tiles \(1 other images\)"):
        loaders.load("kather", tmp_path)


def test_real_tiles(real):
    table = loaders.load("kather", real("kather2016_sample"))
    assert len(table) == 240 and table.skipped == ()
    assert table.rows["label"].value_counts().to_dict() == dict.fromkeys(table.classes, 30)
    assert len(set(table.groups)) == 10 and table.rows["source_image"].nunique() == 126
    empty = table.rows[table.rows["label"] == "empty"]
    assert empty["slide"].value_counts().to_dict() == {"CRC-Prim-HE-06": 28, "CRC-Prim-HE-10": 2}
    assert empty["source_image"].value_counts().to_dict() == {"CRC-Prim-HE-06_005": 28, "CRC-Prim-HE-10_026": 2}
    assert read_image(table.path(0)).size == (150, 150)
