"""Hierarchy measures against loops over ancestor sets, the identities of one set of predictions, prototypes."""

import itertools

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.metrics.hierarchy import h_acc, hf1, of_predictions, parent_order, prototypes, severity
from lib.taxonomy import from_nested

BREAST = from_nested("breast", {"benign": ["b1", "b2", "b3", "b4"], "malignant": ["m1", "m2", "m3", "m4"]})
DEEP = from_nested("deep", {f"a{i}": {f"b{i}{j}": [f"c{i}{j}{k}" for k in range(3)] for j in range(2)} for i in (0, 1)})
UNEVEN = from_nested("uneven", {"a": {"aa": ["aaa", "aab"], "ab": None}, "b": ["ba", "bb"], "c": None})
TREES = [BREAST, DEEP, UNEVEN]
RNG = np.random.default_rng(0)


def answers(tree, n=400):
    true, predicted = RNG.integers(len(tree.leaves), size=(2, n))
    return true, np.where(RNG.random(n) < 0.4, true, predicted)


@pytest.mark.parametrize("tree", TREES, ids=str)
@pytest.mark.parametrize("root", [True, False])
def test_hf1_is_the_f1_of_two_sets_of_ancestors_and_h_acc_counts_the_edges_between_them(tree, root):
    pairs = list(itertools.product(range(len(tree.leaves)), repeat=2))
    found = hf1(*zip(*pairs, strict=True), tree, root=root)
    near = h_acc(*zip(*pairs, strict=True), tree)
    for value, part, (true, predicted) in zip(found, near, pairs, strict=True):
        one, other = (set(tree.ancestors(tree.leaves[code], root=root)) for code in (true, predicted))
        precision, recall = len(one & other) / len(other), len(one & other) / len(one)
        expected = 2 * precision * recall / (precision + recall) if one & other else 0
        assert value == pytest.approx(expected)
        assert part == pytest.approx(1 - len(one ^ other) / (2 * tree.depth))


@pytest.mark.parametrize("tree", [BREAST, DEEP], ids=str)
def test_on_every_balanced_tree_the_three_measures_are_one(tree):
    values = of_predictions(*answers(tree), tree)
    assert np.allclose(values["hf1_below_root"], values["h_acc"], atol=1e-12)
    assert np.allclose(values["hf1"], (1 + tree.depth * values["h_acc"]) / (tree.depth + 1), atol=1e-12)


def test_on_an_uneven_tree_the_measures_differ():
    true, predicted = UNEVEN.codes(["aaa", "aaa"]), UNEVEN.codes(["c", "ab"])
    values = of_predictions(true, predicted, UNEVEN)
    assert values["hf1_below_root"].tolist() == pytest.approx([0, 2 / 5])
    assert values["h_acc"].tolist() == pytest.approx([1 - 4 / 6, 1 - 3 / 6])


def test_the_severity_of_mistakes_counts_them_by_the_depth_they_part_at():
    true, predicted = answers(UNEVEN)
    found = severity(true, predicted, UNEVEN)
    wrong = [(UNEVEN.leaves[a], UNEVEN.leaves[b]) for a, b in zip(true, predicted, strict=True) if a != b]
    for row in found.itertuples():
        parted = [a for a, b in wrong if len(set(UNEVEN.ancestors(a)) & set(UNEVEN.ancestors(b))) == row.depth + 1]
        assert row.mistakes == len(parted) and row.share == pytest.approx(len(parted) / len(wrong))
    assert found["share"].sum() == pytest.approx(1) and found["within"][0] == pytest.approx(1)
    assert found["within"].tolist() == pytest.approx(found["share"][::-1].cumsum()[::-1].tolist())
    none = severity([0, 1], [0, 1], BREAST)
    assert none["mistakes"].tolist() == [0, 0] and none["share"].isna().all()


@pytest.mark.parametrize("geometry", [Euclidean(), Sphere(), PoincareBall(0.7)], ids=str)
@pytest.mark.parametrize("level", [1, 2])
def test_order_and_violations_add_up_to_one_without_ties(geometry, level):
    leaves = RNG.integers(len(DEEP.leaves), size=60)
    own = DEEP.ancestor_codes(level)[leaves]
    own[: len(DEEP.level(level))] = range(len(DEEP.level(level)))
    z = geometry.project(torch.from_numpy(0.2 * RNG.normal(size=(60, 4))))
    centres = prototypes(z, own, len(DEEP.level(level)), geometry)
    found = parent_order(geometry.pairwise(z, centres), own)
    assert not found.tied.any() and (found.order + found.violation == 1).all()
    for row in range(60):
        distances = [float(geometry.between(z[row], centre)) for centre in centres]
        nearest_wrong = min(value for node, value in enumerate(distances) if node != own[row])
        assert found.order[row] == (distances[own[row]] < nearest_wrong)


def test_ties_are_violations_and_share_the_order():
    found = parent_order(
        torch.tensor([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0], [2.0, 1.0, 1.0], [0.0, 1.0, 1.0]]), [0, 0, 0, 0]
    )
    assert found.order.tolist() == pytest.approx([1 / 3, 1 / 2, 0, 1])
    assert found.violation.tolist() == [1, 1, 1, 0] and found.tied.tolist() == [True, True, False, False]
    excess = (found.order + found.violation - 1)[found.tied]
    assert excess.tolist() == pytest.approx([1 / 3, 1 / 2])


def test_prototypes_are_the_mean_of_each_geometry():
    z, groups = torch.from_numpy(0.4 * RNG.normal(size=(40, 3))), RNG.permutation(np.arange(40) % 4)
    flat, round_ = prototypes(z, groups, 4, Euclidean()), prototypes(Sphere().project(z), groups, 4, Sphere())
    for node in range(4):
        members = z[torch.from_numpy(groups == node)]
        assert torch.allclose(flat[node], sum(members) / len(members))
        directions = sum(member / member.norm() for member in members)
        assert torch.allclose(round_[node], directions / directions.norm())


def test_the_prototype_in_the_ball_minimises_the_squared_distances_and_float32_is_near():
    ball = PoincareBall(2.0)
    z = ball.project(torch.from_numpy(0.3 * RNG.normal(size=(30, 3))))
    centre = prototypes(z, np.zeros(30, dtype=int), 1, ball)
    best = float(ball.pairwise(z, centre).square().sum())
    for direction in torch.eye(3, dtype=torch.float64):
        for step in (1e-3, -1e-3):
            assert float(ball.pairwise(z, centre + step * direction).square().sum()) > best
    z = torch.from_numpy(0.2 * RNG.normal(size=(40, 3)))
    for geometry in (Euclidean(), Sphere(), PoincareBall(1.0)):
        wide, narrow = (prototypes(points, np.arange(40) % 2, 2, geometry) for points in (z, z.float()))
        assert narrow.dtype == torch.float32 and torch.allclose(wide, narrow.double(), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hf1([0, 1], [0], BREAST), "two lists of one length"),
        (lambda: hf1([], [], BREAST), "there are no images"),
        (lambda: hf1(["b1"], ["b2"], BREAST), r"taxonomy\.codes"),
        (lambda: hf1([0], [8], BREAST), "answers run from 8 to 8, but breast has 8 leaves"),
        (lambda: h_acc([-1], [0], BREAST), "right classes run from -1"),
        (lambda: parent_order([[1.0], [2.0]], [0, 0]), "one group only"),
        (lambda: parent_order([[1.0, float("nan")]], [0]), "image 0 hold NaN"),
        (lambda: parent_order([[1.0, 2.0]], [2]), "groups run from 2 to 2"),
        (lambda: prototypes([[0.0], [1.0]], [0, 2], 3, Euclidean()), "group 1 has no training image"),
        (lambda: prototypes([[0.0], [1.0]], [0, 3], 3, Euclidean()), "groups run from 0 to 3"),
        (lambda: prototypes([[0.0], [1.0]], [0], 1, Euclidean()), "one group each"),
        (lambda: prototypes([[0.0], [1.0]], ["a", "b"], 2, Euclidean()), r"taxonomy\.codes"),
        (lambda: prototypes([[0.0], [1.0]], [0, 1], 2, "euclidean"), "geometry = 'euclidean' cannot be used"),
        (lambda: prototypes([[0.0], [float("nan")]], [0, 1], 2, Euclidean()), "embedding of image 1 holds NaN"),
        (lambda: prototypes([[0.0, 1.0], [1.0, 0.0], [-1.0, 0.0]], [0, 1, 1], 2, Sphere()), "images of group 1 cancel"),
        (lambda: parent_order([[1.0, 2.0]], [-1]), "groups run from -1 to -1.*leave out what has no label"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
