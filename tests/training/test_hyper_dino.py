"""Hyper-DINO's head: settings reach the mapper and the loss, and embeddings are those that would be stored."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.hyper_dino import contrastive
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe

X = torch.randn(90, 6, generator=torch.Generator().manual_seed(0))


def test_the_defaults_are_the_published_ones():
    """Section 2.2: 256 hidden units, curvature -1; section 2.3: m0 = 0.5, alpha = 0.1, lambda = 1e-3; float16."""
    settings = Settings()
    assert (settings.hidden, settings.geometry, settings.half) == (256, PoincareBall(1.0), True)
    assert (settings.m0, settings.alpha, settings.norm_weight) == (0.5, 0.1, 1e-3)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"m0": 0.9, "alpha": 0.3},
        {"norm_weight": 0.1, "self_pairs": True},
        {"detach_mean": False, "alpha": 0.5},
        {"geometry": Sphere()},
    ],
    ids=str,
)
def test_settings_reach_the_loss(options):
    h = (0.2 * torch.randn(12, 4, generator=torch.Generator().manual_seed(0))).requires_grad_()
    labels, valid = torch.arange(12) % 3, torch.arange(12) < 10
    changed = dict(options)
    expected = contrastive(h, labels, changed.pop("geometry", PoincareBall(1.0)), valid=valid, **changed).total
    got = Settings(**options).loss(h, labels, valid)
    assert torch.equal(got, expected)
    assert torch.equal(*(torch.autograd.grad(value, h)[0] for value in (got, expected)))
    plain = Settings().loss(h, labels, valid)
    assert (
        torch.autograd.grad(plain, h)[0] != torch.autograd.grad(Settings(**options).loss(h, labels, valid), h)[0]
    ).any() == bool(options)


def test_settings_reach_the_mapper():
    mapper = Settings(hidden=11, geometry=PoincareBall(0.5), delta=0.2).make(Recipe("PCA", 4, 2), seed=3)
    assert [tuple(weight.shape) for weight in mapper.parameters()] == [(11, 4), (11,), (2, 11), (2,)]
    assert (mapper.geometry, mapper.delta) == (PoincareBall(0.5), 0.2)
    same, other = (Settings(hidden=11).make(Recipe("PCA", 4, 2), seed=seed) for seed in (3, 4))
    assert torch.equal(mapper.layers[0].weight, same.layers[0].weight)
    assert not torch.equal(mapper.layers[0].weight, other.layers[0].weight)


@pytest.mark.parametrize("c", [0.25, 1.0, 4.0])
def test_float16_embeddings_are_projected_again(c):
    """Rounding alone moves points of norm 1 - 1e-4 onto the rim and beyond (HD-10)."""
    settings = Settings(geometry=PoincareBall(c), delta=1e-4)
    head = settings.make(Recipe("PCA", 32, 32), seed=0)
    x = torch.from_numpy(50 * np.random.default_rng(0).normal(size=(500, 32)).astype(np.float32))
    with torch.no_grad():
        rounded = head(x).half().float()
    assert (c**0.5 * rounded.norm(dim=-1)).max() > 1 - 5e-5
    embedding = settings.embed(head, x)
    assert embedding.dtype == torch.float32
    assert (c**0.5 * embedding.norm(dim=-1)).max() <= 1 - 1e-4 + 1e-6
    inside = c**0.5 * rounded.norm(dim=-1) < 1 - 1e-4 - 1e-6
    assert 0 < inside.sum() < 500
    assert torch.equal(embedding[inside], rounded[inside])


def test_without_half_embeddings_are_those_of_the_head():
    settings = Settings(half=False)
    head = settings.make(Recipe("PCA", 6, 2), seed=0)
    with torch.no_grad():
        assert torch.equal(settings.embed(head, X), head(X))


def test_flat_embeddings_that_float16_cannot_hold_are_refused():
    settings = Settings(geometry=Euclidean())
    head = settings.make(Recipe("PCA", 6, 2), seed=0)
    with pytest.raises(InputError, match=r"embeddings are as large as .*, but float16 ends at 65,504: .*half=False"):
        settings.embed(head, 1e7 * X)
    assert replace(settings, half=False).embed(head, 1e7 * X).isfinite().all()


@pytest.mark.parametrize("half", [True, False])
def test_without_a_network_values_stay_as_they_are(half):
    assert Settings(half=half).embed(None, X) is X


@pytest.mark.parametrize("delta", [1e-3, 0.2])
def test_no_embedding_is_beyond_the_reach_and_some_are_there(delta):
    settings = Settings(delta=delta)
    norms = settings.embed(settings.make(Recipe("PCA", 6, 2), 0), 1e4 * X).norm(dim=-1)
    assert norms.max().item() == pytest.approx(settings.reach, abs=1e-6) == 1 - delta


def test_the_mapper_learns_from_the_images_themselves_with_its_own_loss():
    settings, schedule, views, labels = Settings(m0=0.7), Schedule(), np.stack([X, X + 1]), np.arange(90) % 3
    lessons = settings.lessons(views, labels, schedule, "fold 0")
    assert np.array_equal(lessons.x, X) and lessons.labels is labels
    assert (lessons.loss, lessons.schedule) == (settings.loss, schedule)
