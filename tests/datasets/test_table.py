"""ImageTable, load, read_image and the walk over files."""

import os
import struct

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib import paths
from lib.datasets import images, loaders, table
from lib.datasets.catalogue import DATASETS, facts
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import BrokenImage, InputError, MissingDataset

SEED = np.random.default_rng(7)
PIXELS = SEED.integers(0, 256, (20, 24, 3), dtype=np.uint8)


def rows(**columns):
    three = {
        "image_id": ["x", "y", "z"],
        "path": ["x.png", "y.png", "z.png"],
        "label": list("bab"),
        "group": list("ppq"),
    }
    return pd.DataFrame(three | columns)


def test_table_holds_what_it_was_given(tmp_path):
    table = ImageTable("t", tmp_path, rows(age=[1, 2, 3]), "patient")
    assert len(table) == 3
    assert table.classes == ["a", "b"]
    assert table.labels.tolist() == ["b", "a", "b"] and table.labels.dtype.kind == "U"
    assert table.groups.tolist() == ["p", "p", "q"] and table.groups.dtype.kind == "U"
    assert table.path(2) == tmp_path / "z.png"
    assert table.rows["age"].tolist() == [1, 2, 3]


def test_table_spells_numbers_as_text_and_leaves_the_callers_rows_alone(tmp_path):
    given = rows(image_id=[1, 2, 3])
    table = ImageTable("t", tmp_path, given, "patient")
    assert table.rows["image_id"].tolist() == ["1", "2", "3"]
    assert given["image_id"].tolist() == [1, 2, 3]


def test_take_follows_the_order_asked_for(tmp_path):
    table = ImageTable("t", tmp_path, rows(), "patient", skipped=(("w.png", "why"),))
    taken = table.take(["z", "x"])
    assert taken.rows["path"].tolist() == ["z.png", "x.png"]
    assert taken.path(0) == tmp_path / "z.png"
    assert taken.skipped == (("w.png", "why"),)


def test_take_names_what_is_not_there(tmp_path):
    with pytest.raises(InputError, match=r"1 of 2 image_ids.*such as w"):
        ImageTable("t", tmp_path, rows(), "patient").take(["x", "w"])


def test_double_image_ids_are_named_with_their_files(tmp_path):
    with pytest.raises(InputError, match=r"1 image_ids occur more than once, such as x in x.png, z.png"):
        ImageTable("t", tmp_path, rows(image_id=["x", "y", "x"]), "patient")


def test_whatever_a_file_is_called_is_read_back(tmp_path):
    names = ['a|b, "c".png', "two\nlines.png", "<img src=x>$\\frac$.png"]
    ImageTable("t", tmp_path, rows(image_id=names, path=names), "patient").write(tmp_path / "t.csv")
    assert ImageTable.read(tmp_path / "t.csv").rows["path"].tolist() == names


@pytest.mark.parametrize("column", ["label", "group", "path"])
@pytest.mark.parametrize("nothing", [None, float("nan"), " "])
def test_an_empty_value_is_an_error(tmp_path, column, nothing):
    with pytest.raises(InputError, match=f"1 rows have no {column}, such as y"):
        ImageTable("t", tmp_path, rows(**{column: ["u", nothing, "v"]}), "patient")


def test_an_empty_image_id_is_shown_by_its_path(tmp_path):
    with pytest.raises(InputError, match=r"no image_id, such as y.png"):
        ImageTable("t", tmp_path, rows(image_id=["x", None, "z"]), "patient")


def test_a_missing_column_is_an_error(tmp_path):
    with pytest.raises(InputError, match="no column group"):
        ImageTable("t", tmp_path, rows().drop(columns="group"), "patient")


@pytest.mark.parametrize(
    ("spellings", "name"), [(["nv ", "nv", "mel"], "nv"), (["cafe\u0301", "caf\u00e9", "tea"], "caf\u00e9")]
)
@pytest.mark.parametrize("column", ["label", "group"])
def test_spellings_that_look_alike_are_one_with_a_warning(tmp_path, column, spellings, name):
    with pytest.warns(UserWarning, match=rf"'.*', '.*' are taken as one {column}, {name}\.") as caught:
        table = ImageTable("t", tmp_path, rows(**{column: spellings}), "patient")
    assert table.rows[column].tolist() == [name, name, spellings[2]]
    assert len(caught) == 1
    table.take(["x", "y"])
    assert len(caught) == 1


def test_a_lone_spelling_is_tidied_without_a_word(tmp_path, recwarn):
    assert ImageTable("t", tmp_path, rows(label=[" nv", " nv", "mel"]), "patient").classes == ["mel", "nv"]
    assert not recwarn.list


def test_labels_that_differ_in_capitals_only_are_an_error_and_groups_are_not(tmp_path):
    with pytest.raises(InputError, match=r"labels BKL \(1 images\) and bkl \(2 images\) differ in capitals only"):
        ImageTable("t", tmp_path, rows(label=["bkl", "BKL", "bkl"]), "patient")
    assert len(set(ImageTable("t", tmp_path, rows(group=["p1", "P1", "p2"]), "patient").groups)) == 3


def test_load_names_the_known_datasets_and_the_close_one(tmp_path):
    known = "tissue, tissue_40x, .*, tissue_400x, kather, breakhis, bh40x, bh100x, bh200x, bh400x, ham"
    with pytest.raises(InputError, match=rf"Did you mean kather\? Known: {known}"):
        loaders.load("kathre", tmp_path)


@pytest.mark.parametrize("name", ["kather", "breakhis", "ham10000"])
def test_a_missing_dataset_says_what_it_is_and_how_to_get_it(tmp_path, name):
    facts = DATASETS[name]
    with pytest.raises(MissingDataset) as caught:
        loaders.load(name, tmp_path / "nowhere")
    message = str(caught.value)
    for part in (f"{tmp_path / 'nowhere'} does not exist", facts.doi, facts.licence, facts.size, f"data/{name} "):
        assert part in message
    assert f"{facts.images:,} images" in message
    assert "make reproduce PROFILE=sample DATA=" in message
    (tmp_path / "file").write_text("x")
    with pytest.raises(MissingDataset, match="is not a folder"):
        loaders.load(name, tmp_path / "file")


@pytest.mark.parametrize("name", list(DATASETS))
def test_an_empty_folder_is_a_missing_dataset(tmp_path, name):
    with pytest.raises(MissingDataset, match=f"needs {name}: "):
        loaders.load(name, tmp_path)


def test_facts_exist_for_every_loader_and_sizes_are_approximate():
    assert list(DATASETS) == list(loaders.LOADERS)
    images = {name: facts.images for name, facts in DATASETS.items()}
    assert [images[name] for name in ("cub", "cars", "sop", "in_shop")] == [11788, 16185, 120053, 52712]  # as published
    assert [images[name] for name in ("tissue", "kather", "breakhis", "ham10000")] == [None, 5000, 7909, 10015]
    assert sum(images[f"bh{m}x"] for m in (40, 100, 200, 400)) == images["breakhis"]
    assert all(facts.size.startswith("about ") for facts in DATASETS.values() if facts.size)


def test_pictures_are_published_of_drawn_tiles_and_of_kather_alone():
    shown = {name: one for name, one in DATASETS.items() if one.pictures is not None}
    assert set(shown) == {*paths.DRAWN, "kather"} and facts("birds").pictures is None
    assert {name for name, one in shown.items() if one.pictures} == {"kather"}
    for part in (shown["kather"].doi, shown["kather"].licence, shown["kather"].citation):
        assert part in shown["kather"].pictures


def tissue(tmp_path, group_column="patient"):
    lines = [
        f"image_id,path,label,organ,tissue,subtype,{group_column},magnification,duplicate_of",
        "0001,tiles/0001.png,NA,gut,NA,NA-1,007,40,",
        "0002,tiles/0002.png,fat,gut,fat,fat-1,008,100,0001",
    ]
    (tmp_path / "table.csv").write_text("\n".join(lines))


def test_tissue_reads_its_table_as_text(tmp_path):
    tissue(tmp_path)
    table = loaders.load("tissue", tmp_path)
    assert table.labels.tolist() == ["NA", "fat"]
    assert table.groups.tolist() == ["007", "008"]
    assert table.group_kind == "patient"
    assert table.path(1) == tmp_path / "tiles/0002.png"
    assert table.rows["duplicate_of"].tolist() == ["", "0001"]


def test_tissue_without_its_column_names_file_and_column(tmp_path):
    tissue(tmp_path, group_column="person")
    with pytest.raises(InputError, match=r"table.csv: no column patient; it has image_id"):
        loaders.load("tissue", tmp_path)


def test_a_table_without_rows_is_a_missing_dataset(tmp_path):
    (tmp_path / "table.csv").write_text("image_id,path,label,patient\n")
    with pytest.raises(MissingDataset, match="lists no images"):
        loaders.load("tissue", tmp_path)


@pytest.mark.parametrize("content", [b"", b"a,b\n\xff\xfe,1\n", b'a,b\n"1,2\n'])
def test_a_broken_csv_names_the_file(tmp_path, content):
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"t.csv: cannot be read as CSV"):
        table.read_csv(tmp_path / "t.csv", ["a"])


def test_a_csv_with_more_cells_than_columns_is_not_shifted(tmp_path):
    (tmp_path / "t.csv").write_text("a,b\n1,2,3\n4,5,6\n")
    with pytest.raises(InputError, match=r"t.csv: cannot be read as CSV"):
        table.read_csv(tmp_path / "t.csv", ["a"])


def test_walk_leaves_out_hidden_files_and_survives_a_link_to_a_parent(tmp_path):
    for name in ("b/2.png", "a/1.PNG", ".cache/3.png", "a/._1.png", "a/notes.txt"):
        (tmp_path / "data" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "data" / name).touch()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere/4.tif").touch()
    (tmp_path / "data/linked").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "data/a/up").symlink_to(tmp_path / "data")
    found = images.visible_files(tmp_path / "data")
    assert list(map(str, found)) == ["a/1.PNG", "a/notes.txt", "b/2.png", "linked/4.tif"]
    assert [images.is_image(path) for path in found] == [True, False, True, True]


def test_walk_names_a_folder_that_cannot_be_read(tmp_path, monkeypatch):
    def scandir(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(InputError, match=r"the folder cannot be read \(Permission denied\)"):
        images.visible_files(tmp_path)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".bmp"])
def test_read_image_returns_the_pixels(tmp_path, suffix):
    Image.fromarray(PIXELS).save(tmp_path / f"x{suffix}")
    image = read_image(tmp_path / f"x{suffix}")
    assert image.mode == "RGB"
    np.testing.assert_array_equal(np.asarray(image), PIXELS)


def test_grey_values_of_16_bits_keep_their_high_byte(tmp_path):
    values = np.array([[0, 255, 256], [40_000, 65_279, 65_535]], dtype=np.uint16)
    for suffix in (".png", ".tif"):
        Image.fromarray(values).save(tmp_path / f"x{suffix}")
        shown = np.asarray(read_image(tmp_path / f"x{suffix}"))
        assert shown[..., 0].tolist() == [[0, 0, 1], [156, 254, 255]]
        assert (shown == shown[..., :1]).all()


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_values_of_32_bits_are_refused(tmp_path, dtype):
    Image.fromarray(np.ones((4, 4), dtype)).save(tmp_path / "x.tif")
    with pytest.raises(BrokenImage, match=r"x.tif: 32-bit pixel values have no agreed range"):
        read_image(tmp_path / "x.tif")


def test_transparency_is_laid_on_white(tmp_path):
    rgba = np.zeros((1, 3, 4), np.uint8)
    rgba[0, 1] = (200, 10, 0, 255)
    rgba[0, 2] = (100, 0, 0, 51)
    Image.fromarray(rgba).save(tmp_path / "x.png")
    shown = np.asarray(read_image(tmp_path / "x.png"))[0].tolist()
    # 51 / 255 = 0.2: red 0.2 * 100 + 0.8 * 255 = 224, green and blue 0.8 * 255 = 204
    assert shown == [[255, 255, 255], [200, 10, 0], [224, 204, 204]]


def test_a_palette_gives_its_colours_and_its_transparent_entry_white(tmp_path):
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8)).convert("P")
    image.putpalette([10, 20, 30, 40, 50, 60, 0, 0, 0])
    image.save(tmp_path / "opaque.png")
    image.save(tmp_path / "clear.png", transparency=2)
    opaque = np.asarray(read_image(tmp_path / "opaque.png"))[0].tolist()
    assert opaque == [[10, 20, 30], [40, 50, 60], [0, 0, 0]]
    clear = np.asarray(read_image(tmp_path / "clear.png"))[0].tolist()
    assert clear == [[10, 20, 30], [40, 50, 60], [255, 255, 255]]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(
    "options", [("x.png", {}), ("x.jpg", {}), ("x.bmp", {}), ("x.webp", {}), ("x.tif", {"compression": "jpeg"})]
)
def test_a_truncated_image_is_named(tmp_path, options):
    name, save_options = options
    Image.fromarray(PIXELS).save(tmp_path / name, **save_options)
    whole = (tmp_path / name).read_bytes()
    for share in (0.2, 0.5, 0.9):
        (tmp_path / name).write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(BrokenImage, match=name):
            read_image(tmp_path / name)


def test_an_empty_file_and_a_text_file_are_named(tmp_path):
    (tmp_path / "empty.png").touch()
    (tmp_path / "text.png").write_text("not an image")
    with pytest.raises(BrokenImage, match=r"empty.png: the file is empty \(0 bytes\)"):
        read_image(tmp_path / "empty.png")
    with pytest.raises(BrokenImage, match=r"text.png: not an image"):
        read_image(tmp_path / "text.png")
    with pytest.raises(BrokenImage, match=r"gone.png: no such file"):
        read_image(tmp_path / "gone.png")


def test_a_file_without_permission_is_named(tmp_path, monkeypatch):
    Image.fromarray(PIXELS).save(tmp_path / "x.png")

    def refuse(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Image, "open", refuse)
    with pytest.raises(BrokenImage, match=r"x.png: no permission"):
        read_image(tmp_path / "x.png")


def test_an_image_that_claims_to_be_huge_is_to_be_cut_not_decoded(tmp_path):
    Image.fromarray(PIXELS).save(tmp_path / "x.bmp")
    data = bytearray((tmp_path / "x.bmp").read_bytes())
    data[18:26] = struct.pack("<ii", 40_000, 40_000)
    (tmp_path / "x.bmp").write_bytes(data)
    with pytest.raises(BrokenImage, match=r"x.bmp: too large, over 178,956,970 pixels. Cut it into tiles"):
        read_image(tmp_path / "x.bmp")
