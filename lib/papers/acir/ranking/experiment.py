"""ACIR's network beside hash heads: trained alike, their answers ranked with and without content (Section 3.5)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import pandas as pd

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.metrics import hashing, retrieval, ties
from lib.papers.acir.choices import l_wsc
from lib.papers.acir.hashing import experiment as heads
from lib.papers.acir.hashing.experiment import ACIR, TOP, Plan
from lib.processes import spread
from lib.progress import track
from lib.results.rates import choose_middle
from lib.training import acir, experiment
from lib.training.acir import Design, Job
from lib.training.splits import Split, repeated

OPPONENTS = ("CSQ", "DCH", "DPN")
HAMMING, BEST, WORST = "Hamming alone", "best order of ties", "worst order of ties"
POOLED, LEVELS = "pooled feature of the stem", "mean of all levels"
LEVEL = "level: "
"""Before the name of a level that ranks alone."""

QUERIES = 1200
"""No more images ask; of a larger set so many are drawn."""

WITHIN = 10
"""Answers of the query's class that are looked at for what is finer than the class."""


@dataclass(frozen=True, eq=False)
class Coder:
    """A trained method and what it makes of all n images.

    h: (n, bits) numbers before the sign. levels: name → (n, ·) features of the network, from shallow to deep; empty for
    a head, which has none of its own. history: mean loss of each epoch. steps: of the optimiser.
    """

    method: str
    bits: int
    repeat: int
    h: np.ndarray
    history: Sequence[float]
    steps: int
    levels: Mapping[str, np.ndarray] = field(default_factory=dict)

    def content(self, pooled: np.ndarray) -> dict[str, list[np.ndarray]]:
        """Ranking → the features that it compares; ``pooled``: (n, ·) of the frozen stem, which everybody has."""
        found = {POOLED: [pooled]}
        if self.levels:
            found |= {LEVELS: list(self.levels.values())}
            found |= {f"{LEVEL}{name}": [level] for name, level in self.levels.items()}
        return found


@dataclass(frozen=True, eq=False)
class Scene:
    """Who asks and what is searched (indices of images), and what is known of every image: (n,) each.

    finer: name → what is finer than the class, such as the subtype; only images of the query's class are looked at.
    own_out: the archive holds the queries, and each is left out of its own.
    """

    queries: np.ndarray
    gallery: np.ndarray
    labels: np.ndarray
    finer: Mapping[str, np.ndarray] = field(default_factory=dict)
    own_out: bool = False

    @property
    def relevant(self) -> np.ndarray:
        """(q, m) bool: which images are of the query's class."""
        return self.labels[self.queries][:, None] == self.labels[self.gallery]

    @property
    def others(self) -> np.ndarray:
        """(q, m) bool: which images are not the query itself."""
        return self.queries[:, None] != self.gallery

    def finer_hits(self, name: str) -> np.ndarray:
        """(q, m) bool: which images share what is finer than the class."""
        return self.finer[name][self.queries][:, None] == self.finer[name][self.gallery]

    def chance(self, name: str) -> float:
        """The share of hits among all other images of the class, percent, mean over queries that have any."""
        among = self.relevant & self.others
        n = among.sum(axis=1)
        return 100 * float(((among & self.finer_hits(name)).sum(axis=1)[n > 0] / n[n > 0]).mean())


def asking(split: Split, seed: int) -> np.ndarray:
    """The images that ask: all of ``split.test``, or :data:`QUERIES` of them drawn, in order."""
    if len(split.test) <= QUERIES:
        return split.test
    return np.sort(np.random.default_rng(seed).choice(split.test, QUERIES, replace=False))


@dataclass(frozen=True, eq=False)
class Material:
    """What all methods learn from: maps of each view of all n images, their labels (n,) and fingerprints (n, p).

    plan: of the heads; its schedule is the network's, too. design: of the network, at any length.
    """

    views: Sequence[Taps]
    labels: np.ndarray
    prints: np.ndarray
    plan: Plan
    design: Design

    @property
    def pooled(self) -> np.ndarray:
        """(n, ·) what a head sees: the mean of the deep map over its pixels."""
        return taps.pooled(self.views[0])

    @property
    def rows(self) -> np.ndarray:
        """Feature and fingerprint of every image."""
        return np.concatenate([self.pooled, self.prints], axis=1)


def choose(
    material: Material,
    candidates: Sequence[float],
    split: Split,
    n_seeds: int = 1,
    *,
    groups: np.ndarray | None = None,
    workers: int = -1,
) -> pd.DataFrame:
    """mAP (min(k, R), Hamming alone) of every method at each learning rate, on images set aside, mean of ``n_seeds``.

    groups: (n,) over which rates are paired. Columns method, lr, and those of :func:`lib.results.rates.choose_middle`.
    """
    asked = Scene(split.test, split.train, material.labels)
    values: dict[tuple[str, float], list[pd.Series]] = {}
    for lr in candidates:
        rates = dict.fromkeys((ACIR, *OPPONENTS), lr)
        for coder in trained(material, [material.design.bits], rates, split, n_seeds, workers=workers):
            found = measured(coder, None, asked, [HAMMING])["ap_min"]
            values.setdefault((coder.method, lr), []).append(found)
    rows = pd.DataFrame(list(values), columns=["method", "lr"])
    return choose_middle(rows, list(values.values()), None if groups is None else groups[split.test])


def trained(
    material: Material,
    lengths: Sequence[int],
    rates: Mapping[str, float],
    split: Split,
    n_seeds: int,
    *,
    workers: int = -1,
) -> list[Coder]:
    """ACIR's network and the heads at every length, each at its learning rate, ``n_seeds`` times."""
    return [
        *_networks(material, lengths, rates[ACIR], repeated([split], n_seeds), workers),
        *_heads(material, lengths, rates, repeated([split], n_seeds), workers),
    ]


def _networks(
    material: Material, lengths: Sequence[int], lr: float, splits: Sequence[Split], workers: int
) -> list[Coder]:
    loss = l_wsc(material.labels, splits[0].train, material.prints.shape[1])
    pairs = [(bits, one) for bits in lengths for one in splits]
    jobs = [Job(f"{ACIR}-{bits}bit", replace(material.design, bits=bits), loss, lr, one.seed) for bits, one in pairs]
    learnt = material.views, material.labels, material.prints, splits[0].train
    done = acir.fit(*learnt, jobs, material.plan.schedule, workers=workers, what="ACIR's networks")
    found = []
    for (bits, split), one in zip(pairs, done, strict=True):
        coded = one.outputs(material.views[0])
        levels = dict(zip(one.network.level_names, coded.levels, strict=True))
        found.append(Coder(ACIR, bits, split.repeat, coded.h, one.history, one.steps, levels))
    return found


def _heads(
    material: Material, lengths: Sequence[int], rates: Mapping[str, float], splits: Sequence[Split], workers: int
) -> list[Coder]:
    plan, rows = material.plan, material.rows
    pairs = [(bits, name) for bits in lengths for name in OPPONENTS]
    methods = [plan.method(name, heads.losses(plan, bits)[name], bits, rates[name]) for bits, name in pairs]
    done = experiment.fit(rows, material.labels, methods, splits, workers=workers)
    return [
        Coder(name, bits, one.split.repeat, one.embed(rows).numpy(), one.history, one.health.steps)
        for (bits, name), method in zip(pairs, methods, strict=True)
        for one in done[method.name]
    ]


def keys(coder: Coder, pooled: np.ndarray | None, scene: Scene) -> dict[str, np.ndarray]:
    """Every ranking as keys (q, m), the nearest smallest: by Hamming distance, and by each content where that is equal.

    ``pooled``: None for the Hamming distance alone.
    """
    packed = hashing.pack(coder.h)
    distance = hashing.hamming(packed[scene.queries], packed[scene.gallery])
    found: dict[str, np.ndarray] = {HAMMING: distance}
    for name, features in ({} if pooled is None else coder.content(pooled)).items():
        sides = ([level[rows] for level in features] for rows in (scene.queries, scene.gallery))
        found[name] = hashing.content_key(distance, hashing.content_similarity(*sides))
    return found


def measured(
    coder: Coder, pooled: np.ndarray | None, scene: Scene, rankings: Sequence[str] | None = None
) -> pd.DataFrame:
    """What every query gets from every ranking, a row each, percent.

    Columns method, bits, repeat, ranking, query (index of the image), ap_hits, ap_min (AP@100), tied (pairs of the
    first 100 whose order is open), and a column for each of ``scene.finer``: the share of hits in the first
    :data:`WITHIN` answers of the query's class. rankings: some of them; if not given all, with the bounds of the ties.
    """
    found = keys(coder, pooled, scene)
    relevant, others = scene.relevant, scene.others
    if scene.own_out:
        relevant &= others
        found = {name: np.where(others, key, coder.bits + 1) for name, key in found.items()}
    if rankings is None:
        best, worst = ties.orders(found[HAMMING], relevant)
        found |= {BEST: best, WORST: worst}
    else:
        found = {name: found[name] for name in rankings}
    k = min(TOP, len(scene.gallery))
    frames = []
    for name, key in found.items():
        values = {
            f"ap_{z}": 100 * retrieval.average_precision_at_k(key, relevant, [k], z).numpy()[:, 0]
            for z in ("hits", "min")
        }
        values["tied"] = 100 * ties.tied_pairs(key, k)
        for what in scene.finer:
            values[what] = 100 * ties.share_among(key, relevant & others, scene.finer_hits(what), WITHIN)
        about = {"method": coder.method, "bits": coder.bits, "repeat": coder.repeat, "ranking": name}
        frames.append(pd.DataFrame(about | {"query": scene.queries} | values))
    return pd.concat(frames, ignore_index=True)


def random_order(scene: Scene) -> dict[str, float]:
    """ap_hits and ap_min of an archive in random order, percent: all images at one distance, in expectation."""
    relevant = scene.relevant
    key = np.zeros(relevant.shape)
    found = {
        z: retrieval.average_precision_at_k(key, relevant, [min(TOP, len(scene.gallery))], z) for z in ("hits", "min")
    }
    return {f"ap_{z}": 100 * value.nanmean().item() for z, value in found.items()}


def all_measured(
    coders: Sequence[Coder], pooled: np.ndarray, scene: Scene, *, workers: int = -1, what: str = "rankings"
) -> pd.DataFrame:
    """:func:`measured` for every coder, one after the other."""
    jobs = (joblib.delayed(measured)(coder, pooled, scene) for coder in coders)
    frames = track(spread(jobs, workers), total=len(coders), what=what, unit="methods")
    return pd.concat(frames, ignore_index=True)
