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
).assign(p_floor=0.002, n_units=10, n_tests=4, low=-5.0, high=5.0, p_holm=[0.4, 0.008, 0.008, 0.008])


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
    return folder / f"{name}.png"


def pictures(shown: real.Real) -> list[Path]:
    """The files that the pictures of a notebook are links to."""
    links = re.findall(r"^!\[.+\]\(\.\./reports/(.+\.png)\)$", shown.markdown, re.M)
    return [paths.COMMITTED / link for link in links]


def test_every_dataset_shows_its_figure_and_says_whose_it_is(reports):
    files = [save(reports, dataset, "figure_3", TESTS) for dataset in ("ham10000", "kather", "zebra")]
    found = real.figures(RUN, "figure_3")
    assert pictures(found) == [files[1], files[0], files[2]]
    for part, dataset in zip(found.parts, ("kather", "ham10000", "zebra"), strict=True):
        for words in ("Profile: sample", f"240 images of {dataset}", "a network (8 numbers)", f"*MAP of {dataset}.*"):
            assert words in part


def test_every_dataset_shows_its_table_with_published_rows_and_ours(reports):
    rows = "| method | whose | Recall@1 |\n| --- | --- | --- |\n| Hyp-ViT | published | 84.0 |\n| Hyp | ours | 87.87 |"
    rows = f"## Theirs and ours\n\n{rows}\n\n## Another block"
    for dataset in ("ham10000", "kather"):
        save(reports, dataset, "table_2", TESTS, shown=rows)
    first, second = real.tables(RUN, "table_2").parts
    assert first == (
        f"**Kather 2016**\n\n{rows}\n\n*MAP of kather.*\n\nProfile: sample · images: 240 images of kather · "
        "encoder: a network (8 numbers) · notebook: 13_hyper_dino_retrieval"
    )
    assert second.startswith(f"**HAM10000**\n\n{rows}\n\n*MAP of ham10000.*")
    assert real.tables(RUN, "table_3").markdown.startswith("There is no sample report of table_3; `make reproduce")


def test_a_notebook_shows_pictures_by_links_and_holds_none(reports, monkeypatch):
    shown = []
    save(reports, "kather", "figure_3", TESTS)
    monkeypatch.setattr(real, "display", lambda *things: shown.extend(things))
    real.figures(RUN, "figure_3")._ipython_display_()
    link = "![figure_3 on kather](../reports/hyper_dino/sample/kather/retrieval/figure_3.png)"
    assert [part.data for part in shown] == [real.figures(RUN, "figure_3").markdown]
    assert shown[0].data.startswith(f"{link}\n\n**Kather 2016.**")


def test_a_dataset_can_have_a_name_of_its_own(reports):
    save(reports, "kather", "figure_4", TESTS)
    save(reports, "ham10000", "figure_queries", TESTS)
    assert [file.stem for file in pictures(real.figures(RUN, "figure_*"))] == ["figure_4", "figure_queries"]


def test_a_missing_report_is_named(reports):
    save(reports, "kather", "table_tests", TESTS)
    save(reports, "ham10000", "table_other", TESTS)
    save(reports, "bh200x", "table_tests", TESTS, section="beyond")  # nothing of this section was asked of it
    text = real.tables(RUN, "table_tests").markdown
    assert text.endswith("No sample report of table_tests yet: HAM10000.")
    assert text.count("**Kather 2016**") == 1


def test_a_dataset_that_has_one_of_several_names_misses_none_of_them(reports):
    save(reports, "kather", "table_2", TESTS)
    save(reports, "bh200x", "table_5", TESTS)
    assert "No sample report" not in real.tables(RUN, "table_2", "table_5").markdown
    save(reports, "ham10000", "table_other", TESTS)
    found = real.tables(RUN, "table_2", "table_5")
    assert found.parts[-1] == "No sample report of table_2, table_5 yet: HAM10000." and len(found.parts) == 3


def test_a_table_that_a_dataset_never_has_is_told_with_the_reason(reports):
    """HAM10000 has other tables of the section, BreakHis has none of it."""
    save(reports, "kather", "table_tests", TESTS)
    save(reports, "ham10000", "table_other", TESTS)
    save(reports, "bh200x", "table_tests", TESTS, section="beyond")
    *_, reason = real.tables(RUN, "table_tests", lacking="no tree").parts
    assert reason == "HAM10000: no tree."
    assert "HAM10000: no tree." in real.tables(RUN, "table_tests", lacking="no tree").markdown


def test_a_table_can_be_laid_out_anew_from_its_csv(reports):
    save(reports, "kather", "table_tests", TESTS)
    assert "rows: " in real.tables(RUN, "table_tests", layout=lambda rows: f"rows: {len(rows)}").markdown
    assert "of an earlier version" in real.tables(RUN, "table_tests", layout=lambda rows: rows["absent"]).markdown


def test_a_pattern_is_told_in_words(reports):
    save(reports, "kather", "figure_4", TESTS)
    save(reports, "ham10000", "table_other", TESTS)
    text = real.figures(RUN, "figure_[45q]*").markdown
    assert text.endswith("No sample report of figures of retrieval yet: HAM10000.")
    (reports / "hyper_dino/sample/kather/retrieval/figure_4.png").unlink()
    assert real.figures(RUN, "figure_*").markdown.startswith("There is no sample report of figures of retrieval; `make")


def test_an_overview_is_one_table_of_all_datasets_that_have_it(reports):
    for dataset in ("ham10000", "kather"):
        save(reports, dataset, "table_tests", TESTS)
    save(reports, "bh200x", "table_other", TESTS)

    def counted(found):
        return "; ".join(f"{title}: {len(rows)}" for title, rows in found.items())

    assert real.overview(RUN, counted, "table_tests").markdown == f"Kather 2016: {len(TESTS)}; HAM10000: {len(TESTS)}"
    assert real.overview(RUN, counted, "table_nine").markdown.startswith("There is no sample report of table_nine;")
    sample = Run("13_hyper_dino_retrieval", "sample", "kather", "", "", "")
    assert "real images already" in real.overview(sample, counted, "table_tests").markdown


def test_without_any_report_it_says_how_to_make_one(reports):
    text = real.figures(RUN, "figure_3", "figure_4").markdown
    assert text.startswith("There is no sample report of figure_3, figure_4; `make reproduce PROFILE=sample")


@pytest.mark.parametrize("profile", ["sample", "paper", "own"])
def test_a_run_on_real_images_shows_no_others(reports, profile):
    """It would show its own results of the time before, and run again whenever it has run."""
    save(reports, "kather", "figure_3", TESTS)
    found = real.figures(Run("13_hyper_dino_retrieval", profile, "kather", "", "", ""), "figure_3")
    assert pictures(found) == [] and "real images already" in found.markdown


def test_the_demo_runs_again_when_a_sample_report_changes_and_the_sample_does_not(reports, tmp_path, monkeypatch):
    monkeypatch.setattr(hashes, "REAL", tmp_path / "real")
    file = save(reports, "kather", "figure_3", TESTS)
    notebook = "13_hyper_dino_retrieval"

    def written(profile: str, name: str = notebook) -> str:
        hashes.write()
        return (tmp_path / "real" / profile / name).read_text()

    before = {profile: written(profile) for profile in hashes.READERS}
    other = written("demo", "16_hyper_dino_beyond")
    file.with_suffix(".csv").write_text("rule\n")
    assert {profile for profile in before if written(profile) != before[profile]} == {"demo"}
    assert written("demo", "16_hyper_dino_beyond") == other


def test_a_notebook_runs_again_with_every_report_that_it_shows(reports):
    before = hashes.hashes("90_beyond_factors")
    folder = hashes.paths.COMMITTED / "hyper_dino" / "sample" / "kather" / "beyond"
    folder.mkdir(parents=True)
    (folder / "table_leakage.csv").write_text("rule\n")
    assert hashes.hashes("90_beyond_factors") != before


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
    shown = real.all_of(
        real.tables(RUN, "table_tests", profile=real.GPU), real.tables(RUN, "table_2", profile=real.GPU)
    )
    assert shown.parts == (real.NOTHING[real.GPU],) and "`make gpu`" in shown.markdown
    (reports / "hyper_dino" / "sample").rename(reports / "hyper_dino" / "gpu")
    shown = real.all_of(
        real.tables(RUN, "table_tests", profile=real.GPU), real.tables(RUN, "table_2", profile=real.GPU)
    )
    assert "**Kather 2016**" in shown.markdown and real.NOTHING[real.GPU] in shown.parts
    assert "table_tests" in "".join(hashes.hashes(RUN.notebook)) or "run.json" in hashes.hashes(RUN.notebook)
