"""What a method is, when two are one training, and whether the health of a training says how it ended."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from lib.geometry import Geometry, PoincareBall
from lib.losses.linear_prototypes import Comparison
from lib.training import hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.methods import Head, Method, measured
from lib.training.recipes import Recipe

RECIPE = Recipe("scaled", 4, 2)
X = np.random.default_rng(0).normal(size=(1, 20, 4)).astype(np.float32)
LABELS = np.arange(20) % 3
SCHEDULES = {hyper_dino: Schedule(epochs=3, batch_size=8), linear_prototypes: Episodes(epochs=3, batch_size=8, k=2)}


def mapper(geometry: Geometry, **options) -> hyper_dino.Settings:
    return hyper_dino.Settings(hidden=8, geometry=geometry, **options)


def prototypes(geometry: Geometry) -> linear_prototypes.Settings:
    comparison = {"euclidean": "euclidean", "sphere": "cosine", "poincare": "poincare"}[geometry.name]
    curved = isinstance(geometry, PoincareBall)
    return linear_prototypes.Settings(Comparison(comparison, *([geometry.c] if curved else [])), hidden=8)


def rim(head: Head, network: nn.Module, x: np.ndarray = X) -> float:
    schedule = Schedule() if isinstance(head, hyper_dino.Settings) else Episodes(k=2)
    lessons = head.lessons(x, LABELS[: x.shape[1]], schedule, "fold 0")
    return measured(head, network, x[0], lessons, [1.0]).rim


def at(network: nn.Module, share: float, scale: float) -> nn.Module:
    """The network, every image at this share of the radius; ``scale``: what its output is divided by before exp0."""
    with torch.no_grad():
        network.layers[-1].weight.zero_()
        network.layers[-1].bias.zero_()
        network.layers[-1].bias[0] = np.arctanh(share) * scale
    return network


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
@pytest.mark.parametrize(("share", "expected"), [(0.1, 0), (0.6, 0), (0.98, 0), (0.995, 100)])
def test_the_rim_is_the_last_hundredth_of_the_radius_in_every_ball(c, share, expected):
    for head, scale in ((mapper, 1), (prototypes, 2**0.5)):
        settings = head(PoincareBall(c))
        network = at(settings.make(RECIPE, seed=0), share, scale / c**0.5)
        reached = c**0.5 * settings.embed(network, torch.from_numpy(X[0])).norm(dim=-1)
        assert reached.detach().numpy() == pytest.approx(share, rel=1e-3)
        assert rim(settings, network) == expected


def test_the_share_at_the_rim_counts_images():
    settings = replace(prototypes(PoincareBall()), hidden=0)
    network = settings.make(Recipe("scaled", 2, 2), seed=0)
    with torch.no_grad():
        network.layers[0].weight.copy_(torch.eye(2))
        network.layers[0].bias.zero_()
    x = np.full((1, 8, 2), 0.1, dtype=np.float32)
    x[0, :2] = 100
    assert rim(settings, network, x) == 25


@pytest.mark.parametrize("paper", [hyper_dino, linear_prototypes], ids=lambda paper: paper.__name__)
@pytest.mark.parametrize("n_views", [1, 2])
def test_loss_and_steps_are_those_of_the_training(paper, n_views):
    """Two views are two rows of an image, but not two images; Hyper-DINO does not look at the second."""
    settings = paper.Settings(hidden=8)
    views = np.concatenate([X] * n_views)
    lessons = settings.lessons(views, LABELS, SCHEDULES[paper], "fold 0")
    health = measured(settings, settings.make(RECIPE, 0), X[0], lessons, [3.0, 2.0, 1.5])
    assert health.loss == 1.5
    assert health.steps == len(list(lessons.schedule.batches(torch.from_numpy(lessons.labels), seed=0))) == 3 * 3


def test_methods_that_differ_in_name_or_search_alone_are_one_training():
    one = Method("one", RECIPE, hyper_dino.Settings(), Schedule())
    same = [replace(one, name="two"), replace(one, search="cosine"), replace(one, head=hyper_dino.Settings())]
    other = [
        replace(one, recipe=Recipe("PCA", 4, 2)),
        replace(one, head=hyper_dino.Settings(m0=0.4)),
        replace(one, head=linear_prototypes.Settings()),
        replace(one, schedule=Schedule(epochs=5)),
        replace(one, augmented=False),
    ]
    assert {method.training for method in same} == {one.training}
    assert len({method.training for method in [one, *other]}) == 1 + len(other)
