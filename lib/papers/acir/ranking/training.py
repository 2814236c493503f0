"""ACIR's network and hash heads of one layer, tuned and trained alike on maps of a frozen encoder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.papers.acir import heads
from lib.papers.acir.choices import l_wsc
from lib.papers.acir.heads import ACIR, Plan
from lib.papers.acir.ranking.measures import HAMMING, OPPONENTS, Coder, Scene, measured
from lib.study.rates import choose_middle
from lib.training import acir, experiment
from lib.training.acir import Design, Job
from lib.training.splits import Split, repeated


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
    """mAP (min(k, R), Hamming alone) of every method at each learning rate on validation images, mean of ``n_seeds``.

    groups: (n,) over which rates are paired. Columns method, lr, and those of :func:`lib.study.rates.choose_middle`.
    """
    scene = Scene(split.test, split.train, material.labels)
    values: dict[tuple[str, float], list[pd.Series]] = {}
    for lr in candidates:
        rates = dict.fromkeys((ACIR, *OPPONENTS), lr)
        for coder in trained(material, [material.design.bits], rates, split, n_seeds, workers=workers):
            ap = measured(coder, None, scene, [HAMMING])["ap_min"]
            values.setdefault((coder.method, lr), []).append(ap)
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
    splits = repeated([split], n_seeds)
    return [
        *_networks(material, lengths, rates[ACIR], splits, workers),
        *_heads(material, lengths, rates, splits, workers),
    ]


def _networks(
    material: Material, lengths: Sequence[int], lr: float, splits: Sequence[Split], workers: int
) -> list[Coder]:
    loss = l_wsc(material.labels, splits[0].train, material.prints.shape[1])
    pairs = [(bits, split) for bits in lengths for split in splits]
    jobs = [
        Job(f"{ACIR}-{bits}bit", replace(material.design, bits=bits), loss, lr, split.seed) for bits, split in pairs
    ]
    learnt = material.views, material.labels, material.prints, splits[0].train
    done = acir.fit(*learnt, jobs, material.plan.schedule, workers=workers, what="ACIR's networks")
    coders = []
    for (bits, split), fit in zip(pairs, done, strict=True):
        coded = fit.outputs(material.views[0])
        levels = dict(zip(fit.network.level_names, coded.levels, strict=True))
        coders.append(Coder(ACIR, bits, split.repeat, coded.h, fit.history, fit.steps, levels))
    return coders


def _heads(
    material: Material, lengths: Sequence[int], rates: Mapping[str, float], splits: Sequence[Split], workers: int
) -> list[Coder]:
    plan, rows = material.plan, material.rows
    pairs = [(bits, name) for bits in lengths for name in OPPONENTS]
    methods = [plan.method(name, heads.losses(plan, bits)[name], bits, rates[name]) for bits, name in pairs]
    done = experiment.fit(rows, material.labels, methods, splits, workers=workers)
    return [
        Coder(name, bits, fit.split.repeat, fit.embed(rows).numpy(), fit.history, fit.health.steps)
        for (bits, name), method in zip(pairs, methods, strict=True)
        for fit in done[method.name]
    ]


def health(coders: Sequence[Coder]) -> pd.DataFrame:
    """How training ended: columns method, bits, loss_first, loss_last (mean of an epoch, over trainings), steps."""
    columns = ["method", "bits", "loss_first", "loss_last", "steps"]
    rows = [(one.method, one.bits, one.history[0], one.history[-1], one.steps) for one in coders]
    return pd.DataFrame(rows, columns=columns).groupby(["method", "bits"], sort=False).mean().reset_index()
