"""The plan counts what trains encoder and head together: steps, batches and trainings, not images and epochs."""

import re

import pytest

from lib import paths
from lib.datasets.catalogue import DATASETS
from lib.encoders import zoo
from lib.errors import InputError
from lib.pipeline import plan, profiles


@pytest.fixture
def settings():
    """Speeds and seconds by hand: 14 images a second forward, 360 seconds of the demo."""
    found = profiles.settings()
    found["plan"]["images_per_second"] = {"dino_vits16": 14, "efficientnet_lite0_96px": 100, "slow": 2, "slower": 1}
    found["plan"]["demo_seconds"]["hyp_vit_retrieval"] = 360.0
    return found


HYP_VIT, SETTINGS, TREE = "hyp_vit_retrieval", "hyp_vit_hyperparameters", "label_tree_results"
STEPS = {"network": "dino_vits16", "steps": 10, "n_classes": 7, "samples": 2, "n_trainings": 3, "n_choosing": 1}
FURTHER = {"end_to_end_rates": [1e-5, 1e-4], "beside": ["slow"], "also": ["slower", "slow-untrained"]}
CROPS = {"network": "dino_vits16", "steps": 700, "end_to_end_batch": 10, "n_trainings": 3}
SLOW = {"network": "slow", "beside": ["slower"], "steps": 5, "end_to_end_batch": 2, "n_trainings": 1}
EPOCHS = {"network": "dino_vits16", "end_to_end_epochs": 40, "n_trainings": 5}
EACH = 3 * 10 * 14 * (2 / 14 + 3 / 2 + 1 / 1)
"""Seconds of one training each: ten steps of 14 images, each thrice; at 14 and 2 a second twice, at 1 and 2 once."""


@pytest.mark.parametrize(
    ("stage", "run", "seconds"),
    [
        # three trainings of Hyp and three of Sph
        (HYP_VIT, STEPS | {"end_to_end_rates": [1e-5], "also": []}, 3 * 10 * 14 * 6 / 14),
        (HYP_VIT, STEPS | FURTHER, EACH * (3 + 1)),  # one at the other rate
        (HYP_VIT, STEPS | FURTHER | {"n_choosing": 3}, EACH * (3 + 2 + 3)),  # 2 more at this rate and 3 at the other
        (HYP_VIT, STEPS | FURTHER | {"n_choosing": 3, "end_to_end_rates": []}, EACH * 3),  # the published rate, once
        (SETTINGS, STEPS | {"beside": ["slow"], "end_to_end": ["default", "c=1", "head_dim=16"]}, 3 * 10 * 14 * 9 / 14),
        # what stands beside is no network that it trains
        (SETTINGS, STEPS | {"beside": ["slow"], "end_to_end": []}, 0),
        (TREE, SLOW, 3 * 5 * 4 * 2 / 2),
        (TREE, CROPS, 700 * 10 * 2 * 3 * 2 * 3 / 14),  # two crops, three trainings of two losses
        (TREE, CROPS | {"network": "none"}, 0),
        ("acir_ablations", EPOCHS, 40 * 700 * 15 * 3 / 14),  # of 700 images; ACIR and its two opponents
    ],
)
def test_training_end_to_end_counts_steps_batches_and_trainings_three_times_as_long_as_their_images(
    settings, stage, run, seconds
):
    assert plan.together_seconds(stage, run, 700, settings) == pytest.approx(seconds)


def test_what_is_trained_end_to_end_grows_with_its_steps_and_the_rest_with_the_images(settings):
    demo = next(iter(profiles.runs("demo")[HYP_VIT].values()))
    n = settings["drawn"]["tissue"]["n_tiles"]
    # Of the demo's 360 seconds 12 steps x 24 images x (3 + 1 at another rate) x 3 / 100 are the same in small, with Hyp
    # and Sph, and with Hyp on the untrained network.
    assert plan.together_seconds(HYP_VIT, demo, 1000, settings) == pytest.approx(103.68)
    assert plan.scaled_hours(HYP_VIT, demo, n, settings) == pytest.approx(0.1)
    run = demo | STEPS | {"end_to_end_rates": [1e-5], "beside": [], "also": [], "steps": 25_000}
    seconds = 25_000 * 14 * 6 * 3 / 14
    hours = plan.scaled_hours(HYP_VIT, run, 2 * n, settings)
    assert hours == pytest.approx((2 * (360 - 103.68) + seconds) / 3600)


def test_weights_that_a_run_needs_are_announced_whatever_parameter_names_them(monkeypatch, tmp_path):
    """Those of timm by its own names as well; one that two names mean is told once; what is here needs no word."""
    monkeypatch.setattr(paths, "WEIGHTS", tmp_path)
    (tmp_path / "vit_small_patch8_224.dino.safetensors").touch()
    run = {"encoder": "texture", "beside": ["vit_tiny_patch16_224.augreg_in21k", "demo_vit"], "network": "none"}
    others = run | {"network": "resnet50.a1_in1k", "also": ["vit_small_patch8_224.dino", "resnet18.a1_in1k-untrained"]}
    content = profiles.profile("demo") | {"runs": {"hyp_vit_retrieval": {"cub": run, "cars": others}}}
    content |= {"views": {"cub": "resnet50_a1"}}
    monkeypatch.setattr(profiles, "profile", lambda name: content)
    names = ["resnet50_a1", "vit_tiny_patch16_224.augreg_in21k", "vit_small_patch8_224.dino"]
    assert plan.backbones("demo") == names
    *missing, here = map(zoo.wanting, names)
    assert here is None
    assert [re.search(r"No weights for (\S+) \(about \d+ MB\)", how)[1] for how in missing] == [
        "resnet50.a1_in1k",
        "vit_tiny_patch16_224.augreg_in21k",
    ]


def test_the_plan_of_a_gpu_lists_all_its_stages_in_their_order():
    content, text = profiles.profile("gpu"), plan.text("gpu")
    stages = {f"{stage}@{name}" for stage, runs in content["runs"].items() for name in runs}
    assert sorted(content["order"]) == sorted(stages)
    assert re.findall(r"^\d+\. (\S+)$", text, re.M) == content["order"]


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


def test_a_notebook_that_nobody_timed_is_named_and_the_others_all_are_timed():
    settings = profiles.settings()
    assert settings["plan"]["demo_seconds"].keys() == profiles.notebooks().keys() - {"start_here"}
    with pytest.raises(InputError, match=r"plan\.demo_seconds has no hyp_vit_colours"):
        plan.demo_seconds("hyp_vit_colours", settings)


def test_hours_grow_with_images_epochs_and_lengths():
    settings = profiles.settings()
    settings["plan"]["demo_seconds"]["hyper_dino_mapper"] = 36.0
    demo = next(iter(profiles.runs("demo")["hyper_dino_mapper"].values()))
    n = settings["drawn"]["tissue"]["n_tiles"]
    assert plan.scaled_hours("hyper_dino_mapper", demo, n, settings) == pytest.approx(0.01)
    twice = {"epochs": 2 * demo["epochs"]}
    assert plan.scaled_hours("hyper_dino_mapper", twice, 3 * n, settings) == pytest.approx(0.06)
    longer = demo | {"lengths": [8, 16]}
    assert plan.scaled_hours("hyper_dino_mapper", longer, n, settings) == pytest.approx(0.02)
