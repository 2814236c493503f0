"""How the prototype head is made and trained (linear prototypes, Sections II-B, II-C and III-B)."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry
from lib.geometry.poincare import RIM_MARGIN
from lib.heads import PrototypeEncoder
from lib.losses.linear_prototypes import Comparison, EpisodeLoss
from lib.training.episodes import Episodes
from lib.training.methods import Head, Lessons
from lib.training.recipes import Recipe


@dataclass(frozen=True)
class Settings(Head):
    """A prototype head and its loss, a :class:`lib.training.methods.Head`; the defaults are the published values.

    ``comparison``, ``temperature``: of the loss (published: squared Euclidean distance, none, which is 1).
    ``hidden``: width of the hidden layer, 0 for a single linear layer (LP-7). ``nca_images``: as in
    :class:`lib.heads.reduction.Reduction`.
    Raises InputError for a value without meaning.
    """

    comparison: Comparison = field(default_factory=Comparison)
    temperature: float = 1.0
    hidden: int = 512
    nca_images: int = 2000
    at_once: ClassVar[int] = 2  # one head is as large as three of Hyper-DINO's; five folds keep two processors busy
    reach: ClassVar[float] = 1 - RIM_MARGIN[torch.float32]

    def __post_init__(self) -> None:
        checks.values(**vars(self))

    @property
    def geometry(self) -> Geometry:
        """Where the embeddings live."""
        return self.comparison.geometry

    def make(self, recipe: Recipe, seed: int) -> PrototypeEncoder:
        """The untrained head of a recipe."""
        generator = torch.Generator().manual_seed(seed)
        return PrototypeEncoder(
            recipe.dim_in, recipe.dim_out, hidden=self.hidden, geometry=self.geometry, generator=generator
        )

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Episodes, where: str) -> Lessons:
        """All views ``(V, m, n)`` one after the other, of classes with K + 1 images or more.

        A class with fewer is no prototype; its images stay in the gallery. Raises InputError where fewer than two
        classes have enough.
        """
        rows = learnable(labels, schedule.k, where)
        classes, y = np.unique(labels[rows], return_inverse=True)
        loss = EpisodeLoss(schedule.k, len(classes), self.comparison, self.temperature)
        x = np.concatenate([view[rows] for view in views])
        return Lessons(x, np.tile(y, len(views)), loss, replace(schedule, views=len(views)))


def learnable(labels: np.ndarray, k: int, where: str) -> np.ndarray:
    """Which images are of a class with at least k + 1 of them, as an episode needs.

    labels: (n,) of the images that are learnt from; where: for messages. Raises InputError where fewer than two classes
    have so many.
    """
    classes, counts = np.unique(labels, return_counts=True)
    enough = classes[counts > k]
    if len(enough) < 2:
        few = ", ".join(f"{count} of class number {c}" for c, count in zip(classes, counts, strict=True) if count <= k)
        raise InputError(
            f"{where}: K = {k} needs at least {k + 1} labelled images of two classes or more; there are only "
            f"{few}. Choose a smaller K"
        )
    return np.flatnonzero(np.isin(labels, enough))


def allowed_support(labels: np.ndarray, parts: Sequence[np.ndarray], k: int) -> int:
    """The largest K up to ``k`` with which two classes have K + 1 images in every part; a smaller one with a warning.

    labels: (n,); parts: indices of the images that are learnt from, as the training part of each fold.

    >>> allowed_support(np.array([0, 0, 0, 1, 1, 1, 2]), [np.arange(7)], k=2)
    2
    """
    most = min(int(np.sort(np.unique(labels[rows], return_counts=True)[1])[-2:][0]) - 1 for rows in parts)
    if k <= most:
        return k
    warnings.warn(f"K = {most} instead of {k}: two classes or more need K + 1 images to learn from.", stacklevel=2)
    return most
