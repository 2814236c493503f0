"""What real images say comes from the committed reports, says whose they are, and is content with what is there."""

import re
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image as Pictures

from lib import paths
from lib.pipeline import notebooks
from lib.pipeline import real as hashes
from lib.study import real, saved
from lib.study.store import Run

RUN = Run("13_hyper_dino_retrieval", "demo", "tissue", "10 tiles", "abc", "texture")
TESTS = pd.DataFrame(
    [
        ("by image", "ball", "flat", 1, -1.5, 0.4),
        ("by slide", "ball", "flat", 1, 2.25, 0.002),
        ("by slide", "ball", "flat", 20, 4.0, 0.002),
        ("by slide", "ball", "NCA", 20, -3.0, 0.002),
    ],
    columns=["rule", "first", "second", "k", "difference", "p_value"],
).assign(p_floor=0.002, n_units=10, n_tests=4, low=-5.0, high=5.0, p_holm=[0.4, 0.008, 0.008, 0.008], could_show=1.5)


@pytest.fixture
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "COMMITTED", tmp_path)
    return tmp_path


def save(reports, dataset: str, name: str, rows: pd.DataFrame, section: str = "retrieval", shown: str = "| a |"):
    folder = reports / "hyper_dino" / "sample" / dataset / section
    folder.mkdir(parents=True, exist_ok=True)
    rows.to_csv(folder / f"{name}.csv", index=False)
    about = {"images": f"240 images of {dataset}", "encoder": "a network (8 numbers)", "dataset": dataset}
    run = {"notebook": "13_hyper_dino_retrieval", "profile": "sample", "digest": "0", "parameters": {}}
    said = {"title": f"{name} on {dataset}", "caption": f"MAP of {dataset}."}
    saved.add(folder, name, run | about, said, f"## {name}\n\n{shown}\n\nMAP of {dataset}.\n\nProfile: sample")
    if name.startswith("figure"):
        Pictures.new("RGB", (2, 2)).save(folder / f"{name}.png")
    return folder / f"{name}.csv"


def pictures(shown: real.Real) -> list[Path]:
    """The files that the pictures of a notebook are links to."""
    links = re.findall(r"^!\[.+\]\(\.\./reports/(.+\.png)\)$", shown.markdown, re.M)
    return [paths.COMMITTED / link for link in links]


def test_every_dataset_shows_its_table_with_published_rows_and_ours(reports):
    rows = "## Theirs and ours\n\n| method | whose |\n| --- | --- |\n| Hyp | ours |\n\n## Another block"
    for dataset in ("ham10000", "kather"):
        save(reports, dataset, "table_2", TESTS[["rule"]], shown=rows)
    first, second = real.tables(RUN, "table_2").parts
    assert first == (
        f"**Kather 2016: table_2**\n\n{rows}\n\n*MAP of kather.*\n\nProfile: sample · images: 240 images of kather · "
        "encoder: a network (8 numbers) · notebook: 13_hyper_dino_retrieval"
    )
    assert second.startswith(f"**HAM10000: table_2**\n\n{rows}\n\n*MAP of ham10000.*")


def test_a_dataset_without_a_report_is_named_or_its_reason_is(reports):
    """HAM10000 has other tables of the section, BreakHis none of it; of several names one is enough."""
    save(reports, "kather", "table_tests", TESTS)
    save(reports, "bh200x", "table_tests", TESTS, section="beyond")
    assert "No sample report" not in real.tables(RUN, "table_tests", "table_5").markdown
    save(reports, "ham10000", "table_other", TESTS)
    one, absent = real.tables(RUN, "table_tests", "table_5").parts
    assert absent == "No sample report of table_tests, table_5 yet: HAM10000." and "**Kather 2016: table_tests**" in one
    assert real.tables(RUN, "table_tests", lacking="no tree").parts[1] == "HAM10000: no tree."
    assert real.tables(RUN, "table_3").markdown.startswith("There is no sample report of table_3; `make reproduce")
    assert real.figures(RUN, "figure_*").markdown.startswith("There is no sample report of figures of retrieval; `make")


def test_paired_tests_are_laid_out_anew_and_a_table_of_an_earlier_version_as_it_was_saved(reports):
    save(reports, "kather", "table_tests", TESTS.assign(n_seeds=5))
    save(reports, "ham10000", "table_tests", TESTS.drop(columns="p_floor"))
    said, new, old = real.tables(RUN, "table_tests", rows=lambda rows: rows[rows["rule"] == "by slide"]).parts
    assert real.PART in said and real.PART not in new + old
    assert "| by slide | ball | flat | 1 | +2.25 |" in new and "better" in new and "by image" not in new
    assert "| a |" in old


def test_an_overview_is_one_table_of_all_datasets_that_have_it(reports):
    for dataset in ("ham10000", "kather"):
        save(reports, dataset, "table_tests", TESTS)
    save(reports, "bh200x", "table_other", TESTS)

    def counted(found):
        return "; ".join(f"{title}: {len(rows)}" for title, rows in found.items())

    assert real.overview(RUN, counted, "table_tests").markdown == f"Kather 2016: {len(TESTS)}; HAM10000: {len(TESTS)}"
    assert real.overview(RUN, counted, "table_nine").markdown.startswith("There is no sample report of table_nine;")


@pytest.mark.parametrize("profile", ["sample", "paper", "own"])
def test_a_run_on_real_images_shows_no_others(reports, profile):
    """It would show its own results of the time before, and run again whenever it has run."""
    save(reports, "kather", "figure_3", TESTS)
    run = Run("13_hyper_dino_retrieval", profile, "kather", "", "", "")
    for found in (real.figures(run, "figure_3"), real.overview(run, len, "figure_3")):
        assert pictures(found) == [] and "real images already" in found.markdown


def test_the_demo_runs_again_when_a_sample_report_changes_and_the_sample_does_not(reports, tmp_path, monkeypatch):
    """So do notebooks that show reports of others, and no others."""
    monkeypatch.setattr(hashes, "REAL", tmp_path / "real")
    file = save(reports, "kather", "table_leakage", TESTS, section="beyond")

    def written() -> dict[tuple[str, str], str]:
        hashes.write()
        return {path.parts[-2:]: path.read_text() for path in (tmp_path / "real").glob("*/*")}

    before = written()
    file.write_text("rule\n")
    after = written()
    shown_in = {("demo", "16_hyper_dino_beyond"), ("demo", "90_beyond_factors")}
    assert {profile for profile, _ in before} == set(hashes.READERS)
    assert {name for name in before if after[name] != before[name]} >= shown_in
    assert all(after[name] == before[name] for name in before if name[0] != "demo" or name[1].startswith("13_"))


def test_committed_reports_can_be_shown():
    """Whatever version they are of."""
    for path in sorted(paths.NOTEBOOKS.glob("[1-9]*.ipynb")):
        run = Run(path.stem, "demo", "tissue", "", "", "")
        shown = pictures(real.figures(run, "figure_*"))
        own = [file for file in hashes.reports(path.stem) if file.parent.name == run.section]
        assert {file.name for file in own if file.suffix == ".png"} == {file.name for file in shown}
        assert all(file.is_file() for file in shown) and notebooks.REPORT.fullmatch("figure_3.png")


def test_trainings_of_the_papers_size_are_shown_beside_or_said_not_to_have_been_run(reports):
    save(reports, "kather", "table_tests", TESTS)

    def of_both() -> real.Real:
        return real.all_of(*(real.tables(RUN, name, profile=real.GPU) for name in ("table_tests", "table_2")))

    shown, nothing = of_both(), real.NOTHING[real.GPU].format(notebook=RUN.notebook)
    assert shown.parts == (nothing,) and "`make gpu`" in shown.markdown
    (reports / "hyper_dino" / "sample").rename(reports / "hyper_dino" / "gpu")
    shown = of_both()
    assert "**Kather 2016: table_tests**" in shown.markdown and nothing in shown.parts
    assert "hyper_dino/gpu/kather/retrieval/table_tests.csv " in hashes.hashes(RUN.notebook)
