"""The index lists what params.yaml says should be there, and says of each what it is or needs."""

import pytest

from lib import paths
from lib.results import index, plan

SETTINGS = {
    "artefacts": {"stage": {"paper": "p", "notebook": "10_stage", "items": ["table", "figure_3"]}},
    "demo": {"stage": {"tissue": {"table": "table_2", "encoder": "texture"}}},
    "sample": {"stage": {"kather": {"table": "table_2", "encoder": "texture"}}},
    "paper": {"stage": {"bh40x": {"table": "table_3", "encoder": "dino_vits16"}}},
}


@pytest.fixture
def reports(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    return tmp_path


def test_every_run_of_every_profile_is_listed_and_nothing_else(reports):
    (reports / "p/sample/stale").mkdir(parents=True)
    (reports / "p/sample/stale/table_2.json").write_text("{}")
    rows = index.overview(SETTINGS)
    assert rows[["profile", "dataset", "name"]].to_numpy().tolist() == [
        ["demo", "tissue", "table_2"],
        ["demo", "tissue", "figure_3"],
        ["sample", "kather", "table_2"],
        ["sample", "kather", "figure_3"],
        ["paper", "bh40x", "table_3"],
        ["paper", "bh40x", "figure_3"],
    ]


def test_what_is_not_there_says_what_it_needs(reports):
    states = index.overview(SETTINGS).set_index(["dataset", "name"])["state"]
    assert states["kather", "table_2"] == "needs Kather 2016"
    assert states["bh40x", "figure_3"] == "needs BreakHis at 40X, weights of dino_vits16"


@pytest.mark.parametrize(("profile", "state"), [("demo", "demo"), ("sample", "real sample")])
def test_what_is_there_has_its_state_origin_and_link(reports, profile, state):
    dataset = next(iter(SETTINGS[profile]["stage"]))
    folder = reports / "p" / profile / dataset
    folder.mkdir(parents=True)
    (folder / "figure_3.png").touch()
    (folder / "figure_3.json").write_text(
        '{"title": "T", "images": "240 of 5,000", "encoder": "texture (156)", "parameters": {"c": 1.0}}'
    )
    row = index.overview(SETTINGS).set_index(["profile", "name"]).loc[(profile, "figure_3")]
    assert row[["state", "title", "images", "encoder", "parameters"]].tolist() == [
        state,
        "T",
        "240 of 5,000",
        "texture (156)",
        "c 1.0",
    ]
    assert row["link"] == f"p/{profile}/{dataset}/figure_3.png"
    assert f"[figure_3](p/{profile}/{dataset}/figure_3.png)" in index.markdown(index.overview(SETTINGS))


def test_the_committed_index_is_current():
    expected = index.markdown(index.overview())
    assert (paths.ROOT / "reports" / "index.md").read_text(encoding="utf-8") == expected


def test_the_plan_lists_stages_missing_data_weights_and_hours(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    text = plan.text("paper")
    assert f"Profile paper would run {len(plan.table('paper', index.params()))} stages" in text
    for dataset, facts in (("kather", "5,000 images, about 246 MB, CC BY 4.0"), ("bh400x", "1,820 images, about 4 GB")):
        assert f"| hyper_dino_retrieval@{dataset} |" in text
        assert f"needs {dataset}: " in text and facts in text
    assert "needs weights of DINO (dino_vits16): " in text and "needs weights of UNI2-h (uni2_h): " in text
    assert "about 87 MB" in text and "CC BY-NC-ND 4.0, gated" in text
    assert "make reproduce PROFILE=paper DATA=" in text


def test_the_plan_knows_what_is_here(monkeypatch, tmp_path):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    (tmp_path / "kather").mkdir()
    here = plan.table("paper", index.params()).set_index("stage")["here"]
    assert here["hyper_dino_retrieval@kather"] == here["hyper_dino_mapper@kather"] == "yes"
    assert set(here[[stage for stage in here.index if "@bh" in stage]]) == {"no"}


def test_a_notebook_without_images_is_planned_too():
    row = plan.table("demo", index.params()).set_index("stage").loc["hyper_dino_ball@all"]
    assert row[["dataset", "images", "here", "hours"]].tolist() == ["no images", "–", "yes", "–"]


def test_training_hours_follow_from_the_schedule():
    """12 mappers (2 from the scaled features, 5 each from PCA and NCA), 5 folds, 2 rules, 100 epochs of 32 batches."""
    settings = index.params()
    settings["plan"]["seconds_per_step"] = 0.002
    run = {"lengths": [5, 20, 32, "full"], "encoder": "x"}
    steps = 12 * 5 * 2 * 100 * 32
    assert plan.head_hours(run, 5000, 384, settings) == pytest.approx(steps * 0.002 / 3600)
    assert plan.head_hours(run | {"epochs": 10}, 5000, 384, settings) == pytest.approx(steps * 0.002 / 36000)
