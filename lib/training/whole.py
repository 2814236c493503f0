"""Encoder and head trained together by :mod:`lib.training.two_views`, once and then read, and the encoder as it was."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor, nn

from lib.datasets.content import content
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.encoders import networks
from lib.training import finetune, kept, together, two_views
from lib.training.photos import Preparation

Made = Callable[[int], tuple[nn.Module, nn.Module]]
"""From the length of the encoder's feature: the head, and the loss of :func:`lib.training.two_views.train`."""


@dataclass(frozen=True)
class Plan:
    """What is trained: the name of an encoder (lite0 or timm), how long and how fast, and what the network sees."""

    encoder: str
    settings: two_views.Settings
    preparation: Preparation


@dataclass(frozen=True, eq=False)
class Whole:
    """The trainings of one notebook: of ``images``, kept in ``store`` under what they hold and the code behind them.

    modules: those of the heads and losses; what is trained is trained anew when they change.
    """

    images: ImageTable
    plan: Plan
    store: kept.Store
    modules: frozenset[str]
    shown: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", content(self.images))

    def before(self) -> Tensor:
        """Features (n, dim) of all images before any training."""
        plan = self.plan

        def features() -> dict[str, Tensor]:
            encoder = _encoder(plan)
            network = nn.Sequential(encoder, nn.Identity())
            return {"z": finetune.embed(network, decode(self.images), plan.preparation.seen_by(encoder))[0]}

        return kept.once(self.store, self._key("before", plan.encoder, plan.preparation), features)["z"]

    def trained(self, rows: np.ndarray, classes: np.ndarray, make: Made, seed: int, what: str, *decides: Any) -> dict:
        """Features "encoder" (n, dim) and embeddings "head" (n, d) of all images, and "history", the loss of each step.

        rows, classes: the images to learn from, and their (m,) classes as numbers. decides: what head and loss
        depend on, but for the seed.
        """
        key = self._key(self.plan, rows, classes, seed, *decides)
        return kept.once(self.store, key, partial(self._train, rows, classes, make, seed, what, key))

    def _train(self, rows: np.ndarray, classes: np.ndarray, make: Made, seed: int, what: str, key: str) -> dict:
        encoder, plan = _encoder(self.plan), self.plan
        head, loss = make(encoder.num_features)
        preparation = plan.preparation.seen_by(encoder)
        learnt = self.images.take(self.images.rows["image_id"].iloc[rows])
        options = {"seed": seed, "store": kept.checkpoint(self.store, key), "what": what}
        given = encoder, head, loss, learnt, classes, plan.settings, preparation
        network, history = together.launched(two_views.train, *given, **options)
        features, z = finetune.embed(network, decode(self.images), preparation)
        return {"encoder": features, "head": z, "history": history}

    def _key(self, *others: Any) -> str:
        modules = {__name__, two_views.__name__, *self.modules}
        code = kept.code(modules, "torch", "timm", "torchvision", "geoopt", "lightning_fabric")
        return kept.key(self.shown, *others, code)


def _encoder(plan: Plan) -> nn.Module:
    return networks.load(plan.encoder).model
