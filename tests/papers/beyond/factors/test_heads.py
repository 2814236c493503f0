"""All heads learn from the same components in as many steps, and their losses are what loops say."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.label_tree import HierarchyWeighted
from lib.papers.beyond.factors import heads
from lib.taxonomy import from_paths
from lib.training.experiment import ask, fit
from lib.training.fit import Schedule
from lib.training.label_tree import Objective
from lib.training.recipes import Recipe
from lib.training.splits import repeated, splits

N = 96
LABELS = np.arange(N) % 4
KIN = (0, 1, 0, 1)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(N, 12)) + 2 * RNG.normal(size=(4, 12))[LABELS]).astype(np.float32)
SCHEDULE = Schedule(epochs=4, batch_size=16)
PARTS = repeated(splits(np.arange(N) // 8 % 3, seed=0), 2)
CLASSES = heads.by_class(SCHEDULE, LABELS, [split.train for split in PARTS])
METHODS = heads.methods(Recipe("PCA", 10, 6), SCHEDULE, 0.01, CLASSES, 4, KIN, 8, 16)


@pytest.fixture(scope="module")
def fitted():
    return fit(X, LABELS, METHODS, PARTS, workers=1)


def test_all_take_as_many_steps_from_the_same_components_and_learn(fitted):
    assert list(fitted) == list(heads.PAPERS)
    assert {(one.recipe.source, one.recipe.dim_in) for one in METHODS} == {("PCA", 10)}
    slower = dict.fromkeys((heads.SUPCON, heads.TREE), 0.001)
    assert {one.name: one.schedule.lr for one in METHODS} == dict.fromkeys(heads.PAPERS, 0.01) | slower
    for name, several in fitted.items():
        assert {one.health.steps for one in several} == {16}, name
        first, last = np.mean([[one.history[0], one.history[-1]] for one in several], axis=0)
        assert last < first, name
    answers = ask(fitted, X, LABELS, (1,), workers=1)
    for name, several in answers.items():
        assert np.mean([one.per_query.values["ap_min", 1].mean() for one in several]) > 0.6, name


def test_a_batch_by_class_holds_as_many_images_of_each_and_no_more_than_there_are():
    assert (CLASSES.batch_size, CLASSES.samples, CLASSES.whole) == (16, 4, 16)
    rare = np.array([0] * 50 + [1] * 3 + [2] * 50)
    few = heads.by_class(SCHEDULE, rare, [np.arange(len(rare))])
    assert (few.batch_size, few.samples, few.steps(32), few.steps(33)) == (9, 3, 2, 3)
    many = heads.by_class(SCHEDULE, np.repeat(np.arange(30), 5), [np.arange(150)])
    assert (many.batch_size, many.samples) == (16, 2)


def test_the_loss_of_the_tree_is_hwc_and_the_margin_to_the_means_of_the_batch():
    generator = torch.Generator().manual_seed(1)
    z = Sphere().project(torch.randn(2, 9, 3, generator=generator).double())
    labels = torch.tensor([[0, 1, 2, 3, 0, 1, 2, 3, 0], [0, 0, 1, 1, 2, 2, 3, 3, 0]])
    valid = torch.ones(2, 9, dtype=torch.bool)
    valid[1, 8] = False
    loss = heads.TreeLoss(Objective("HWC", margin_weight=0.5, margin=0.4), KIN)
    found = loss(z, labels, valid=valid)
    for row, n in ((0, 9), (1, 8)):
        points, classes = z[row, :n], labels[row, :n]
        tree = from_paths("kin", [f"{KIN[c]}/{c}" for c in range(4)])
        codes = torch.as_tensor(tree.codes([f"{KIN[c]}/{c}" for c in classes.tolist()]))
        wanted = HierarchyWeighted(tree)(points, codes)
        side = np.array(KIN)[classes.numpy()]
        means = [points[side == branch].mean(0) for branch in (0, 1)]
        means = [mean / mean.norm() for mean in means]
        hinges = [
            max(0.0, float((p - means[own]).norm() - (p - means[1 - own]).norm()) + 0.4)
            for p, own in zip(points, side, strict=True)
        ]
        assert found[row].item() == pytest.approx(wanted.item() + 0.5 * np.mean(hinges), rel=1e-5)


def test_supcon_is_the_mean_of_each_image_over_its_class_whatever_the_tree():
    z = Sphere().project(torch.randn(1, 7, 3, generator=torch.Generator().manual_seed(2)).double())
    labels = torch.tensor([[0, 1, 2, 0, 1, 0, 3]])
    (supcon,) = (one.head for one in METHODS if one.name == heads.SUPCON)
    losses = []
    for i in range(7):
        logits = {k: -float((z[0, i] - z[0, k]).norm()) / supcon.objective.temperature for k in range(7) if k != i}
        total = np.log(sum(np.exp(value) for value in logits.values()))
        own = [total - value for k, value in logits.items() if labels[0, k] == labels[0, i]]
        losses += [np.mean(own)] if own else []
    for kin in (supcon.branches, KIN):
        found = heads.TreeLoss(supcon.objective, kin)(z, labels)
        assert found.item() == pytest.approx(np.mean(losses), rel=1e-9)


def test_a_batch_without_two_images_of_a_class_teaches_the_margin_and_has_a_gradient():
    z = torch.eye(4)[None].requires_grad_()
    loss = heads.TreeLoss(Objective("HWC", margin_weight=1.0), KIN)(z, torch.arange(4)[None])
    loss.sum().backward()
    assert z.grad.isfinite().all()


def test_classes_hang_on_the_branch_of_their_images_or_on_no_tree():
    assert heads.branches(LABELS, pd.Series(np.where(LABELS % 2, "lung", "colon"))) == KIN
    assert heads.branches(LABELS, None) is None and heads.branches(LABELS, pd.Series(["one"] * N)) is None
    with pytest.raises(InputError, match="more than one branch"):
        heads.branches(LABELS, pd.Series(["lung", "colon", "skin"] * (N // 3)))
    rows = pd.DataFrame({name: ["a", "b"] for name in ("image_id", "path", "group")} | {"label": ["mel", "nv"]})
    table = ImageTable("ham10000", Path("nowhere"), rows, "lesion")
    assert heads.above(table, "malignancy").tolist() == ["malignant", "benign"]  # of a tree, and of a column
    assert heads.above(table, "image_id").tolist() == ["a", "b"] and heads.above(table, "none") is None
    names = [one.name for one in heads.methods(Recipe("PCA", 10, 6), SCHEDULE, 0.01, CLASSES, 4, None, 8, 16)]
    assert names == [name for name in heads.PAPERS if name != heads.TREE]
    with pytest.raises(InputError, match="sphere"):
        heads.Tree(branches=KIN, objective=Objective("HWC", PoincareBall(1.0)))


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
    assert heads.EvenPush(ContrastiveLoss(geometry), 2.0)(h, labels).item() == pytest.approx(wanted, rel=1e-9)


def test_the_weight_comes_from_the_classes_that_are_learnt_from():
    labels = np.arange(60) % 5
    even = heads.EvenSettings()
    lessons = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), labels, SCHEDULE, "here")
    assert lessons.loss == heads.EvenPush(even.loss, 4.0)
    two = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), np.arange(60) % 2, SCHEDULE, "here")
    h = torch.randn(8, 3) / 5
    assert two.loss(h, torch.arange(8) % 2) == even.loss(h, torch.arange(8) % 2)
    uneven = even.lessons(np.zeros((1, 60, 6), dtype=np.float32), np.minimum(labels, 1), SCHEDULE, "here")
    assert uneven.loss.weight == pytest.approx(60**2 / (12**2 + 48**2) - 1)  # pairs of two classes over those of one
