"""Hyper-DINO's head: settings reach the mapper and the loss, and embeddings are those that would be stored."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe

X = torch.randn(90, 6, generator=torch.Generator().manual_seed(0))


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


def test_flat_embeddings_that_float16_cannot_hold_are_refused():
    settings = Settings(geometry=Euclidean())
    head = settings.make(Recipe("PCA", 6, 2), seed=0)
    with pytest.raises(InputError, match=r"embeddings are as large as .*, but float16 ends at 65,504: .*half=False"):
        settings.embed(head, 1e7 * X)
    assert replace(settings, half=False).embed(head, 1e7 * X).isfinite().all()


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
