"""The plan counts what trains encoder and head together: steps, batches and trainings, not images and epochs."""

import re

import pytest

from lib import paths
from lib.encoders import absent
from lib.pipeline import plan, profiles


@pytest.fixture
def settings():
    """Speeds and seconds by hand: 14 images a second forward, 360 seconds of the demo."""
    found = profiles.settings()
    found["plan"]["images_per_second"] = {"dino_vits16": 14, "efficientnet_lite0_96px": 100, "slow": 2, "slower": 1}
    found["plan"]["demo_seconds"] = {"hyp_vit_retrieval": 360.0}
    return found


def test_training_end_to_end_takes_three_times_as_long_as_its_images(settings):
    run = {"network": "dino_vits16", "steps": 25_000, "n_classes": 450, "samples": 2, "n_trainings": 3}
    run |= {"end_to_end_rates": [1e-5], "n_choosing": 1, "also": []}
    # 25,000 steps of 900 images, 3 trainings of Hyp and 3 of Sph, each image thrice, 14 a second.
    seconds = 25_000 * 900 * 6 * 3 / 14
    assert plan.together_seconds("hyp_vit_retrieval", run, 1000, settings) == pytest.approx(seconds)
    demo = next(iter(profiles.runs("demo")["hyp_vit_retrieval"].values()))
    n = settings["drawn"]["tissue"]["n_tiles"]
    # Of the demo's 360 seconds 12 steps x 24 images x (3 + 1 at another rate) x 3 / 100 are the same in small, with Hyp
    # and Sph, and with Hyp on the untrained network.
    assert plan.together_seconds("hyp_vit_retrieval", demo, 1000, settings) == pytest.approx(103.68)
    assert plan.scaled_hours("hyp_vit_retrieval", demo, n, settings) == pytest.approx(0.1)
    hours = plan.scaled_hours("hyp_vit_retrieval", demo | run, 2 * n, settings)
    assert hours == pytest.approx((2 * (360 - 103.68) + seconds) / 3600)


def test_further_networks_are_trained_at_their_own_speed(settings):
    run = {"network": "dino_vits16", "steps": 10, "n_classes": 7, "samples": 2, "n_trainings": 3}
    run |= {"end_to_end_rates": [1e-5, 1e-4], "beside": ["slow"], "also": ["slower", "slow-untrained"], "n_choosing": 1}
    # 10 steps x 14 images x (3 trainings + 1 at the other rate); Hyp and Sph at 14 and 2 a second, Hyp at 1 and 2.
    seconds = 3 * 10 * 14 * 4 * (2 / 14 + 3 / 2 + 1 / 1)
    assert plan.together_seconds("hyp_vit_retrieval", run, 1000, settings) == pytest.approx(seconds)
    thrice = run | {"n_choosing": 3}  # three trainings, then 2 more at this rate and 3 at the other
    assert plan.together_seconds("hyp_vit_retrieval", thrice, 1000, settings) == pytest.approx(seconds * 8 / 4)
    alone = thrice | {"end_to_end_rates": []}  # the published rate alone, once
    assert plan.together_seconds("hyp_vit_retrieval", alone, 1000, settings) == pytest.approx(seconds * 3 / 4)
    # Features beside those of the encoder are no networks that notebook 23 or the label tree trains.
    tree = {"network": "slow", "beside": ["slower"], "steps": 5, "end_to_end_batch": 2, "n_trainings": 1}
    assert plan.together_seconds("label_tree_results", tree, 1000, settings) == pytest.approx(3 * 5 * 4 * 2 / 2)


def test_every_setting_that_is_trained_end_to_end_counts(settings):
    run = {"network": "dino_vits16", "steps": 10, "n_classes": 7, "samples": 2, "n_trainings": 3, "beside": ["slow"]}
    three = run | {"end_to_end": ["default", "c=1", "head_dim=16"]}
    seconds = 3 * 10 * 14 * 9 / 14
    assert plan.together_seconds("hyp_vit_hyperparameters", three, 1000, settings) == pytest.approx(seconds)
    assert plan.together_seconds("hyp_vit_hyperparameters", run | {"end_to_end": []}, 1000, settings) == 0


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
    *missing, here = map(absent.wanting, names)
    assert here is None
    assert [re.search(r"No weights for (\S+) \(about \d+ MB\)", how)[1] for how in missing] == [
        "resnet50.a1_in1k",
        "vit_tiny_patch16_224.augreg_in21k",
    ]


def test_two_crops_of_the_label_tree_are_two_images(settings):
    run = {"network": "dino_vits16", "steps": 700, "end_to_end_batch": 10, "n_trainings": 3}
    # 700 steps x 10 images in two crops x 3 trainings x 2 losses x 3 / 14.
    assert plan.together_seconds("label_tree_results", run, 1000, settings) == pytest.approx(18_000)
    assert plan.together_seconds("label_tree_results", run | {"network": "none"}, 1000, settings) == 0


def test_a_notebook_without_a_training_end_to_end_adds_nothing(settings):
    for stage in ("hyp_vit_disk", "hyper_dino_pretraining", "acir_ablations"):
        assert plan.together_seconds(stage, {}, 1000, settings) == 0


def test_epochs_end_to_end_grow_with_the_images(settings):
    run = {"network": "dino_vits16", "end_to_end_epochs": 40, "n_trainings": 5}
    # 40 epochs of 700 images, 5 trainings of ACIR and its two opponents, each image thrice, 14 a second.
    assert plan.together_seconds("acir_ablations", run, 700, settings) == pytest.approx(40 * 700 * 15 * 3 / 14)
