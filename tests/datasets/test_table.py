"""One row per image: what a table holds, refuses, and gives back."""

import pandas as pd
import pytest

from lib.datasets import table
from lib.datasets.table import ImageTable
from lib.errors import InputError
from tests.datasets.conftest import columns


def rows(**others):
    three = [("x", "x.png", "b", "p"), ("y", "y.png", "a", "p"), ("z", "z.png", "b", "q")]
    return pd.DataFrame(columns("image_id path label group", three) | others)


def test_a_table_holds_what_it_was_given_as_text_and_takes_images_in_the_wanted_order(tmp_path):
    given = rows(image_id=[1, 2, 3], age=[1, 2, 3])
    table = ImageTable("t", tmp_path, given, "patient", skipped=(("w.png", "why"),))
    assert len(table) == 3 and table.classes == ["a", "b"]
    assert table.labels.tolist() == ["b", "a", "b"] and table.labels.dtype.kind == "U"
    assert table.groups.tolist() == ["p", "p", "q"] and table.groups.dtype.kind == "U"
    assert table.rows["image_id"].tolist() == ["1", "2", "3"] and given["image_id"].tolist() == [1, 2, 3]
    taken = table.take(["3", "1"])
    assert taken.rows["age"].tolist() == [3, 1] and taken.path(0) == tmp_path / "z.png"
    assert taken.skipped == table.skipped
    with pytest.raises(InputError, match=r"1 of 2 image_ids.*such as w"):
        table.take(["1", "w"])


def test_whatever_a_file_is_called_is_read_back(tmp_path):
    names = ['a|b, "c".png', "two\nlines.png", "<img src=x>$\\frac$.png"]
    ImageTable("t", tmp_path, rows(image_id=names, path=names), "patient").write(tmp_path / "t.csv")
    assert ImageTable.read(tmp_path / "t.csv").rows["path"].tolist() == names


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"label": ["u", None, "v"]}, "1 rows have no label, such as y"),
        ({"group": ["u", float("nan"), "v"]}, "1 rows have no group, such as y"),
        ({"path": ["u", " ", "v"]}, "1 rows have no path, such as y"),
        ({"image_id": ["x", None, "z"]}, r"no image_id, such as y.png"),
        ({"image_id": ["x", "y", "x"]}, r"1 image_ids occur more than once, such as x in x.png, z.png"),
        ({"label": ["bkl", "BKL", "bkl"]}, r"labels BKL \(1 images\) and bkl \(2 images\) differ in capitals only"),
    ],
)
def test_rows_that_cannot_be_used_are_named(tmp_path, others, message):
    with pytest.raises(InputError, match=message):
        ImageTable("t", tmp_path, rows(**others), "patient")
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


def test_groups_may_differ_in_capitals_and_a_lone_spelling_is_tidied(tmp_path, recwarn):
    table = ImageTable("t", tmp_path, rows(group=["p1", "P1", "p2"], label=[" nv", " nv", "mel"]), "patient")
    assert len(set(table.groups)) == 3 and table.classes == ["mel", "nv"] and not recwarn.list


@pytest.mark.parametrize("content", [b"", b"a,b\n\xff\xfe,1\n", b'a,b\n"1,2\n', b"a,b\n1,2,3\n4,5,6\n"])
def test_a_broken_csv_names_the_file(tmp_path, content):
    """One with more cells than columns is not shifted."""
    (tmp_path / "t.csv").write_bytes(content)
    with pytest.raises(InputError, match=r"t.csv: cannot be read as CSV"):
        table.read_csv(tmp_path / "t.csv", ["a"])
