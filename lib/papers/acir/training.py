"""ACIR's networks and hash heads on maps of a frozen encoder: trained alike in every section, and what they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import torch

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.geometry import Geometry
from lib.metrics import hashing, retrieval
from lib.metrics.retrieval import PerQuery
from lib.papers.acir import heads
from lib.papers.acir.heads import ACIR, TOP, Plan, l_wsc
from lib.study.scores import Scored
from lib.training import acir, experiment
from lib.training.acir import Design, Job, Trained
from lib.training.hashing import Even
from lib.training.methods import Fitted
from lib.training.splits import Split, repeated

RIVALS = ("CSQ", "DCH", "DPN")
"""Losses of the heads that stand beside ACIR's network."""

BLOCK = 256
"""Queries whose similarity to the whole gallery is in memory at a time."""


@dataclass(frozen=True, eq=False)
class Material:
    """What is learnt from: maps of each view of all n images, their labels (n,), fingerprints (n, p), and the schedule.

    views: the first is of the images themselves.
    """

    views: Sequence[Taps]
    labels: np.ndarray
    prints: np.ndarray
    schedule: Even
    workers: int = -1

    @property
    def pooled(self) -> np.ndarray:
        """(n, ·) what a head sees: the mean of the deep map over its pixels."""
        return taps.pooled(self.views[0])

    @property
    def x(self) -> np.ndarray:
        """Feature and fingerprint of every image, side by side."""
        return np.concatenate([self.pooled, self.prints], axis=1)

    def fit(self, jobs: Sequence[Job], rows: np.ndarray, what: str) -> list[Trained]:
        """A network for each job, trained on the images ``rows``."""
        given = list(self.views), self.labels, self.prints, rows, jobs, self.schedule
        return acir.fit(*given, workers=self.workers, what=what)


@dataclass(frozen=True, eq=False)
class Codes:
    """What a training makes of all n images.

    h: (n, bits) numbers before the sign. levels: name → (n, ·) means of the network's levels, from shallow to deep;
    empty for a head. history: the mean loss of each epoch. steps: of the optimiser.
    """

    method: str
    repeat: int
    h: np.ndarray
    history: Sequence[float]
    steps: int
    levels: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def bits(self) -> int:
        """The length of the code."""
        return self.h.shape[1]

    @property
    def joined(self) -> np.ndarray:
        """(n, ·) what the code is made of: the levels but the shallow one."""
        return np.concatenate(list(self.levels.values())[1:], axis=1)


def of_network(name: str, repeat: int, network: Trained, images: Taps | np.ndarray) -> Codes:
    """Code and levels of a network; ``images``: their maps, or for one trained end to end their pixels."""
    coded = network.outputs(images)
    levels = dict(zip(network.network.level_names, coded.levels, strict=True))
    return Codes(name, repeat, coded.h, network.history, network.steps, levels)


def of_head(name: str, fitted: Fitted, x: np.ndarray) -> Codes:
    """The numbers of a head before the sign, from features ``x: (n, ·)``."""
    raw = replace(fitted, method=replace(fitted.method, head=replace(fitted.method.head, binary=False)))
    return Codes(name, fitted.split.repeat, raw.embed(x).numpy(), fitted.history, fitted.health.steps)


@dataclass(frozen=True, eq=False)
class Sized(Scored):
    """With parameters, how many were trained for it, and size, bytes of an image in the archive."""

    parameters: int = 0
    size: float = np.nan


def first_loss(answer: Scored) -> dict[str, float]:
    """The mean loss of the first epoch, NaN where nothing was trained: a measure of ``of_answers``."""
    return {"loss_first": answer.history[0] if len(answer.history) else np.nan}


def search(z: np.ndarray, labels: np.ndarray, split: Split, geometry: Geometry, ks: Sequence[int] = (TOP,)) -> PerQuery:
    """What the queries find in the closed gallery by the distance of ``z: (n, d)``."""
    query, gallery = torch.tensor(z[split.test]), torch.tensor(z[split.train])
    return retrieval.evaluate(query, gallery, labels[split.test], labels[split.train], geometry, ks)


def by_code(h: np.ndarray, labels: np.ndarray, split: Split, ks: Sequence[int]) -> PerQuery:
    """The signs of ``h: (n, bits)``, ranked by Hamming distance in the closed gallery, ties in expectation."""
    return hashing.evaluate(h[split.test], h[split.train], labels[split.test], labels[split.train], ks)


def by_content(codes: Codes, labels: np.ndarray, split: Split, ks: Sequence[int]) -> PerQuery:
    """The same, and where distances are equal by the mean correlation of the levels (Section 3.5)."""
    levels, packed = list(codes.levels.values()), hashing.pack(codes.h)
    relevant = labels[split.test][:, None] == labels[split.train]
    values = []
    for start in range(0, len(split.test), BLOCK):
        queries = split.test[start : start + BLOCK]
        key = content_keys(packed, levels, queries, split.train)
        rows = relevant[start : start + BLOCK]
        both = [retrieval.average_precision_at_k(key, rows, ks, z) for z in ("min", "hits")]
        values.append(torch.cat(both, dim=1).numpy())
    columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], ks], names=["metric", "k"])
    sizes = np.full(len(split.test), len(split.train))
    return PerQuery(pd.DataFrame(np.concatenate(values), columns=columns), labels[split.test], relevant.sum(1), sizes)


def content_keys(
    packed: np.ndarray, levels: Sequence[np.ndarray], queries: np.ndarray, gallery: np.ndarray
) -> np.ndarray:
    """Keys (q, m), the nearest smallest: by Hamming distance of ``packed`` codes, and by content where that is equal.

    levels: (n, ·) each, whose correlations are averaged. queries, gallery: indices of images.
    """
    similarity = hashing.content_similarity(*([level[rows] for level in levels] for rows in (queries, gallery)))
    return hashing.content_key(hashing.hamming(packed[queries], packed[gallery]), similarity)


def trained(
    material: Material,
    design: Design,
    lengths: Sequence[int],
    rates: Mapping[str, float],
    split: Split,
    n_seeds: int,
) -> list[Codes]:
    """ACIR's network and the heads at every length, each at its learning rate, ``n_seeds`` times."""
    splits, labels, x = repeated([split], n_seeds), material.labels, material.x
    pairs = [(bits, again) for bits in lengths for again in splits]
    loss, lr = l_wsc(labels, split.train), rates[ACIR]
    jobs = [Job(f"{ACIR}-{bits}bit", replace(design, bits=bits), loss, lr, again.seed) for bits, again in pairs]
    networks = zip(pairs, material.fit(jobs, split.train, "ACIR's networks"), strict=True)
    done = [of_network(ACIR, again.repeat, network, material.views[0]) for (_, again), network in networks]
    plan = Plan(material.pooled.shape[1], material.prints.shape[1], int(labels.max()) + 1, material.schedule)
    methods = [
        plan.method(name, heads.losses(plan, bits)[name], bits, rates[name]) for bits in lengths for name in RIVALS
    ]
    fitted = experiment.fit(x, labels, methods, splits, workers=material.workers)
    pairs = [(method.name.partition("-")[0], head) for method in methods for head in fitted[method.name]]
    return done + [of_head(name, head, x) for name, head in pairs]


def health(all_codes: Sequence[Codes]) -> pd.DataFrame:
    """How training ended: columns method, bits, loss_first, loss_last (mean of an epoch, over trainings), steps."""
    columns = ["method", "bits", "loss_first", "loss_last", "steps"]
    rows = [(codes.method, codes.bits, codes.history[0], codes.history[-1], codes.steps) for codes in all_codes]
    return pd.DataFrame(rows, columns=columns).groupby(["method", "bits"], sort=False).mean().reset_index()
