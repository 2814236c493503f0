"""How Hyper-DINO's mapper is made and trained (sections 2.2, 2.3 and 3.2)."""

from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.heads import HyperbolicMapper
from lib.losses.hyper_dino import ContrastiveLoss
from lib.training.fit import Schedule
from lib.training.methods import Head, Lessons
from lib.training.recipes import Recipe


@dataclass(frozen=True)
class Settings(Head):
    """Mapper and loss, a :class:`lib.training.methods.Head`; defaults are published where the paper prints one.

    Raises InputError for a value without meaning.
    """

    hidden: int = 256
    start_norm: float = 0.3
    geometry: Geometry = field(default_factory=PoincareBall)
    delta: float = 1e-3
    m0: float = 0.5
    alpha: float = 0.1
    norm_weight: float = 1e-3
    self_pairs: bool = False
    detach_mean: bool = True
    half: bool = True
    nca_images: int = 2000

    def __post_init__(self) -> None:
        checks.values(**vars(self))
        checks.whole("hidden", self.hidden)

    @property
    def reach(self) -> float:
        """The part of the ball's radius that embeddings may reach."""
        return 1 - self.delta

    @property
    def loss(self) -> ContrastiveLoss:
        """The loss of a batch."""
        return ContrastiveLoss(**{name: getattr(self, name) for name in ContrastiveLoss.__dataclass_fields__})

    def make(self, recipe: Recipe, seed: int) -> HyperbolicMapper:
        """The untrained mapper of a recipe."""
        return HyperbolicMapper(
            recipe.dim_in,
            recipe.dim_out,
            hidden=self.hidden,
            geometry=self.geometry,
            delta=self.delta,
            generator=torch.Generator().manual_seed(seed),
        )

    def start(self, network: HyperbolicMapper, x: np.ndarray) -> None:
        """Bring the untrained embeddings of the training images ``x: (m, dim_in)`` to ``start_norm``; 0: as printed."""
        if self.start_norm:
            network.start(torch.from_numpy(x).float(), self.start_norm)

    def lessons(self, views: np.ndarray, labels: np.ndarray, schedule: Schedule, where: str) -> Lessons:
        """The images themselves: the mapper sees no other views ``(V, m, n)``."""
        return Lessons(views[0], labels, self.loss, schedule)

    def embed(self, network: HyperbolicMapper | None, values: Tensor) -> Tensor:
        """Embeddings of reduced features ``values: (n, dim_in)``, the features themselves without a ``network``.

        With ``half`` they are rounded to float16 as they would be stored, then projected again, since rounding can
        put a point onto the rim (HD-10); distances are taken in float32. Raises InputError for an embedding too large
        for float16, which a flat one can be.
        """
        if network is None:
            return values
        values = network(values)
        if not self.half:
            return values
        largest = values.abs().max().item() if values.numel() else 0.0
        checks.fits("embeddings", largest, 16, "keep float32 (half=False), or train with a lower learning rate")
        return network.onto(values.half().float())


def flat(settings: Settings, margin: float) -> Settings:
    """The same mapper and loss with Euclidean distances and base margin ``margin``.

    Near the centre the ball's distance is 2‖x − y‖, so that the flat head with half the base margin asks for the same
    picture (HD-8). ``alpha`` stays, as it multiplies a mean distance, which halves by itself.
    """
    return replace(settings, geometry=Euclidean(), m0=margin)
