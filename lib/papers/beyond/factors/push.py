"""Hyper-DINO's push of one class on another, made independent of how many classes there are."""

from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from lib.losses.hyper_dino import ContrastiveLoss, contrastive
from lib.papers.beyond.factors.experiment import BALL, FLAT, NONE, PROBABILITY
from lib.training import hyper_dino
from lib.training.fit import Schedule
from lib.training.methods import Lessons, Method
from lib.training.recipes import Recipe

EVEN_BALL, EVEN_FLAT = "ball, even push", "flat head, even push"
SHOWN = (NONE, PROBABILITY, FLAT, BALL, EVEN_FLAT, EVEN_BALL)
PAIRS = ((EVEN_BALL, BALL), (EVEN_FLAT, FLAT), (EVEN_BALL, NONE), (EVEN_BALL, PROBABILITY), (EVEN_BALL, EVEN_FLAT))
"""Which method is compared with which."""

ABOUT = "Even push: the negative part of Hyper-DINO's loss times C - 1, where C classes are learnt from."


@dataclass(frozen=True)
class EvenPush:
    """L_pos + ``weight`` · L_neg + R_norm, of :func:`lib.losses.hyper_dino.contrastive` with the settings of ``loss``.

    L_neg is a mean over all pairs of images of two classes. Of C classes, all alike, the pull inside of one has the
    weight 1/C and the push of one on another 2/(C(C − 1)): a class is pushed from its one look-alike 2/(C − 1) times
    as hard as it is held together. With ``weight`` = C − 1 that is 2, as with two classes.
    """

    loss: ContrastiveLoss
    weight: float

    def __call__(self, h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, d), labels (..., B) and which rows count (..., B) give the loss (...)."""
        parts = contrastive(h, labels, valid=valid, **vars(self.loss))
        return parts.total + (self.weight - 1) * parts.negative


@dataclass(frozen=True)
class EvenSettings(hyper_dino.Settings):
    """Hyper-DINO's mapper with :class:`EvenPush`, its weight from the classes that are learnt from."""

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """The images themselves, ``labels: (m,)`` of C classes; the loss has the weight C − 1."""
        found = super().lessons(views, labels, schedule, where)
        return replace(found, loss=EvenPush(self.loss, float(len(np.unique(labels)) - 1)))


def methods(recipe: Recipe, settings: hyper_dino.Settings, schedule: Schedule) -> list[Method]:
    """The ball of ``settings`` with an even push, and the flat head beside it, with half the margin."""
    even = EvenSettings(**vars(settings))
    flat = hyper_dino.flat(even, settings.m0 / 2)
    return [Method(EVEN_FLAT, recipe, flat, schedule), Method(EVEN_BALL, recipe, even, schedule)]
