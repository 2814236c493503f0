"""Where the losses of a label tree meet, and which form pushes whom (LT-1); formulas are in test_every_loss.py."""

import math

import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall, Sphere
from lib.losses import label_tree as losses
from lib.losses.label_tree import HierarchicalCrossEntropy, HierarchyWeighted, SimCLR, Sum, SupCon
from lib.taxonomy import from_paths

TREE = from_paths("small", ["a/x/1", "a/x/2", "a/y/3", "b/z/4", "b/z/5"])
UNEVEN = from_paths("uneven", ["a", "b/1", "b/2", "c/3", "c/4"])
TAU = 0.4
IMAGES, LEAVES = torch.arange(6).repeat(2), torch.tensor([0, 1, 2, 3, 3, 4]).repeat(2)
Z = 0.4 * torch.randn(12, 3, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
PLAIN = {"alpha": 0, "gamma": 0}


@pytest.mark.parametrize("form", losses.FORMS)
def test_without_multipliers_hwc_is_supcon_only_where_classes_are_equally_frequent(form):  # LT-10
    hwc, supcon = (
        HierarchyWeighted(TREE, Sphere(), TAU, **PLAIN, form=form),
        SupCon(TREE, Sphere(), TAU, cosine=form == losses.COSINE),
    )
    even = [0, 1, 2, 6, 7, 8]
    assert torch.allclose(hwc(Z[even], LEAVES[even]), supcon(Z[even], LEAVES[even]))
    assert not torch.allclose(hwc(Z, LEAVES), supcon(Z, LEAVES))


def test_without_labels_supcon_and_hwc_are_simclr():
    alone = from_paths("alone", [str(image) for image in range(6)])  # every image a class of its own
    simclr = SimCLR(alone, Sphere(), TAU, cosine=True)(Z, IMAGES, images=IMAGES)
    hwc = HierarchyWeighted(alone, Sphere(), TAU, **PLAIN, form=losses.COSINE)
    assert torch.allclose(hwc(Z, IMAGES), simclr)
    assert torch.allclose(SupCon(alone, Sphere(), TAU, cosine=True)(Z, IMAGES), simclr)


@pytest.mark.parametrize("frequent", [2, 16, 48])
def test_the_shifted_form_pushes_far_classes_more_also_where_positives_are_many(frequent):  # LT-1
    """Batches of a frequent class at one place, two siblings and two far images, all equally far from it."""
    frame = torch.eye(5, dtype=torch.float64)
    loss = HierarchyWeighted(from_paths("three", ["a/1", "a/2", "b/3"]), Sphere(), 0.1)
    z = torch.cat([frame[:1].expand(frequent, 5), frame[1:]])
    s = loss.similarity(z).detach().requires_grad_()
    rho = loss.nearness(torch.tensor([0] * frequent + [1, 1, 2, 2]), None).double()
    losses.cross_entropy(loss.logits(s, rho), loss.weights(rho).double()).backward()
    assert s.grad[0, frequent + 2] > 1.1 * s.grad[0, frequent]


def test_hxe_without_decay_is_the_cross_entropy():
    loss = HierarchicalCrossEntropy(TREE, 3, Sphere(), decay=0.0).double()
    assert torch.allclose(loss(Z, LEAVES), torch.nn.functional.cross_entropy(loss.linear(Sphere().log0(Z)), LEAVES))


def test_a_class_that_ends_early_counts_once_in_hxe():
    z = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8], [-1.0, 0.0], [-0.6, 0.8]], dtype=torch.float64)
    hxe = HierarchicalCrossEntropy(UNEVEN, 2, Sphere(), decay=0.4).double()
    p = hxe.linear(z).softmax(-1).tolist()
    pairs = {1: (1, 2), 2: (1, 2), 3: (3, 4), 4: (3, 4)}
    wanted = -math.log(p[0][0])  # a leaf of level 1 weighs as the groups beside it do
    for row, leaf in zip(p[1:], range(1, 5), strict=True):
        group = sum(row[other] for other in pairs[leaf])
        wanted -= math.log(group) + math.exp(-0.4) * math.log(row[leaf] / group)
    assert hxe(z, torch.arange(5)).item() == pytest.approx(wanted / 5, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: HierarchyWeighted(TREE, gamma=1e38), r"gamma = 1e\+38 cannot be used: it must be a number from 0 to"),
        (lambda: HierarchyWeighted(TREE, constant=losses.ALL, form=losses.DIVIDED), "would have two"),
        (lambda: HierarchyWeighted(TREE, constant="tree"), "constant = 'tree' is unknown: choose one of all, by role"),
        (lambda: HierarchyWeighted(TREE, form="outside"), "choose one of printed, cosine, shifted, divided"),
        (lambda: HierarchyWeighted(TREE, PoincareBall(1.0), form=losses.COSINE), "cosine needs unit vectors"),
        (lambda: Sum(None), "teaches nothing"),
        (lambda: SimCLR(TREE)(Z, LEAVES), "hand in images="),
        (lambda: SimCLR(TREE)(Z, LEAVES, images=IMAGES[:1]), "hand in images="),
        (lambda: SimCLR(TREE)(Z, LEAVES, images=torch.arange(12)), "no pair of the batch is a positive"),
        (lambda: SupCon(TREE)(Z, LEAVES + 1), "from 1 to 5, but the tree has 5"),
        (lambda: SupCon(TREE)(Z[None], LEAVES[None]), "one batch at a time"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
