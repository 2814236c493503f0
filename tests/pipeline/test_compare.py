"""The comparison with the commit bites: one changed cell is found, allowed deviations pass."""

import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest

from lib import paths
from lib.errors import InputError
from lib.pipeline import compare, reproduce
from lib.pipeline.compare import Tolerance
from lib.study import saved
from lib.study.shown import Table
from lib.study.store import Run

TABLE = pd.DataFrame({"family": ["baseline", "32"], "k": [1, 20], "ours": [90.0, 88.0], "p": [0.1, float("nan")]})
RULE = Tolerance()  # 1 % of 90 is 0.9


def beyond(built: pd.DataFrame, rule: Tolerance = RULE, table: pd.DataFrame = TABLE) -> list[tuple[str, str]]:
    return [(d.column, d.problem) for d in compare.tables(table, built, rule, "table_2") if not d.within]


@pytest.mark.parametrize(("value", "passes"), [(90.89, True), (90.91, False), (89.11, True), (89.09, False)])
def test_a_value_may_deviate_by_a_share_of_the_largest_of_its_column(value, passes):
    assert (beyond(TABLE.assign(ours=[value, 88.0])) == []) == passes
    assert (beyond(TABLE.assign(p=[0.1 + (value - 90) / 900, float("nan")])) == []) == passes


ANSWERS, WORDS = TABLE.assign(right=[True, False]), pd.DataFrame({"second": ["default", None, None]})
CHANGED = {
    "a count": TABLE.assign(k=[1, 21]),
    "half a count": TABLE.assign(k=[1.0, 20.5]),
    "a word": TABLE.assign(family=["baseline", "dim_in"]),
    "a filled cell": TABLE.assign(p=[0.1, 0.2]),
    "an emptied cell": TABLE.assign(ours=[float("nan"), 88.0]),
    "a row lost": TABLE.iloc[:1],
    "a column renamed": TABLE.rename(columns={"ours": "theirs"}),
    "yes for no": ANSWERS.assign(right=[True, True]),
    "a word for a missing one": pd.DataFrame({"second": ["default", None, "other"]}),
}


@pytest.mark.parametrize("change", CHANGED)
def test_any_other_change_of_one_cell_is_found(change):
    table = {"yes for no": ANSWERS, "a word for a missing one": WORDS}.get(change, TABLE)
    assert len(beyond(CHANGED[change], table=table)) == 1
    assert beyond(table.copy(), table=table) == []


@pytest.mark.parametrize("other", [[2_000, 2_000], [5_120.0, float("nan")]], ids=["whole", "with a gap"])
def test_large_numbers_of_another_column_make_nothing_looser(other):
    table = TABLE.assign(size=other)
    assert [column for column, _ in beyond(table.assign(ours=[91.0, 88.0]), table=table)] == ["ours"]


def test_a_column_of_zeros_is_never_taken_for_what_is_committed():
    """In every table of the demo: each column that is compared and holds a number other than 0."""
    found = 0
    for file in sorted(paths.COMMITTED.glob("*/demo/*/*/*.csv")):
        rule, table = compare.tolerance(saved.record(file)), pd.read_csv(file)
        numbers = table[table.select_dtypes("number").columns.difference(rule.free)]
        measured = {column for column in numbers if numbers[column].fillna(0).any()}
        seen = {column for column, _ in beyond(table.assign(**(0 * numbers)), rule, table)}
        assert measured <= seen, f"{file}: {measured - seen}"
        found += len(measured)
    assert found > 1000


def test_a_free_column_is_left_alone_and_no_other():
    built = TABLE.assign(family=["baseline", "dim_in"], p=[float("nan"), 0.2])
    assert beyond(built, Tolerance(free=("family", "p"))) == []
    assert [column for column, _ in beyond(built, Tolerance(free=("family",)))] == ["p"]


def test_an_empty_table_equals_itself():
    assert all(d.within for d in compare.tables(TABLE[:0], TABLE[:0], RULE, "table_2"))


OLD, SAME, NEW, OTHER = ("old.csv", "same.csv", "new.csv", "other.csv")


def section(root: Path, profile: str) -> Path:
    return root / "p" / profile / "d/section"


def write(folder: Path, name: str, value: float, digest: str = "abc", **run: str) -> None:
    """Save a table of one number, made from the images with this ``digest``, into the folder of a section."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(f"ours\n{value:.1f}\n")
    saved.add(folder, Path(name).stem, {"profile": folder.parts[-3]} | run, {"digest": digest, "caption": ""}, "")


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A commit with three tables per profile; one is gone, one is new, one was made from other images."""

    def git(*words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e", *words], cwd=tmp_path, check=True)

    folders = [section(tmp_path / "reports", profile) for profile in ("demo", "sample")]
    git("init", "--quiet")
    for folder in folders:
        for name in (OLD, SAME, OTHER):
            write(folder, name, 90)
    git("add", ".")
    git("commit", "--quiet", "--message", "tables")
    for folder in folders:
        (folder / OLD).unlink()
        write(folder, NEW, 90)
        write(folder, OTHER, 95, "xyz")
    monkeypatch.setattr(compare, "ROOT", tmp_path)
    monkeypatch.setattr(compare, "REPORTS", tmp_path / "reports")
    monkeypatch.setattr(compare, "REBUILT", tmp_path / "build/rebuilt")
    return tmp_path


def outcome(profile: str) -> tuple[dict[str, bool], list[str]]:
    deviations, notes = compare.with_commit(profile)
    return {Path(d.table).name: d.within for d in deviations}, [note.rsplit("/")[-1] for note in notes]


def test_the_demo_must_have_exactly_the_committed_tables(repository):
    assert outcome("demo") == ({OLD: False, SAME: True, NEW: False, OTHER: False}, [])


def test_tables_of_other_images_are_named_and_not_compared(repository):
    assert outcome("sample") == (
        {OLD: False, SAME: True},
        ["new.csv: new", "other.csv: made from other images than the committed one"],
    )


def test_only_the_datasets_asked_for_are_compared(repository):
    assert compare.with_commit("sample", {"elsewhere"}) == ([], [])
    assert compare.with_commit("sample", {"d"}) == compare.with_commit("sample")


def test_the_report_names_what_deviates(repository, capsys):
    with pytest.raises(InputError, match=r"3 columns deviate.*\n.*old.csv : committed, but not built") as caught:
        reproduce.report("demo", *compare.with_commit("demo"))
    assert "other.csv ours: row 0: 90.0 committed, 95.0 built (± 0.9)" in str(caught.value)


def test_the_report_prints_the_largest_deviation(capsys):
    deviations = compare.tables(TABLE, TABLE.assign(ours=[90.5, 88.25]), RULE, "table_2")
    reproduce.report("demo", deviations, ["x: new"])
    note, summary = capsys.readouterr().out.splitlines()
    assert note == "not compared: x: new"
    assert summary.startswith(
        "1 tables of profile demo agree with the committed ones; largest deviation 0.5 (allowed 0.9) "
    )
    assert summary.endswith("in table_2, column ours")


def test_what_was_rebuilt_and_put_aside_is_what_is_compared(repository):
    write(section(compare.REBUILT, "demo"), SAME, 90.5)
    (deviation,) = [d for d in compare.with_commit("demo")[0] if d.table.endswith(SAME)]
    assert deviation.deviation == 0.5 and deviation.within


def test_a_table_says_how_far_it_may_deviate(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    run = Run("10_beyond_section", "demo", "d", "none", "", "none")
    rows = pd.DataFrame({"reference": ["a"], "ours": [1.0], "p_value": [0.5]})
    run.save("table_x", Table("X", rows, "", markdown="", free=["reference"]))
    said = compare.tolerance(saved.record(run.folder / "table_x.csv"))
    assert said == Tolerance(share=0.01, free=["reference", "p_value"])


def on_gpu(profile: str, value: float) -> Path:
    """The section as a GPU rebuilds it, with another value in its table."""
    folder = section(compare.REBUILT, profile)
    for name in (OLD, SAME, OTHER):
        write(folder, name, value, device="NVIDIA H100")
    return folder


@pytest.mark.parametrize(("value", "passes"), [(90.9, True), (103.4, True), (76.6, True), (103.6, False)])
def test_what_another_device_trained_may_deviate_by_more_and_is_named(repository, capsys, value, passes):
    on_gpu("sample", value)
    deviations, notes = compare.with_commit("sample", {"d"})
    (same,) = [d for d in deviations if d.table.endswith(SAME)]
    assert same.within == passes and same.allowed == 13.5
    assert notes[-1] == (
        "words and whole numbers of 1 tables, trained on NVIDIA H100, the committed ones on CPU: "
        "other numbers may deviate by 8, or by 15% of the largest of their column"
    )


def test_on_another_device_small_numbers_have_points_and_choices_are_free():
    rule = compare.tolerance({"tolerance": {"free": ["p"]}}, {"device": "NVIDIA H100"})
    gains = TABLE.assign(ours=[3.0, -1.0])
    assert beyond(gains.assign(ours=[-4.9, 6.9], family=["x", "y"], k=[7, 7]), rule, gains) == []
    assert [column for column, _ in beyond(gains.assign(ours=[-5.1, -1.0]), rule, gains)] == ["ours"]
    assert compare.tolerance({"device": "NVIDIA H100"}, {"device": "NVIDIA H100"}) == Tolerance()


@pytest.mark.parametrize(("value", "stays"), [(90.0, True), (95.0, True), (107.0, False)])
def test_a_section_stays_where_a_gpu_agrees_and_the_demo_goes_back_to_the_cpu(repository, value, stays):
    for profile in ("demo", "sample"):
        there, here = on_gpu(profile, value), section(repository / "reports", profile)
        shutil.rmtree(here)
        for name in (OLD, SAME, OTHER):
            write(here, name, 90)
        assert compare.agree(here, there) == stays
        assert compare.agree(there, here) == (stays and profile == "sample")
