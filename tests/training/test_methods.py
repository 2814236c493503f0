"""What a method is, when two are one training, and whether the health of a training says how it ended."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.losses.linear_prototypes import Comparison
from lib.training import hyper_dino, linear_prototypes
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.methods import Method, measured, points_at_rim
from lib.training.recipes import Recipe

RECIPE = Recipe("scaled", 4, 2)
X = np.random.default_rng(0).normal(size=(1, 20, 4)).astype(np.float32)
LABELS = np.arange(20) % 3
SCHEDULES = {hyper_dino: Schedule(epochs=3, batch_size=8), linear_prototypes: Episodes(epochs=3, batch_size=8, k=2)}


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_the_rim_is_the_last_hundredth_of_the_reach_in_every_ball(c):
    flat, cosine = hyper_dino.Settings(geometry=Euclidean()), linear_prototypes.Settings(Comparison("cosine"))
    mapper = hyper_dino.Settings(geometry=PoincareBall(c), delta=0.1)
    prototypes = linear_prototypes.Settings(Comparison("poincare", c))
    for head, inner, outer in ((mapper, 0.89, 0.892), (prototypes, 0.989, 0.991)):
        radius = torch.tensor([0.1, 0.6, inner, outer])[:, None] / c**0.5
        assert points_at_rim(head, torch.cat([radius, 0 * radius], dim=1)) == 25
    assert all(math.isnan(points_at_rim(head, torch.ones(2, 2))) for head in (flat, cosine))


def test_the_images_at_the_rim_are_counted_among_those_that_were_learnt_from():
    settings = linear_prototypes.Settings(Comparison("poincare"), hidden=0)
    network = settings.make(Recipe("scaled", 2, 2), seed=0)
    torch.nn.init.eye_(network.layers[0].weight)
    x = np.full((1, 8, 2), 0.1, dtype=np.float32)
    x[0, :2] = 100
    assert measured(settings, network, x[0], settings.lessons(x, LABELS[:8], Episodes(k=1), "fold 0"), [1.0]).rim == 25


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
