"""What the terms of the loss do to a margin; the formula itself is in test_every_loss.py."""

import pytest
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.losses.hyper_dino import ContrastiveLoss


def points(seed: int, n: int, d: int = 5, scale: float = 0.3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.rand(n, d, generator=generator, dtype=torch.float64)


def test_the_mean_distance_passes_a_gradient_only_if_not_detached():
    """d(loss)/dh of far-apart classes inside the margin: with a live mean the margin itself can shrink."""
    gradients = []
    for detach in (True, False):
        h = torch.tensor([[0.0, 0.0], [0.2, 0.0]], dtype=torch.float64, requires_grad=True)
        ContrastiveLoss(Euclidean(), norm_weight=0, detach_mean=detach)(h, torch.tensor([0, 1])).backward()
        gradients.append(h.grad[1, 0].item())
    # L = margin - d with margin = 0.5 + 0.1 d: slope in d is -1 when the mean is detached, -0.9 when it is not.
    assert gradients == pytest.approx([-1.0, -0.9])


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 0], [0]], ids=["no positive", "no negative", "one image"])
def test_a_batch_without_pairs_of_a_kind_gives_zero_there(labels):
    parts = ContrastiveLoss(PoincareBall(1.0)).parts(points(seed=5, n=len(labels)), torch.tensor(labels))
    assert (parts.positive.item() > 0, parts.negative.item() > 0) == (labels == [0, 0, 0], labels == [0, 1, 2])


def test_a_value_for_each_batch_is_as_good_as_a_loss_for_each():
    h, labels = torch.stack([points(seed=1, n=6), points(seed=2, n=6)]), torch.arange(6) % 3
    values = {"m0": [0.3, 0.9], "alpha": [0.0, 0.4], "norm_weight": [0.1, 0.0]}
    of_both = ContrastiveLoss(**{name: torch.tensor(pair, dtype=h.dtype) for name, pair in values.items()})
    each = [ContrastiveLoss(**{name: pair[i] for name, pair in values.items()})(h[i], labels).item() for i in (0, 1)]
    assert of_both(h, labels.expand(2, -1)).tolist() == pytest.approx(each, rel=1e-12)


def test_filling_up_changes_nothing_in_float32_with_many_dimensions():
    """As a sweep does it: 384 numbers, the last batch of an epoch filled up with copies of one image."""
    h, labels, loss = points(seed=15, n=40, d=384, scale=0.02).float(), torch.arange(40) % 8, ContrastiveLoss()
    alone, filled = h.clone().requires_grad_(), torch.cat([h, h[:1].repeat(24, 1)]).requires_grad_()
    expected = loss(alone, labels)
    got = loss(filled, torch.cat([labels, labels[:1].repeat(24)]), valid=torch.arange(64) < 40)
    assert got.item() == pytest.approx(expected.item(), rel=1e-6)
    (slope,), (slope_filled,) = torch.autograd.grad(expected, alone), torch.autograd.grad(got, filled)
    torch.testing.assert_close(slope_filled[:40], slope, rtol=1e-4, atol=1e-6 * slope.abs().max().item())
    assert (slope_filled[40:] == 0).all()


def test_class_numbers_may_be_large_and_have_gaps():
    h, loss = points(seed=17, n=6).float(), ContrastiveLoss(Euclidean())
    small, large = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([5, 5, 2**24 - 2, 2**24 - 2, 2**24 - 1, 2**24 - 1])
    assert loss(h, small) == loss(h, large)
