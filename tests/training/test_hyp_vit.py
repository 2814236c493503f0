"""Hyp-ViT's head on frozen features learns what it should, and begins and ends where its settings say."""

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.training import experiment
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings, flat, spherical
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(8), 20)
X = (RNG.normal(size=(160, 12)) + 3 * RNG.normal(size=(8, 12))[LABELS]).astype(np.float32)
SPLIT = Split(0, np.flatnonzero(LABELS < 4), np.flatnonzero(LABELS >= 4), seed=3)
SCHEDULE = ByClass(epochs=10, batch_size=8, lr=1e-2, samples=2)


def fitted(settings: Settings):
    method = Method("head", Recipe("raw", 12, 4), settings, SCHEDULE)
    return experiment.fit(X, LABELS, [method], [SPLIT], workers=1)["head"][0]


@pytest.mark.parametrize("settings", [Settings(), spherical(Settings()), flat(Settings())], ids=["hyp", "sph", "flat"])
def test_it_learns(settings):
    one = fitted(settings)
    assert one.history[-1] < 0.5 * one.history[0] and one.health.steps == 10 * 10


def test_begun_inside_the_untrained_outputs_have_the_norm():
    settings = Settings(start_norm=0.7)
    network = settings.make(Recipe("raw", 12, 4), seed=0)
    settings.start(network, X)
    assert network.linear(torch.from_numpy(X)).norm(dim=-1).mean().item() == pytest.approx(0.7, rel=1e-5)
    untouched = Settings().make(Recipe("raw", 12, 4), seed=0)
    before = untouched.linear.weight.clone()
    Settings().start(untouched, X)
    assert torch.equal(before, untouched.linear.weight)


def test_the_flat_loss_is_that_of_a_ball_without_curvature():
    labels = torch.arange(6) // 2
    h = torch.randn(6, 3, generator=torch.Generator().manual_seed(0))
    values = []
    for settings in (Settings(PoincareBall(1e-12)), flat(Settings())):
        lessons = settings.lessons(h.numpy()[None], labels.numpy(), SCHEDULE, "here")
        values.append(lessons.loss(h, labels))
    torch.testing.assert_close(*values)
