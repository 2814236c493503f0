"""Networks on frozen maps: what a row is trained as, and what its codes find, ties broken by content or not."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import pandas as pd
import torch

from lib.datasets.table import ImageTable
from lib.encoders import taps, zoo
from lib.encoders.backbones import UNTRAINED as RANDOM
from lib.encoders.models import MODELS
from lib.encoders.taps import Taps
from lib.geometry import Sphere
from lib.metrics import hashing, retrieval
from lib.metrics.retrieval import PerQuery
from lib.papers.acir.ablations.rows import OURS, PRETRAINED, TOKEN, UNTRAINED, Row, losses
from lib.papers.acir.choices import of_classes
from lib.papers.acir.heads import TOP
from lib.processes import spread
from lib.training import acir
from lib.training.acir import Job, Trained
from lib.training.hashing import Even
from lib.training.splits import Split
from lib.training.sweep import Loss

KS = (1, TOP)
BLOCK = 256
"""Queries whose similarity to the whole archive is in memory at a time."""


@dataclass(frozen=True, eq=False)
class Material:
    """What is learnt from: maps by what sees them, classes (n,), fingerprints (n, p), and the schedule."""

    eyes: Mapping[str, Taps]
    labels: np.ndarray
    prints: np.ndarray
    schedule: Even
    workers: int = -1

    def seen(self, rows: Iterable[Row]) -> list[Row]:
        """The rows whose input there is: without weights of a ViT its rows are left out."""
        return [row for row in rows if row.eye in self.eyes]

    def losses(self, bits: int, learnt: np.ndarray, alpha: float, quantisation: str = "ours") -> dict[str, Loss]:
        """:func:`losses` with the class weights of the images ``learnt`` from."""
        weights, n_classes = of_classes(self.labels, learnt), int(self.labels.max()) + 1
        return losses(alpha, self.prints.shape[1], n_classes, bits, weights, quantisation)


def token(features: np.ndarray) -> Taps:
    """Features (n, d) as maps of one pixel, so that they are trained like the others; the shallow map is empty."""
    return Taps(np.zeros((len(features), 1, 1, 1), np.float16), features[:, :, None, None].astype(np.float16))


def available(vit: str) -> bool:
    """Whether the weights of a vision transformer are on this machine."""
    return vit not in MODELS or zoo.wanting(vit) is None


def eyes(images: ImageTable, encoder: str, features: np.ndarray | None) -> dict[str, Taps]:
    """Maps of an encoder, of the same encoder untrained, and of a vision transformer's ``features: (n, d)``, if any."""
    maps = {PRETRAINED: taps.extract(images, encoder), UNTRAINED: taps.extract(images, encoder + RANDOM)}
    return maps if features is None else maps | {TOKEN: token(features)}


@dataclass(frozen=True)
class Setting:
    """A row as it is trained: at a learning rate, ACIR's losses with this α and form of L_Q."""

    row: Row
    lr: float
    alpha: float = 0.0
    quantisation: str = "ours"

    @property
    def network(self) -> "Setting":
        """What is trained for it: ranking by content trains nothing, α is ACIR's alone, and at 0 no form matters."""
        alpha = self.alpha if self.row.loss in OURS else 0.0
        form = self.quantisation if alpha else "ours"
        return Setting(replace(self.row, name="", content=False, like=""), self.lr, alpha, form)


@dataclass(frozen=True, eq=False)
class Scored:
    """A training of a row: its values per query, the mean loss of every epoch, steps, parameters, bytes of an image."""

    name: str
    repeat: int
    per_query: PerQuery
    history: Sequence[float] = field(default_factory=list)
    steps: int = 0
    parameters: int = 0
    size: float = np.nan


def trained(
    material: Material, settings: Sequence[Setting], splits: Sequence[Split], what: str = "networks"
) -> dict[tuple[Setting, int], Trained]:
    """The network of every setting for every split, of which the images that teach are the same.

    Keys: :attr:`Setting.network` and the split's repeat; settings that differ in nothing that is trained share one.
    """
    networks, learnt = {}, splits[0].train
    own = dict.fromkeys(setting.network for setting in settings)
    for eye in dict.fromkeys(one.row.eye for one in own):
        keys = [(one, split) for one in own if one.row.eye == eye for split in splits]
        jobs = []
        for one, split in keys:
            loss = material.losses(one.row.design.bits, learnt, one.alpha, one.quantisation)[one.row.loss]
            jobs.append(Job(f"{one.row.loss}, {one.row.design}", one.row.design, loss, one.lr, split.seed))
        given = [material.eyes[eye]], material.labels, material.prints, learnt, jobs, material.schedule
        made = acir.fit(*given, workers=material.workers, what=what)
        networks |= {(one, split.repeat): network for (one, split), network in zip(keys, made, strict=True)}
    return networks


def scored(
    material: Material, settings: Sequence[Setting], splits: Sequence[Split], what: str = "networks"
) -> list[list[Scored]]:
    """What every setting finds in the closed gallery, trained on every split; a list over splits for each."""
    networks = trained(material, settings, splits, what)
    keys = [(setting, split) for setting in settings for split in splits]
    jobs = (
        joblib.delayed(score)(
            networks[s.network, split.repeat], material.eyes[s.row.eye], material.labels, split, s.row
        )
        for s, split in keys
    )
    scores, n = list(spread(jobs, material.workers)), len(splits)
    return [scores[at : at + n] for at in range(0, len(keys), n)]


def score(network: Trained, seen: np.ndarray | Taps, labels: np.ndarray, split: Split, row: Row) -> Scored:
    """What a network finds, ranked as the ``row`` says."""
    torch.set_num_threads(1)  # as it was trained, so that the result does not depend on the processors
    h, levels = network.outputs(seen)
    values = by_content(h, levels, labels, split) if row.content else by_code(h, labels, split)
    health = network.history, network.steps, parameters(network), h.shape[1] / 8
    return Scored(row.name, split.repeat, values, *health)


def parameters(one: Trained) -> int:
    """How many numbers were trained for the code: without the shallow map's convolution where nothing reads it."""
    unused = one.network.narrow[0].parameters() if one.design.narrow and not one.design.fusion else ()
    return sum(value.numel() for value in one.network.parameters()) - sum(value.numel() for value in unused)


def by_code(h: np.ndarray, labels: np.ndarray, split: Split) -> PerQuery:
    """The signs of ``h: (n, bits)``, ranked by Hamming distance in the closed gallery, ties in expectation."""
    return hashing.evaluate(h[split.test], h[split.train], labels[split.test], labels[split.train], KS)


def by_content(h: np.ndarray, levels: Sequence[np.ndarray], labels: np.ndarray, split: Split) -> PerQuery:
    """The same, and where distances are equal by the mean correlation of ``levels``, (n, ·) each (Section 3.5)."""
    codes = hashing.pack(h[split.test]), hashing.pack(h[split.train])
    gallery = [level[split.train] for level in levels]
    relevant = labels[split.test][:, None] == labels[split.train]
    values = []
    for start in range(0, len(split.test), BLOCK):
        rows = slice(start, start + BLOCK)
        near = hashing.content_similarity([level[split.test[rows]] for level in levels], gallery)
        key = hashing.content_key(hashing.hamming(codes[0][rows], codes[1]), near)
        both = [retrieval.average_precision_at_k(key, relevant[rows], KS, z) for z in ("min", "hits")]
        values.append(torch.cat(both, dim=1).numpy())
    columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], KS], names=["metric", "k"])
    sizes = np.full(len(split.test), len(split.train))
    return PerQuery(pd.DataFrame(np.concatenate(values), columns=columns), labels[split.test], relevant.sum(1), sizes)


def by_cosine(x: np.ndarray, labels: np.ndarray, split: Split) -> PerQuery:
    """Numbers ``x: (n, d)`` as they are, ranked by cosine in the closed gallery."""
    z = torch.from_numpy(np.ascontiguousarray(x, dtype=np.float32))
    return retrieval.evaluate(z[split.test], z[split.train], labels[split.test], labels[split.train], Sphere(), KS)
