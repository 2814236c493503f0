"""The comparison with the commit bites: one changed cell is found, allowed deviations pass."""

import pandas as pd
import pytest

from lib.results import compare

TABLE = pd.DataFrame({"family": ["baseline", "32"], "k": [1, 20], "ours": [90.0, 88.0], "p": [0.1, float("nan")]})
TOLERANCES = {"ours": 1.0}


def beyond(built: pd.DataFrame) -> list[tuple[str, str]]:
    return [(d.column, d.problem) for d in compare.tables(TABLE, built, TOLERANCES, "table_2") if not d.within]


def test_equal_tables_deviate_by_nothing():
    deviations = compare.tables(TABLE, TABLE.copy(), TOLERANCES, "table_2")
    assert [d.column for d in deviations] == ["family", "k", "ours", "p"]
    assert all(d.deviation == 0 and d.within for d in deviations)


@pytest.mark.parametrize(("value", "passes"), [(90.9, True), (91.1, False), (88.9, False)])
def test_a_value_may_deviate_as_far_as_stated(value, passes):
    assert (beyond(TABLE.assign(ours=[value, 88.0])) == []) == passes


@pytest.mark.parametrize(
    "built",
    [
        TABLE.assign(k=[1, 10]),
        TABLE.assign(family=["baseline", "dim_in"]),
        TABLE.assign(p=[0.1, 0.2]),
        TABLE.assign(ours=[float("nan"), 88.0]),
        TABLE.iloc[:1],
        TABLE.rename(columns={"ours": "theirs"}),
    ],
    ids=["a count", "a word", "a filled cell", "an emptied cell", "a row lost", "a column renamed"],
)
def test_any_other_change_of_one_cell_is_found(built):
    assert len(beyond(built)) == 1


def test_a_changed_word_is_shown():
    assert beyond(TABLE.assign(family=["baseline", "dim_in"])) == [("family", "row 1: '32' committed, 'dim_in' built")]


def test_tables_that_come_or_go_are_deviations(monkeypatch, tmp_path):
    files = {
        "reports/p/demo/d/old.csv": "a\n1\n",
        "reports/p/demo/d/same.csv": "a\n1\n",
        "reports/p/sample/d/x.csv": "",
    }
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    monkeypatch.setattr(compare, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(
        compare, "_git", lambda *words: "\n".join(files) if words[0] == "ls-tree" else files[words[1].split(":")[1]]
    )
    folder = tmp_path / "reports/p/demo/d"
    folder.mkdir(parents=True)
    for name in ("same.csv", "new.csv"):
        (folder / name).write_text("a\n1\n")
    found = compare.with_commit("demo", {})
    assert {d.table.rsplit("/")[-1]: d.problem for d in found} == {
        "old.csv": "committed, but not built",
        "new.csv": "built, but not committed",
        "same.csv": "",
    }
