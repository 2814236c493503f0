"""Hyper-DINO's push of one class on another, made independent of how many classes there are."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from lib.losses.hyper_dino import ContrastiveLoss, contrastive
from lib.papers.beyond.factors.experiment import BALL, FLAT, NONE, PROBABILITY
from lib.training import hyper_dino
from lib.training.fit import Schedule
from lib.training.methods import Lessons, Method
from lib.training.recipes import Recipe

LONGER = 4
"""How many times the steps the controls take."""
EVEN_BALL, EVEN_FLAT = "ball, even push", "flat head, even push"
LONG_BALL, LONG_EVEN = f"ball, {LONGER} times the steps", f"ball, even push, {LONGER} times the steps"
SHOWN = (NONE, PROBABILITY, FLAT, BALL, EVEN_FLAT, EVEN_BALL, LONG_BALL, LONG_EVEN)
PAIRS = (
    (EVEN_BALL, BALL),
    (EVEN_FLAT, FLAT),
    (LONG_BALL, BALL),
    (LONG_EVEN, LONG_BALL),
    (EVEN_BALL, NONE),
    (EVEN_BALL, PROBABILITY),
    (LONG_EVEN, PROBABILITY),
    (EVEN_BALL, EVEN_FLAT),
)
"""Which method is compared with which."""

ABOUT = (
    "Even push: the negative part of Hyper-DINO's loss times C - 1 of C equal classes, (1 - S)/S where S is the share "
    "of pairs that are of one class."
)


@dataclass(frozen=True)
class EvenPush:
    """L_pos + ``weight`` · L_neg + R_norm, of :func:`lib.losses.hyper_dino.contrastive` with the settings of ``loss``.

    L_neg is a mean over all pairs of images of two classes. Of C classes, all alike, the pull inside of one has the
    weight 1/C and the push of one on another 2/(C(C − 1)): a class is pushed from its one look-alike 2/(C − 1) times
    as hard as it is held together. With ``weight`` = C − 1 that is 2, as with two classes; see :func:`evening`.
    """

    loss: ContrastiveLoss
    weight: float

    def __call__(self, h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, d), labels (..., B) and which rows count (..., B) give the loss (...)."""
        parts = contrastive(h, labels, valid=valid, **vars(self.loss))
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
    """Whether the even push of all ``labels: (n,)`` differs enough from the printed one."""
    return evening(labels) >= WORTH


def weights(labels: np.ndarray, parts: Sequence[np.ndarray]) -> str:
    """What the weights are of the training images ``parts``, rows of ``labels: (n,)``.

    >>> weights(np.array([0, 1, 2, 0, 1, 2]), [np.arange(3), np.arange(6)])
    'Weight here: 2.00.'
    """
    found = [evening(labels[part]) for part in parts]
    low, high = f"{min(found):.2f}", f"{max(found):.2f}"
    return f"Weight here: {low if low == high else f'{low} to {high}'}."


@dataclass(frozen=True)
class EvenSettings(hyper_dino.Settings):
    """Hyper-DINO's mapper with :class:`EvenPush`, its weight from the classes that are learnt from."""

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """The images themselves, ``labels: (m,)``; the loss has the weight of :func:`evening`."""
        found = super().lessons(views, labels, schedule, where)
        return replace(found, loss=EvenPush(self.loss, evening(labels)))


def methods(recipe: Recipe, settings: hyper_dino.Settings, schedule: Schedule) -> list[Method]:
    """The ball of ``settings`` with an even push, and the flat head beside it, with half the margin; and, for whatever
    a short training lacks, the ball with both losses and :data:`LONGER` times the steps.
    """
    even, long = EvenSettings(**vars(settings)), replace(schedule, epochs=LONGER * schedule.epochs)
    flat = hyper_dino.flat(even, settings.m0 / 2)
    return [
        Method(EVEN_FLAT, recipe, flat, schedule),
        Method(EVEN_BALL, recipe, even, schedule),
        Method(LONG_BALL, recipe, settings, long),
        Method(LONG_EVEN, recipe, even, long),
    ]
