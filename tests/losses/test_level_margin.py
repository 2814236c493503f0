"""The margin between branches is Equations 9 to 11, level by level and prototype by prototype."""

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere, karcher
from lib.geometry.means import frechet_mean
from lib.losses import level_margin
from lib.losses.label_tree import distance
from lib.taxonomy import from_paths

TREE = from_paths("small", ["a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/5"])
PATHS = [leaf.split("/") for leaf in TREE.leaves]
GEOMETRIES = [Sphere(), PoincareBall(1.0), PoincareBall(0.3)]


def d(geometry, x, y):
    return distance(geometry, x[None], y[None]).item()


@pytest.mark.parametrize("weights", [None, (1.5, 0.25)])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_the_margin_level_by_level(batch, geometry, weights):
    z, leaves, images = batch
    z = geometry.project(geometry.exp0(z))
    lam = level_margin.LevelAwareMargin(TREE, 3, geometry, margin=0.9, rate=0.2, weights=weights).double()
    first = lam(z, leaves, images)
    wanted = 0.0
    for level, weight in zip((1, 2), weights or (1, 1), strict=True):
        nodes = ["/".join(PATHS[leaf][:level]) for leaf in leaves]
        groups = {name: z[[n == name for n in nodes]] for name in set(nodes)}
        if isinstance(geometry, PoincareBall):
            centres = {name: geometry.mean(group) for name, group in groups.items()}
        else:
            centres = {name: sum(geometry.project(group)) / len(group) for name, group in groups.items()}
        for row, node in zip(z, nodes, strict=True):
            apart = {name: d(geometry, row, centre) for name, centre in centres.items()}
            nearest = min(value for name, value in apart.items() if name != node)
            wanted += weight * max(0.0, apart[node] - nearest + 0.9 / level) / len(z)
    assert first.item() == pytest.approx(wanted, rel=1e-12)
    lam.eval()
    before = lam.prototypes_2.clone()
    lam(z, leaves)
    assert torch.equal(before, lam.prototypes_2)
    lam.train()
    lam(z, leaves)
    assert not torch.equal(before, lam.prototypes_2)


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


def test_prototypes_have_no_gradient_and_begin_with_their_first_image(batch):
    z, leaves, images = batch
    z = z.requires_grad_()
    lam = level_margin.LevelAwareMargin(TREE, 3, Sphere())
    few = leaves == 0
    assert lam(z[few], leaves[few], images[few]).item() == 0
    assert lam.seen_2.sum() == 1
    lam(z, leaves, images).backward()
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


def test_a_row_whose_prototype_was_never_seen_counts_for_nothing_in_evaluation(batch):
    z, leaves, _ = batch
    margin = level_margin.LevelAwareMargin(TREE, 3).double()
    ancestors = torch.as_tensor(TREE.ancestor_codes(1))[leaves]
    known = ancestors < ancestors.max()
    margin(z[known], leaves[known])
    margin.eval()
    alone = margin(z[known], leaves[known]) * known.sum()
    assert margin(z, leaves).item() == pytest.approx(alone.item() / known.sum().item(), rel=1e-9)


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
