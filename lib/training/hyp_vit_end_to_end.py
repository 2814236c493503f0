"""Encoder and head of Hyp-ViT trained together (section 3.3): trained once, then read.

Nothing of a paper's tables and tests is imported here, so that a training outlives a change of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lib.datasets.categories import Halves
from lib.datasets.pixels import decode
from lib.datasets.table import ImageTable
from lib.encoders import networks
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.training import finetune, kept, together
from lib.training.hyp_vit import Settings
from lib.training.photos import Preparation
from lib.training.recipes import Recipe
from lib.training.splits import Split


@dataclass(frozen=True)
class EndToEnd:
    """Encoder and head trained together: how long and how fast, and what the network sees.

    encoder: as for :func:`lib.encoders.networks.load`. dim_out: length of the embedding. unseen: whether the query
    images are looked at whenever those that choose the step are, for the course only.
    """

    encoder: str
    dim_out: int
    settings: finetune.Settings
    preparation: Preparation
    unseen: bool = False


@dataclass(frozen=True)
class Task:
    """What is learnt from and searched, how, and the folder of what is trained; ``shown``: what images hold."""

    images: ImageTable
    halves: Halves
    plan: EndToEnd
    store: kept.Store
    shown: str

    def at(self, lr: float) -> "Task":
        """The same with another learning rate of the encoder."""
        return replace(self, plan=replace(self.plan, settings=replace(self.plan.settings, lr=lr)))

    def before(self) -> Tensor:
        """(n, dim) features of the encoder before any training, NaN for images without a use."""

        def embedded() -> Tensor:
            encoder = networks.load(self.plan.encoder).model
            untouched = nn.Sequential(encoder, nn.Identity())
            return self._embedded(untouched, self.plan.preparation.seen_by(encoder))[0]

        return kept.once(self.store, self._key("before", self.plan.encoder, self.plan.preparation), embedded)

    def trained(
        self, name: str, kind: Settings, split: Split, learnt: np.ndarray, aside: np.ndarray
    ) -> Mapping[str, Any]:
        """One training: features and embeddings (n, ...), history and scores (columns), best (the step that is kept).

        name: what the progress calls it. learnt, aside: rows of the images that teach, and of those that choose the
        step. split: whose held-out images are searched, and whose seed it is.
        """
        key = self._key(learnt, aside, split.held_out, split.test, kind, self.plan, split.seed)
        parts = self._part(learnt), self._part(aside)
        return kept.once(self.store, key, lambda: self._train(name, kind, split.seed, parts, key))

    def _train(
        self, name: str, kind: Settings, seed: int, parts: tuple[ImageTable, ImageTable], key: str
    ) -> dict[str, Any]:
        encoder, plan = networks.load(self.plan.encoder).model, self.plan
        head = kind.make(Recipe("raw", encoder.num_features, plan.dim_out), seed)
        loss = PairwiseCrossEntropy(head.geometry, kind.temperature, plan.settings.samples, kind.cosine)
        options = {
            "seed": seed,
            "store": kept.checkpoint(self.store, key),
            "what": f"{name}, end to end, seed {seed}",
            "unseen": self._part(self.halves.queries) if plan.unseen else None,
        }
        preparation = plan.preparation.seen_by(encoder)
        given = encoder, head, loss, *parts, plan.settings, preparation
        done = together.launched(finetune.finetune, *given, **options)
        features, embeddings = self._embedded(done.network, preparation)
        return {
            "features": features,
            "embeddings": embeddings,
            "history": done.history.to_dict("list"),
            "scores": done.scores.to_dict("list"),
            "best": int(done.best["step"]),
        }

    def _key(self, *others: object) -> str:
        """A hash of what the images hold, of ``others``, and of the code that trains."""
        code = kept.code(
            {__name__, finetune.__name__, Settings.__module__}, "torch", "timm", "torchvision", "lightning_fabric"
        )
        return kept.key(self.shown, self.halves.names, *others, code)

    def _embedded(self, network: nn.Sequential, preparation: Preparation) -> list[Tensor]:
        """Features and embeddings (n, ...) as of :func:`lib.training.finetune.embed`, NaN for images without a use."""
        used = np.unique(np.concatenate([self.halves.learnt, self.halves.queries, self.halves.gallery]))
        of_all = []
        for points in finetune.embed(network, decode(self._part(used)), preparation):
            of_all.append(points.new_full((len(self.images), points.shape[1]), torch.nan))
            of_all[-1][torch.from_numpy(used)] = points
        return of_all

    def _part(self, rows: np.ndarray) -> ImageTable:
        """The images ``rows``, labelled by their category."""
        images = self.images
        part = images.rows.iloc[rows].assign(label=self.halves.names[rows])
        return ImageTable(images.name, images.root, part, images.group_kind)
