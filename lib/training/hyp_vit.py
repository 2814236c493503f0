"""How the head of Hyperbolic Vision Transformers is made and trained on frozen features (Sections 2.2, 2.4 and 3.2)."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
import torch

from lib import checks
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.geometry.poincare import RIM_MARGIN
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import TEMPERATURE, PairwiseCrossEntropy
from lib.training.by_class import ByClass
from lib.training.methods import Head, Lessons
from lib.training.recipes import Recipe


@dataclass(frozen=True)
class Settings(Head):
    """Head and loss, a :class:`lib.training.methods.Head`; the defaults are those of the Hyp- versions.

    ``geometry``, ``clip_radius``: of the head. ``temperature``, ``cosine``: of the loss, see
    :class:`lib.losses.hyp_vit.PairwiseCrossEntropy`. ``start_norm``: the mean norm, in the tangent space, that the
    untrained outputs of the training images are brought to; None leaves them as they are, as published.
    ``nca_images``: as in :class:`lib.heads.reduction.Reduction`. ``learn_c``: the ball's c learns along, from that of
    ``geometry`` on; only where encoder and head are trained together. Raises InputError for a value without meaning.
    """

    geometry: Geometry = field(default_factory=lambda: PoincareBall(0.1))
    clip_radius: float | None = 2.3
    temperature: float = TEMPERATURE
    cosine: bool = False
    start_norm: float | None = None
    nca_images: int = 2000
    learn_c: bool = False
    loss: ClassVar[None] = None
    reach: ClassVar[float] = 1 - RIM_MARGIN[torch.float32]

    def __post_init__(self) -> None:
        checks.values(geometry=self.geometry, temperature=self.temperature, nca_images=self.nca_images)
        for name in ("clip_radius", "start_norm"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))

    def make(self, recipe: Recipe, seed: int) -> ClippedProjection:
        """The untrained head of a recipe."""
        return ClippedProjection(
            recipe.dim_in,
            recipe.dim_out,
            geometry=self.geometry,
            clip_radius=self.clip_radius,
            learn_c=self.learn_c,
            generator=torch.Generator().manual_seed(seed),
        )

    @torch.no_grad()
    def start(self, network: ClippedProjection, x: np.ndarray) -> None:
        """Bring the untrained outputs of the training images ``x: (m, dim_in)`` to the mean norm ``start_norm``."""
        if self.start_norm:
            norms = network.linear(torch.from_numpy(x).float()).norm(dim=-1)
            network.linear.weight *= self.start_norm / norms.mean()

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: ByClass, where: str) -> Lessons:
        """As of any head, with the loss of as many images of a class as the ``schedule`` has in a batch."""
        loss = PairwiseCrossEntropy(self.geometry, self.temperature, schedule.samples, self.cosine)
        return replace(super().lessons(views, labels, schedule, where), loss=loss)


def spherical(settings: Settings, temperature: float = TEMPERATURE) -> Settings:
    """The Sph- version: unit vectors, compared by D_cos; the default temperature is the authors' code's (HV-8)."""
    return replace(settings, geometry=Sphere(), temperature=temperature, cosine=True)


def warmed(settings: Settings, temperature: float) -> Settings:
    """The same head with the loss at another τ of Equation 5; in flat space at half of it, as :func:`flat` has it."""
    halved = isinstance(settings.geometry, Euclidean)
    return replace(settings, temperature=temperature / 2 if halved else temperature)


def flat(settings: Settings) -> Settings:
    """The same head without curvature: c → 0 of the Hyp- version, whose distance is 2‖x − y‖ (Equation 2).

    The Euclidean distance is half of that, and so is the temperature.
    """
    return replace(settings, geometry=Euclidean(), temperature=settings.temperature / 2)
