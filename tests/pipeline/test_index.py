"""The index shows what lies in reports/ and what the runs of params.yaml still need; the plan says how to get it."""

import json

import pandas as pd
import pytest

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.pipeline import index, plan, profiles

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
    index.numbered.cache_clear()
    yield tmp_path
    index.numbered.cache_clear()


def save(reports, profile: str, dataset: str, *names: str) -> None:
    for name in names:
        file = reports / "p" / profile / dataset / "stage" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.with_suffix(".md").touch()
        about = {"title": f"Paper, MAP@k on {dataset}", "images": "240 of 5,000", "encoder": "texture (156)"}
        key = {"paper": "p", "profile": profile, "dataset": dataset, "notebook": "13_p_stage", "name": name}
        file.write_text(json.dumps(about | key))


def test_what_is_there_is_listed_from_the_files_alone(reports):
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "sample", "kather", "table_2")
    rows = index.overview().query("link != ''")
    assert rows[["profile", "dataset", "name", "link"]].to_numpy().tolist() == [
        ["demo", "tissue", "table_2", "p/demo/tissue/stage/table_2.md"],
        ["sample", "kather", "table_2", "p/sample/kather/stage/table_2.md"],
        ["demo", "tissue", "figure_more", "p/demo/tissue/stage/figure_more.md"],
    ]


def test_no_reports_at_all_make_an_empty_index(reports):
    assert index.overview().empty
    assert "# Every table and figure" in index.markdown(index.overview())


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


def test_a_paper_is_one_matrix_and_what_is_missing_is_folded(reports):
    save(reports, "demo", "tissue", "table_2", "figure_more")
    save(reports, "sample", "kather", "table_2")
    text = index.markdown(index.overview())
    assert "|  | what it shows | demo | Kather 2016 | notebook |" in text
    assert (
        "| Table 2 | MAP@k | [demo](p/demo/tissue/stage/table_2.md) | [sample](p/sample/kather/stage/table_2.md) |"
        in text
    )
    assert "| Figure: more | MAP@k | [demo](p/demo/tissue/stage/figure_more.md) | – |" in text
    assert "- needs BreakHis at 40X, weights of dino_vits16 (profile paper): Table 3 and 1 of the tables" in text


def test_own_images_have_a_list_of_their_own(reports):
    save(reports, "demo", "tissue", "table_2")
    save(reports, "own", "eyes", "table_2")
    save(reports, "own", "birds", "table_2")
    assert "eyes" not in index.markdown(index.overview())
    listed = index.write_own("eyes").read_text()
    assert "(p/own/eyes/stage/table_2.md)" in listed and "birds" not in listed


def test_the_committed_index_is_current():
    expected = index.markdown(index.overview())
    assert (paths.ROOT / "reports" / "index.md").read_text(encoding="utf-8") == expected


def test_a_search_for_a_table_of_the_paper_finds_it():
    text = (paths.ROOT / "reports" / "index.md").read_text(encoding="utf-8")
    assert "| Table 5, BreakHis at 200X |" in text and "| Fig. 3 |" in text


@pytest.mark.parametrize("profile", ["demo", "sample", "paper"])
def test_the_plan_counts_every_stage_and_adds_up_all_hours(profile, tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    rows, text = plan.table(profile, profiles.settings()), plan.text(profile)
    runs = sum(map(len, profiles.runs(profile).values()))
    blocks = [profiles.profile(profile)[block] for block in ("features", "features_more")]
    assert len(rows) == runs + sum(len(b["datasets"]) * len(b["encoders"]) for b in blocks)
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


def test_training_hours_follow_from_the_schedule():
    """12 mappers (2 from the scaled features, 5 each from PCA and NCA), 5 folds, 2 rules, 100 epochs of 32 batches."""
    settings = profiles.settings()
    settings["plan"]["seconds_per_step"] = 0.002
    run = {"lengths": [5, 20, 32, "full"], "encoder": "x"}
    steps = 12 * 5 * 2 * 100 * 32
    assert plan.head_hours(run, 5000, 384, settings) == pytest.approx(steps * 0.002 / 3600)
    assert plan.head_hours(run | {"epochs": 10}, 5000, 384, settings) == pytest.approx(steps * 0.002 / 36000)


def test_other_hours_grow_with_images_and_epochs():
    settings = profiles.settings()
    settings["plan"]["demo_seconds"] = {"hyper_dino_mapper": 36.0}
    demo = next(iter(profiles.runs("demo")["hyper_dino_mapper"].values()))
    n = settings["tissue"]["n_tiles"]
    assert plan.scaled_hours("hyper_dino_mapper", demo, n, settings) == pytest.approx(0.01)
    twice = {"epochs": 2 * demo["epochs"]}
    assert plan.scaled_hours("hyper_dino_mapper", twice, 3 * n, settings) == pytest.approx(0.06)


def test_the_matrix_shows_every_run_that_is_there():
    rows = index.overview()
    shown = pd.concat([index.matrix(block) for _, block in rows.groupby("paper", sort=False)]).astype(str)
    text = "\n".join(shown.to_numpy().ravel())
    assert all(f"({link})" in text for link in rows["link"] if link)
