"""Prototypes of the margin between branches (Equations 9 and 10); Equation 11 is in test_every_loss.py."""

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere, karcher
from lib.geometry.means import frechet_mean
from lib.losses import level_margin
from lib.losses.label_tree import distance
from lib.taxonomy import from_paths

TREE = from_paths("small", ["a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/5"])
LEAVES = torch.tensor([0, 1, 2, 3, 3, 4]).repeat(2)
Z = 0.4 * torch.randn(12, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)


def d(geometry, x, y):
    return distance(geometry, x[None], y[None]).item()


def test_prototypes_move_in_training_only():
    lam = level_margin.LevelAwareMargin(TREE, 3, rate=0.2).double()
    lam(Z, LEAVES)
    for training in (False, True):
        before = lam.train(training).prototypes_2.clone()
        lam(-Z, LEAVES)
        assert torch.equal(before, lam.prototypes_2) != training


def test_the_moving_average_is_equation_9_and_in_the_ball_equation_10():
    old, new = torch.tensor([0.1, 0.2]).double(), torch.tensor([[0.3, -0.1], [0.2, 0.4]]).double()
    both, own = torch.stack([old, -old]), torch.tensor([0, 0])
    flat = level_margin.moved(both, new, own, Sphere(), 0.25)
    assert torch.allclose(flat[0], 0.75 * old + 0.25 * new.mean(0)) and torch.equal(flat[1], -old)
    ball = PoincareBall(0.8)
    towards, still = level_margin.moved(both, new[:1], own[:1], ball, 0.25)
    assert ball.between(old, towards).item() == pytest.approx(0.25 * ball.between(old, new[0]).item())
    assert torch.equal(still, -old)
    at = old
    for _ in range(60):
        at = level_margin.moved(at[None], new, own, ball, 1.0)[0]
    assert torch.allclose(at, frechet_mean(new, 0.8), atol=1e-7)


def test_prototypes_have_no_gradient_and_begin_with_their_first_image():
    z, lam, few = Z.clone().requires_grad_(), level_margin.LevelAwareMargin(TREE, 3, Sphere()), LEAVES == 0
    assert lam(z[few], LEAVES[few]).item() == 0
    assert lam.seen_2.sum() == 1
    lam(z, LEAVES).backward()
    assert lam.seen_2.all() and not lam.prototypes_2.requires_grad and z.grad.isfinite().all()


@pytest.mark.parametrize(
    ("weights", "message"),
    [([1.0], "1 weights for the 2 levels"), ([1.0, -1.0], r"weights\[1\] = -1.0 cannot be used"), (2.0, "a list of")],
)
def test_weights_without_meaning_are_refused(weights, message):
    with pytest.raises(InputError, match=message):
        level_margin.LevelAwareMargin(TREE, 3, weights=weights)


def test_a_margin_can_be_zero_only_if_prototypes_are_twice_as_far_apart():  # LT-12
    z, known = torch.tensor([[0.7]]), torch.ones(2, dtype=torch.bool)
    found = level_margin.hinge(z, torch.tensor([0]), torch.tensor([[0.0], [1.0]]), known, Euclidean(), 0.2)
    assert found.item() == pytest.approx(0.6)


def test_a_class_that_ends_early_is_no_prototype():
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0], [-0.6, 0.8]]).double()
    leaves = torch.arange(5)
    uneven = from_paths("uneven", ["a", "b/1", "b/2", "c/3", "c/4"])
    lam = level_margin.LevelAwareMargin(uneven, 2, Sphere(), margin=0.9).double()
    centres = {1: (z[1] + z[2]) / 2, 2: (z[3] + z[4]) / 2}
    hinges = [
        max(0.0, d(Sphere(), row, centres[own]) - d(Sphere(), row, centres[3 - own]) + 0.9)
        for row, own in zip(z[1:], (1, 1, 2, 2), strict=True)
    ]
    assert lam(z, leaves).item() == pytest.approx(sum(hinges) / 5, rel=1e-6)
    assert lam(z[:1], leaves[:1]).item() == 0 and int(lam.seen_1.sum()) == 2


def test_a_row_whose_prototype_was_never_seen_counts_for_nothing_in_evaluation():
    margin = level_margin.LevelAwareMargin(TREE, 3).double()
    ancestors = torch.as_tensor(TREE.ancestor_codes(1))[LEAVES]
    known = ancestors < ancestors.max()
    margin(Z[known], LEAVES[known])
    margin.eval()
    alone = margin(Z[known], LEAVES[known]) * known.sum()
    assert margin(Z, LEAVES).item() == pytest.approx(alone.item() / known.sum().item(), rel=1e-9)


@pytest.mark.parametrize("geometry", [Sphere(), PoincareBall(1.0)])
def test_prototypes_that_move_together_go_where_each_goes_alone(geometry):
    generator = torch.Generator().manual_seed(5)
    at, points = (0.3 * torch.randn(n, 3, generator=generator).double() for n in (4, 9))
    nodes = torch.tensor([0, 2, 2, 0, 3, 2, 3, 3, 0])
    together = level_margin.moved(at, points, nodes, geometry, 0.4)
    for node in (0, 2, 3):
        own = points[nodes == node]
        if isinstance(geometry, PoincareBall):
            alone = karcher.step(geometry, at[node], own, 0.4)
        else:
            alone = 0.6 * at[node] + 0.4 * own.mean(0)
        assert torch.allclose(together[node], alone, atol=1e-12)
    assert torch.equal(together[1], at[1])
