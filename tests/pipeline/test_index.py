"""The index shows what lies in reports/ and what the runs of params.yaml still need; the plan says how to get it."""

import re
from pathlib import Path

import pandas as pd
import pytest

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.pipeline import index, notebooks, plan, profiles
from lib.results import saved
from lib.results.papers import PAPERS

STAGE = {"do": {"cmd": "python -m lib.pipeline.notebooks run 13_p_stage ${profile} ${key}"}}
RUNS = {
    "demo": {"p_stage": {"tissue": {"table": "table_2", "encoder": "texture"}}},
    "sample": {"p_stage": {"kather": {"table": "table_2", "encoder": "texture"}}},
    "paper": {"p_stage": {"bh40x": {"table": "table_3", "encoder": "dino_vits16"}}},
}


@pytest.fixture
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    monkeypatch.setattr(profiles, "stages", lambda: {"p_stage": STAGE})
    monkeypatch.setattr(profiles, "runs", RUNS.__getitem__)
    monkeypatch.setattr(index, "PAPERS", {"p": "Paper"})
    numbered = {"p/stage/table_2": "Table 2, Kather", "p/stage/table_3": "Table 3, BH40X"}
    monkeypatch.setattr(index, "NUMBERED", numbered)
    return tmp_path


def save(reports, profile: str, dataset: str, *names: str) -> None:
    for name in names:
        about = {"title": f"Paper, MAP@k on {dataset}", "images": "240 of 5,000", "encoder": "texture (156)"}
        key = {"paper": "p", "profile": profile, "dataset": dataset, "notebook": "13_p_stage"}
        saved.add(reports / "p" / profile / dataset / "stage", name, key, about, "")


def test_what_is_there_is_listed_from_the_files_alone(reports):
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "sample", "kather", "table_2")
    rows = index.overview().query("link != ''")
    assert rows[["profile", "dataset", "name", "link"]].to_numpy().tolist() == [
        ["demo", "tissue", "table_2", "p/demo/tissue/stage/README.md#table_2"],
        ["sample", "kather", "table_2", "p/sample/kather/stage/README.md#table_2"],
        ["demo", "tissue", "figure_more", "p/demo/tissue/stage/README.md#figure_more"],
    ]


def test_no_reports_at_all_make_an_empty_index(reports):
    assert index.overview().empty
    assert "# Every saved table and figure" in index.markdown(index.overview())


def test_what_a_run_would_make_says_what_it_needs(reports):
    """A table that the demo has is expected of every run of its notebook, under the run's own number."""
    save(reports, "demo", "tissue", "table_2", "figure_more")
    lacking = index.overview().query("link == ''").set_index(["dataset", "name"])["images"]
    assert dict(lacking) == {
        ("kather", "table_2"): "needs Kather 2016",
        ("kather", "figure_more"): "needs Kather 2016",
        ("bh40x", "table_3"): "needs BreakHis at 40X, weights of dino_vits16",
        ("bh40x", "figure_more"): "needs BreakHis at 40X, weights of dino_vits16",
    }


def test_a_run_that_names_no_table_makes_the_one_that_its_notebook_names(reports, monkeypatch):
    runs = RUNS | {"paper": {"p_stage": {"bh40x": {"encoder": "texture"}}}}
    monkeypatch.setattr(profiles, "runs", runs.__getitem__)
    save(reports, "demo", "tissue", "table_2")
    rows = index.overview()
    assert rows.loc[rows["profile"] == "paper", "name"].tolist() == ["table_2"]


def test_a_paper_is_one_matrix_and_what_is_missing_is_folded(reports):
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "sample", "kather", "table_2")
    text = index.markdown(index.overview())
    assert "|  | what it shows | demo | Kather 2016 | BreakHis at 40X | notebook |" in text
    links = "[demo](p/demo/tissue/stage/README.md#table_2) | [sample](p/sample/kather/stage/README.md#table_2)"
    assert f"| Table 2, Kather | MAP@k | {links} | – |" in text
    assert (
        "| Figure: more | MAP@k | [demo](p/demo/tissue/stage/README.md#figure_more) | – | needs images, weights |"
        in text
    )
    assert "| Table 3, BH40X | MAP@k | – | – | needs images, weights |" in text
    need = "- needs BreakHis at 40X, weights of dino_vits16 (profile paper): Table 3, BH40X; 1 that we add"
    assert need in text.splitlines()


def test_another_dataset_of_the_demo_has_its_link_and_is_expected_of_no_other_run(reports, monkeypatch):
    monkeypatch.setitem(RUNS["demo"]["p_stage"], "tissue_40x", {"table": "table_3", "encoder": "texture"})
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "demo", "tissue_40x", "table_3", "figure_more")
    rows = index.overview()
    assert set(rows.query("link == '' and dataset == 'kather'")["name"]) == {"table_2", "figure_more"}
    text = index.markdown(rows)
    both = "[demo](p/demo/tissue/stage/README.md#figure_more) · "
    both += "[tissue_40x](p/demo/tissue_40x/stage/README.md#figure_more)"
    assert f"| Figure: more | MAP@k | {both} | needs images |" in text
    assert "| Table 3, BH40X | MAP@k | [demo](p/demo/tissue_40x/stage/README.md#table_3) |" in text


def test_what_nobody_has_made_is_one_row_of_its_notebook(reports, monkeypatch):
    monkeypatch.setitem(RUNS["paper"]["p_stage"], "bh400x", {"table": "table_6", "encoder": "dino_vits16"})
    monkeypatch.setitem(index.NUMBERED, "p/stage/table_6", "Table 6, BH400X")
    save(reports, "demo", "tissue", "table_2")
    text = index.markdown(index.overview())
    needs = "needs images, weights | needs images, weights"
    assert f"| Table 3, BH40X · Table 6, BH400X | MAP@k | – | – | {needs} |" in text


def test_every_dataset_has_its_licence_and_address_once():
    text = index.licences()
    for name in set(DATASETS) - {*paths.DRAWN, "folder"}:
        facts = DATASETS[name]
        assert text.count((facts.doi or facts.page) + " |") == 1 and facts.licence in text


def test_own_images_have_a_list_of_their_own(reports):
    save(reports, "demo", "tissue", "table_2")
    save(reports, "own", "eyes", "table_2")
    save(reports, "own", "birds", "table_2")
    assert "eyes" not in index.markdown(index.overview())
    listed = index.write_own("eyes").read_text()
    assert "(p/own/eyes/stage/README.md#table_2)" in listed and "birds" not in listed


def test_the_committed_index_is_current():
    expected = index.markdown(index.overview())
    assert (paths.ROOT / "reports" / "index.md").read_text(encoding="utf-8") == expected


def test_the_first_notebook_shows_the_committed_index():
    rows = index.overview()
    wanted = index.matrices(rows[rows["numbered"]]).replace("](", "](../reports/")
    cells = notebooks.read(paths.NOTEBOOKS / "00_start_here.ipynb").cells
    texts = [out["data"]["text/markdown"] for cell in cells for out in cell.get("outputs", []) if "data" in out]
    assert texts == [wanted], "make notebooks builds notebook 00 anew, last"


def test_a_search_for_a_table_of_the_paper_finds_it():
    """Under the paper's number and dataset, whether a run has made it or not."""
    text = (paths.ROOT / "reports" / "index.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in text.splitlines() if line.startswith("| ")]
    for paper in ("hyper_dino", "linear_prototypes"):
        labels = [label for key, label in index.NUMBERED.items() if key.startswith(f"{paper}/")]
        assert all(any(label in row for row in rows) for label in labels)
        for file in paths.PUBLISHED.glob(f"{paper}_table*.csv"):
            table, dataset = pd.read_csv(file).loc[0, ["table", "dataset"]].fillna("")
            found = [label for label in labels if label.partition(",")[0] == table]
            theirs = dataset.replace("BH", "BreakHis ") if table not in ("Table 1", "Table I") else ""
            assert len(found) == 1 and theirs in found[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_fig_1_of_a_paper_has_a_row_or_the_reason_why_not(paper):
    numbered = [label for key, label in index.NUMBERED.items() if key.startswith(f"{paper}/")]
    has_row = any(label.startswith("Fig. 1") for label in numbered)
    assert paper == "beyond" or has_row != (paper in index.NOT_DRAWN)
    for notebook in re.findall(r"notebooks/(\w+)\.ipynb", index.NOT_DRAWN.get(paper, "")):
        assert (paths.NOTEBOOKS / f"{notebook}.ipynb").exists()


def test_every_number_of_the_paper_stands_in_a_file_name_under_its_own():
    """A table or figure called by a number is one of those that the paper numbers, and of the dataset it is about."""
    rows = index.overview()
    own = rows[rows["name"].str.fullmatch(r"(table|figure)_\d+")]
    assert own["numbered"].all()
    for key, label in index.NUMBERED.items():
        kind, _, number = key.rpartition("/")[2].partition("_")
        if number.isdigit():
            roman = "I" * int(number)  # as the linear prototypes count their tables
            assert label.startswith({"table": (f"Table {number}", f"Table {roman}"), "figure": f"Fig. {number}"}[kind])
    for stage, runs in profiles.runs("paper").items():
        for dataset, run in runs.items() if stage.startswith("hyper_dino") else ():
            for name in (run[kind] for kind in ("table", "figure") if kind in run):
                label = next(label for key, label in index.NUMBERED.items() if key == f"hyper_dino/{stage[11:]}/{name}")
                assert label.endswith(DATASETS[dataset].title.replace(" at ", " "))


@pytest.mark.parametrize("profile", ["demo", "sample", "paper"])
def test_the_plan_counts_every_stage_and_adds_up_all_hours(profile, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    rows, text = plan.table(profile, profiles.settings()), plan.text(profile)
    runs = sum(map(len, profiles.runs(profile).values()))
    content = profiles.profile(profile)
    features = sum(len(content[b]["datasets"]) * len(content[b]["encoders"]) for b in profiles.FEATURES)
    assert len(rows) == runs + features + len(content["views"])
    assert (rows["hours"] >= 0).all() and rows["hours"].gt(0).sum() >= len(rows) - 1
    assert f"{len(rows)} stages, {rows['hours'].sum():.1f} hours" in text


def test_the_plan_says_of_everything_missing_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    text = plan.text("paper")
    rows = plan.table("paper", profiles.settings())
    absent = set(rows[rows["here"] == "no"]["dataset"])
    assert {DATASETS[name].title for name in ("kather", "bh40x", "bh400x", "ham10000", "ovarian")} <= absent
    for name, way in {
        "kather": "make data NAME=kather",
        "bh400x": "make data NAME=breakhis",
        "ham10000": "make data NAME=ham10000",
        "ovarian": DATASETS["ovarian"].page,
    }.items():
        message = next(part for part in text.split("\n\n") if part.startswith(f"needs {name}:"))
        assert way in message and (DATASETS[name].licence in message)
    assert "needs weights of DINO (dino_vits16): " in text and "needs weights of UNI2-h (uni2_h): " in text
    for name in ("vit_small_patch16_224.augreg_in21k", "deit_small_distilled_patch16_224.fb_in1k"):
        assert f"needs weights of {name}: No weights for {name} (about " in text
    assert "about 87 MB" in text and "CC BY-NC-ND 4.0, gated" in text


def test_the_plan_knows_what_is_here_also_through_a_link(monkeypatch, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "kather").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    here = plan.table("paper", profiles.settings()).set_index("stage")["here"]
    assert here["hyper_dino_retrieval@kather"] == here["features@kather-texture"] == "yes"
    assert set(here[[stage for stage in here.index if "@bh" in stage]]) == {"no"}
    assert "needs kather:" not in plan.text("paper")


def test_a_notebook_without_images_is_planned_too():
    row = plan.table("demo", profiles.settings()).set_index("stage").loc["hyper_dino_ball@all"]
    assert row[["dataset", "images", "here"]].tolist() == ["no images", "–", "yes"]


def test_images_are_counted_in_the_table_where_it_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "BUILD", tmp_path)
    whole = plan.table("sample", profiles.settings()).set_index("stage")
    built = paths.table("sample", "kather")
    built.parent.mkdir(parents=True)
    built.write_text("image_id,path\n" + "a,b\n" * 50)
    part = plan.table("sample", profiles.settings()).set_index("stage")
    stage = "hyper_dino_retrieval@kather"
    assert (whole.loc[stage, "images"], part.loc[stage, "images"]) == ("5,000", "50")
    assert part.loc[stage, "hours"] == pytest.approx(whole.loc[stage, "hours"] / 100)
    assert part.loc["hyper_dino_retrieval@bh200x", "images"] == whole.loc["hyper_dino_retrieval@bh200x", "images"]


def test_small_magnifications_stand_before_large_ones():
    names = [Path(f"p/demo/tissue_{m}x/s/t.json") for m in (100, 40, 400)]
    assert [path.parts[2] for path in sorted(names, key=index._natural)] == ["tissue_40x", "tissue_100x", "tissue_400x"]


def test_hours_grow_with_images_epochs_and_lengths():
    settings = profiles.settings()
    settings["plan"]["demo_seconds"] = {"hyper_dino_mapper": 36.0}
    demo = next(iter(profiles.runs("demo")["hyper_dino_mapper"].values()))
    n = settings["drawn"]["tissue"]["n_tiles"]
    assert plan.scaled_hours("hyper_dino_mapper", demo, n, settings) == pytest.approx(0.01)
    twice = {"epochs": 2 * demo["epochs"]}
    assert plan.scaled_hours("hyper_dino_mapper", twice, 3 * n, settings) == pytest.approx(0.06)
    longer = demo | {"lengths": [8, 16]}
    assert plan.scaled_hours("hyper_dino_mapper", longer, n, settings) == pytest.approx(0.02)


def test_a_notebook_that_nobody_timed_has_a_plan_too():
    settings = profiles.settings()
    assert plan.demo_seconds("hyp_vit_new", settings) == settings["plan"]["other_demo_seconds"] > 0


def test_a_stage_that_a_profile_does_not_name_runs_nothing():
    assert "hyper_dino_ball" not in profiles.profile("paper")["runs"]
    assert profiles.runs("paper")["hyper_dino_ball"] == {}
    assert set(profiles.runs("paper")) == set(profiles.notebooks())


def test_the_matrix_shows_every_run_that_is_there():
    rows = index.overview()
    text = index.markdown(rows)
    assert all(f"({link})" in text for link in rows["link"] if link)
