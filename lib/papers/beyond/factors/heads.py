"""Heads and losses of the other papers (Hyp-ViT, label tree, hash codes), and Hyper-DINO's loss with an even push."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib import checks
from lib.datasets import trees
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.geometry import Geometry, Sphere
from lib.losses.batch import which
from lib.losses.hashing import CSQ
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.level_margin import LevelAwareMargin
from lib.taxonomy import Taxonomy, from_paths
from lib.training import hashing, hyp_vit, hyper_dino
from lib.training.by_class import ByClass
from lib.training.fit import Schedule
from lib.training.label_tree import Objective
from lib.training.methods import Lessons, Method
from lib.training.recipes import Recipe

HYPERBOLIC, SPHERICAL = "Hyp-ViT head, ball", "Hyp-ViT head, sphere"
SUPCON, TREE = "SupCon", "HWC + LAM"
ACIR, CENTRES = "hash code, ACIR's loss", "hash code, CSQ"
PAPERS = (HYPERBOLIC, SPHERICAL, SUPCON, TREE, ACIR, CENTRES)


@dataclass(frozen=True)
class AsMany(ByClass):
    """Batches by class, in as many steps as batches of ``whole`` images would take."""

    whole: int = 128

    def steps(self, n: int) -> int:
        """Batches in one epoch of ``n`` images."""
        return -(-n // self.whole)


@dataclass(frozen=True)
class TreeLoss:
    """SupCon, or HWC and LAM (*Climbing the Label Tree*, Section 3), of a stack of batches without second views.

    Positives of an image are the others of its class. LAM's prototypes are the means of the batch: a loss of
    :mod:`lib.training.sweep` keeps nothing from one batch for the next, so there is no moving average (η = 1).

    objective: form, weights and margin. branches: of class 0, 1, ... the branch of the tree that it hangs on.
    """

    objective: Objective
    branches: tuple[int, ...]

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """Embeddings (S, B, d), labels (S, B) and which rows count (S, B) give the loss (S,)."""
        parts = zip(h, labels, which(labels, valid), strict=True)
        return torch.stack([self._one(z[rows], classes[rows]) for z, classes, rows in parts])

    def _one(self, z: Tensor, labels: Tensor) -> Tensor:
        tree, codes = _tree(self.branches)
        leaves, one = codes.to(labels.device)[labels], self.objective
        total = z.sum() * 0
        if len(leaves.unique()) < len(leaves):  # else no image has a positive
            pairs = replace(one, margin_weight=0.0).loss(tree, z.shape[-1], 0).to(z.device)
            total = total + pairs(z, leaves)
        if one.margin_weight:
            lam = LevelAwareMargin(tree, z.shape[-1], one.geometry, margin=one.margin).to(z.device)
            total = total + one.margin_weight * lam(z, leaves)
        return total


@cache
def _tree(branches: tuple[int, ...]) -> tuple[Taxonomy, Tensor]:
    """The tree of two levels, and the code of each class in it."""
    names = [f"branch {branch}/class {number}" for number, branch in enumerate(branches)]
    tree = from_paths("classes", names)
    return tree, torch.as_tensor(tree.codes(names))


@dataclass(frozen=True)
class Tree(hyper_dino.Settings):
    """Hyper-DINO's mapper on the sphere, as it is initialised: only directions count. Its loss is :class:`TreeLoss`.

    branches: of each class its branch; SupCon does not read it.
    """

    start_norm: float = 0.0
    geometry: Geometry = field(default_factory=Sphere)
    half: bool = False
    branches: tuple[int, ...] = ()
    objective: Objective = field(default_factory=lambda: Objective("HWC", margin_weight=1.0))

    def __post_init__(self) -> None:
        checks.whole("hidden", self.hidden)
        if not isinstance(self.objective.geometry, Sphere):
            raise InputError(f"this head ends on the sphere, not in {self.objective.geometry}: choose the sphere")

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """The images themselves: the experiment has one view of each."""
        return Lessons(views[0], labels, TreeLoss(self.objective, self.branches), schedule)


@dataclass(frozen=True)
class EvenPush:
    """L_pos + ``weight`` · L_neg + R_norm, the terms of ``loss`` weighted anew.

    L_neg is a mean over all pairs of images of two classes. Of C classes, all alike, the pull inside of one has the
    weight 1/C and the push of one on another 2/(C(C − 1)): a class is pushed from its one look-alike 2/(C − 1) times
    as hard as it is held together. With ``weight`` = C − 1 that is 2, as with two classes; see :func:`evening`.
    """

    loss: ContrastiveLoss
    weight: float

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, d), labels (..., B) and which rows count (..., B) give the loss (...)."""
        parts = self.loss.parts(h, labels, valid=valid)
        return parts.total + (self.weight - 1) * parts.negative


def evening(labels: np.ndarray) -> float:
    """The weight that makes up for the mean over pairs of two classes: (1 − S)/S, S = Σ p² of the shares of classes.

    C equal classes have C − 1, unequal ones less, as more pairs are of one class:

    >>> evening(np.array([0, 0, 1, 1, 2, 2])), evening(np.array([0, 0, 0, 0, 1, 2]))
    (2.0, 1.0)
    """
    counts = np.unique(labels, return_counts=True)[1]
    return float(len(labels) ** 2 / (counts**2).sum() - 1)


WORTH = 1.5
"""With a smaller weight than this the even push is nearly the printed one, and is not trained."""


def matters(labels: np.ndarray) -> bool:
    """Whether the even push differs enough from the printed one; ``labels: (n,)``."""
    return evening(labels) >= WORTH


@dataclass(frozen=True)
class EvenSettings(hyper_dino.Settings):
    """Hyper-DINO's mapper with :class:`EvenPush`, its weight from the classes that are learnt from."""

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """The images themselves, ``labels: (m,)``; the loss has the weight of :func:`evening`."""
        lessons = super().lessons(views, labels, schedule, where)
        return replace(lessons, loss=EvenPush(self.loss, evening(labels)))


def above(images: ImageTable, which: str) -> pd.Series | None:
    """Of each image (n,) the branch that its class hangs on, None for a tree that the dataset does not have.

    which: a column of the table, such as a species' family, or level 1 of a tree of :mod:`lib.datasets.trees`.
    """
    if which in images.rows:
        return images.rows[which]
    if which not in trees.names(images.name):
        return None
    tree = trees.of(images, which)
    return pd.Series(np.array(tree.level(1))[tree.ancestor_codes(1)[tree.codes(trees.leaves(images, which))]])


def branches(labels: np.ndarray, above: pd.Series | None) -> tuple[int, ...] | None:
    """Of each class the number of its branch; None where there is no tree, or one branch alone.

    labels: (n,) classes from 0 on; above: (n,) the branch of each image's class, None without a tree.
    Raises InputError for a class that hangs on several branches.
    """
    if above is None or above.nunique() < 2:
        return None
    of_class = pd.Series(above.astype("category").cat.codes.to_numpy()).groupby(labels)
    if (several := of_class.nunique() > 1).any():
        raise InputError(f"class number {several.idxmax()} hangs on more than one branch: a class needs one parent")
    return tuple(int(branch) for branch in of_class.first())


def by_class(schedule: Schedule, labels: np.ndarray, parts: Sequence[np.ndarray]) -> AsMany:
    """The same number of steps with batches of as many images of each class, as Hyp-ViT's loss needs them.

    All classes in each batch, where it is large enough to hold two images of each; ``parts``: indices of the images
    that are learnt from, of which the smallest class has a say.
    """
    counts = [np.unique(labels[rows], return_counts=True)[1] for rows in parts]
    n_classes, least = min(map(len, counts)), min(int(count.min()) for count in counts)
    samples = max(2, min(schedule.batch_size // n_classes, least))
    size = samples * min(n_classes, schedule.batch_size // samples)
    return AsMany(schedule.epochs, size, schedule.lr, schedule.weight_decay, samples=samples, whole=schedule.batch_size)


def methods(
    recipe: Recipe,
    schedule: Schedule,
    single_lr: float,
    classes: AsMany,
    n_classes: int,
    kin: tuple[int, ...] | None,
    hidden: int,
    n_bits: int,
) -> list[Method]:
    """One method per paper and variant, from the same components as the others, in as many steps.

    Hyp-ViT's head and the hash head are single layers and have ``single_lr``, the rate of the linear classifier. The
    label tree's head has the rate of ``schedule``, on validation groups one of 0.03 would earn about two points of
    MAP@20 more. SupCon has the head, rate, similarity and temperature of HWC.

    classes: of :func:`by_class`. kin: of :func:`branches`; without a tree HWC + LAM is left out.
    """
    checks.values(n_bits=n_bits)
    single = replace(classes, lr=single_lr)
    even = hashing.Even(schedule.epochs, schedule.batch_size, single_lr, schedule.weight_decay)
    clipped, code = hyp_vit.Settings(), replace(recipe, dim_out=n_bits)
    flat = Tree(hidden, branches=tuple(range(n_classes)), objective=Objective("SupCon"))
    return [
        Method(HYPERBOLIC, recipe, clipped, single),
        Method(SPHERICAL, recipe, hyp_vit.spherical(clipped), single),
        Method(SUPCON, recipe, flat, schedule),
        *([] if kin is None else [Method(TREE, recipe, Tree(hidden, branches=kin), schedule)]),
        Method(ACIR, code, hashing.Settings(), even),
        Method(CENTRES, code, hashing.Settings(loss=CSQ(n_classes, n_bits)), even),
    ]
