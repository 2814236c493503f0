"""The push of one class on another does not depend on how many there are, and the rest of the loss is Hyper-DINO's."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.hyper_dino import ContrastiveLoss
from lib.papers.beyond.factors import push
from lib.training import hyper_dino
from lib.training.experiment import fit
from lib.training.fit import Schedule
from lib.training.recipes import Recipe
from lib.training.splits import splits

SCHEDULE = Schedule(epochs=2, batch_size=32)
RECIPE = Recipe("raw", 6, 3)


@pytest.mark.parametrize("geometry", [PoincareBall(), Euclidean(), Sphere()], ids=str)
def test_the_loss_is_what_loops_say(geometry):
    h = torch.randn(9, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / 5
    h = h / h.norm(dim=-1, keepdim=True) if isinstance(geometry, Sphere) else h
    labels = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2])
    distances = {(i, j): geometry.pairwise(h[i : i + 1], h[j : j + 1]).item() for i in range(9) for j in range(9)}
    pairs = [pair for pair in distances if pair[0] != pair[1]]
    margin = 0.5 + 0.1 * np.mean([distances[pair] for pair in pairs])
    pulled = [distances[i, j] for i, j in pairs if labels[i] == labels[j]]
    missing = [max(0, margin - distances[i, j]) for i, j in pairs if labels[i] != labels[j]]
    wanted = np.mean(pulled) + 2 * np.mean(missing) + 1e-3 * h.norm(dim=-1).mean().item()
    assert push.EvenPush(ContrastiveLoss(geometry), 2.0)(h, labels).item() == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3, 9])
def test_a_class_is_pushed_from_its_look_alike_as_hard_as_with_two_classes(n_classes):
    """Classes 0 and 1 look alike; all others lie beyond the margin."""
    centres = torch.zeros(n_classes, 2, dtype=torch.float64)
    centres[2:, 0] = 100 * torch.arange(2, n_classes)
    labels = torch.arange(n_classes).repeat_interleave(4)
    h = centres[labels] + torch.randn(len(labels), 2, dtype=torch.float64) / 50
    one, other = h[:4].clone().requires_grad_(), h[4:8]
    loss = ContrastiveLoss(Euclidean(), alpha=0.0, norm_weight=0.0)
    far = torch.cat([one, other, h[8:]])
    even, printed = push.EvenPush(loss, n_classes - 1.0)(far, labels), loss(far, labels)
    near = torch.cat([one, other])
    (pushed,) = torch.autograd.grad((even - printed) / max(n_classes - 2, 1), one)  # L_neg alone
    (with_two,) = torch.autograd.grad(loss(near, labels[:8]) - _pull(near, labels[:8]), one)
    if n_classes == 2:
        assert even == printed
    else:  # a class has the weight 1/C in L_pos, so in proportion to it the push is the same
        assert torch.allclose((n_classes - 1) * n_classes * pushed, 2 * with_two)


def _pull(h: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    distance, same = Euclidean().pairwise(h, h), labels[:, None] == labels
    return distance[same].sum() / (same.sum() - len(h))


def test_the_weight_comes_from_the_classes_that_are_learnt_from():
    labels = np.arange(60) % 5
    even = push.EvenSettings()
    lessons = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), labels, SCHEDULE, "here")
    assert lessons.loss == push.EvenPush(even.loss, 4.0)
    two = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), np.arange(60) % 2, SCHEDULE, "here")
    h = torch.randn(8, 3) / 5
    assert two.loss(h, torch.arange(8) % 2) == even.loss(h, torch.arange(8) % 2)
    uneven = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), np.minimum(labels, 1), SCHEDULE, "here")
    assert uneven.loss.weight == pytest.approx(60**2 / (12**2 + 48**2) - 1)  # pairs of two classes over those of one


def test_flat_and_ball_are_trained_with_it_and_end_elsewhere_than_the_printed_heads():
    labels = np.arange(60) % 5
    x = (np.random.default_rng(0).normal(size=(60, 6)) + 2 * np.eye(6)[labels]).astype(np.float32)
    settings = hyper_dino.Settings(hidden=8, half=False)
    even, split = push.methods(RECIPE, settings, SCHEDULE), splits(np.arange(60) % 3, seed=0)[:1]
    printed = [replace(one, head=_printed(one.head)) for one in even]
    assert [one.name for one in even] == [push.EVEN_FLAT, push.EVEN_BALL, push.LONG_BALL, push.LONG_EVEN]
    assert [one.schedule.epochs for one in even] == [2, 2, 8, 8]
    assert not isinstance(even[2].head, push.EvenSettings)
    for one, other in zip(even[:2], printed[:2], strict=True):
        pushed, plain = (fit(x, labels, [method], split, workers=1)[method.name][0] for method in (one, other))
        assert (pushed.embed(x) != plain.embed(x)).any() and np.isfinite(pushed.history).all()


def _printed(head: push.EvenSettings) -> hyper_dino.Settings:
    return hyper_dino.Settings(**vars(head))
