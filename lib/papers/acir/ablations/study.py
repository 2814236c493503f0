"""What is chosen and trained for Tables 2, 4 and 5, for α, and for stem and network together (Section 4.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch

from lib.datasets.table import ImageTable
from lib.encoders import taps
from lib.encoders.taps import pooled
from lib.metrics.retrieval import PerQuery
from lib.papers.acir.ablations.networks import Material, Scored, Setting, by_code, by_cosine, score, scored, trained
from lib.papers.acir.ablations.rows import CAUCHY, FULL, LAYER, PRETRAINED, STRUCTURE, Row
from lib.papers.acir.heads import TOP
from lib.processes import spread
from lib.study.rates import choose_middle
from lib.training import experiment
from lib.training.acir import Job
from lib.training.acir_end_to_end import fit_end_to_end
from lib.training.hashing import Even, Settings
from lib.training.methods import Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split
from lib.training.sweep import Loss

FROZEN, WHOLE = "stem frozen", "end to end"


def run(
    material: Material,
    rows: Sequence[Row],
    rates: Mapping[str, float],
    alpha: float,
    splits: Sequence[Split],
    what: str,
) -> dict[str, list[Scored]]:
    """Every row trained on each of ``splits`` at its rate (by :attr:`Row.rate`), ACIR's losses with ``alpha``."""
    settings = [Setting(row, rates[row.rate], alpha) for row in rows]
    return {row.name: one for row, one in zip(rows, scored(material, settings, splits, what), strict=True)}


def choose(
    material: Material, rows: Sequence[Row], lrs: Sequence[float], aside: Sequence[Split], groups: np.ndarray
) -> pd.DataFrame:
    """mAP (min(k, R)) of every row at every rate on patients set aside, at α = 0, what the printed loss is (AC-4).

    groups: (n,) over which rates are paired. Columns name (:attr:`Row.rate`), lr, and those of
    :func:`lib.study.rates.choose_middle`.
    """
    own: dict[str, Row] = {}
    for row in rows:
        if row.rate == row.name or row.rate not in own:
            own[row.rate] = replace(row, content=False)
    settings = [Setting(row, lr) for row in own.values() for lr in lrs]
    tried = pd.DataFrame({"name": [name for name in own for _ in lrs], "lr": [one.lr for one in settings]})
    return _chosen(material, settings, tried, aside, groups, "lr")


def choose_alpha(
    material: Material, row: Row, lr: float, alphas: Sequence[float], aside: Sequence[Split], groups: np.ndarray
) -> pd.DataFrame:
    """The same for α of our L_Q: columns name, alpha, and those of the rule."""
    tried = pd.DataFrame({"name": row.name, "alpha": list(alphas)})
    return _chosen(material, [Setting(row, lr, alpha) for alpha in alphas], tried, aside, groups, "alpha")


def _chosen(
    material: Material,
    settings: list[Setting],
    tried: pd.DataFrame,
    aside: Sequence[Split],
    groups: np.ndarray,
    by: str,
) -> pd.DataFrame:
    scores = scored(material, settings, aside, "learning rates" if by == "lr" else "α")
    values = [[100 * one.per_query.values["ap_min", TOP] for one in of_setting] for of_setting in scores]
    return choose_middle(tried, values, groups[aside[0].test], "name", [by])


def by_alpha(
    material: Material, row: Row, lr: float, alphas: Sequence[float], splits: Sequence[Split]
) -> dict[tuple[str, float], list[Scored]]:
    """:data:`FULL` with each form of L_Q at each α: (form, α) → one per training.

    As printed and in the authors' code the term is a constant; these two are trained once, at 0 and the largest α, to
    see whether they end where α = 0 does.
    """
    ours = scored(material, [Setting(row, lr, alpha) for alpha in alphas], splits, "α")
    keys = [(form, alpha) for form in ("printed", "code") for alpha in alphas if alpha in {0.0, max(alphas)}]
    others = scored(material, [Setting(row, lr, alpha, form) for form, alpha in keys], splits[:1], "α, other forms")
    return {("ours", a): one for a, one in zip(alphas, ours, strict=True)} | dict(zip(keys, others, strict=True))


def longer(
    material: Material, rows: Sequence[Row], rates: Mapping[str, float], alpha: float, split: Split, times: int
) -> dict[str, list[Scored]]:
    """``rows`` trained once for as many epochs as all others, and once for ``times`` as many; the epochs by name."""
    scores = {}
    for epochs in (material.schedule.epochs, times * material.schedule.epochs):
        changed = replace(material, schedule=replace(material.schedule, epochs=epochs))
        made = run(changed, rows, rates, alpha, [split], f"{epochs} epochs")
        scores |= {f"{name}, {epochs} epochs": of_row for name, of_row in made.items()}
    return scores


def layers(
    material: Material, bits: int, lrs: Sequence[float], aside: Sequence[Split], splits: Sequence[Split], alpha: float
) -> dict[str, list[Scored]]:
    """:data:`LAYER` with the Cauchy loss and with L_WSC, its rate the best of ``lrs`` on patients set aside."""
    x = np.concatenate([pooled(material.eyes[PRETRAINED]), material.prints], axis=1)
    scores = {}
    for loss in (CAUCHY, STRUCTURE):
        tries, known = (material.losses(bits, one[0].train, alpha)[loss] for one in (aside, splits))
        tried = [
            np.mean([_values(one, x, material).values["ap_min", TOP].mean() for one in heads])
            for heads in _heads(material, x, tries, bits, lrs, aside)
        ]
        (heads,) = _heads(material, x, known, bits, [lrs[int(np.argmax(tried))]], splits)
        name, size = LAYER.format(loss), sum(value.numel() for value in heads[0].network.layers.parameters())
        scores[name] = [
            Scored(name, one.split.repeat, _values(one, x, material), one.history, one.health.steps, size, bits / 8)
            for one in heads
        ]
    return scores


def _heads(
    material: Material, x: np.ndarray, loss: Loss, bits: int, lrs: Sequence[float], splits: Sequence[Split]
) -> list[Sequence[Fitted]]:
    """A linear layer at each rate, on features and fingerprints, as notebook 31 trains it: Adam, no warm-up."""
    head, recipe = Settings(loss, fingerprint=material.prints.shape[1]), Recipe("raw", x.shape[1], bits)
    methods = [Method(f"{lr:g}", recipe, head, replace(material.schedule, lr=lr)) for lr in lrs]
    return list(experiment.fit(x, material.labels, methods, splits, workers=material.workers, what="heads").values())


def _values(one: Fitted, x: np.ndarray, material: Material) -> PerQuery:
    return by_code(one.embed(x).numpy(), material.labels, one.split)


def floats(
    material: Material, features: np.ndarray, row: Row, lr: float, alpha: float, splits: Sequence[Split]
) -> dict[str, list[Scored]]:
    """What is not compressed, by cosine: the encoder's feature (n, d), the pooled map, and what ACIR makes codes of."""
    maps, labels = material.eyes[PRETRAINED], material.labels
    known = {"feature of the encoder": features, "pooled deep map": pooled(maps)}
    known = {f"{name}, {x.shape[1]} numbers": x for name, x in known.items()}
    scores = {
        name: [Scored(name, 0, by_cosine(x, labels, splits[0]), size=4 * x.shape[1])] for name, x in known.items()
    }
    setting = Setting(row, lr, alpha)
    for (_, repeat), network in trained(material, [setting], splits).items():
        levels = np.concatenate(network.outputs(maps).levels[1:], axis=1)
        name, size = f"what {FULL} makes its code of, {levels.shape[1]} numbers", 4 * levels.shape[1]
        values = by_cosine(levels, labels, splits[0])
        one = Scored(name, repeat, values, network.history, network.steps, size=size)
        scores.setdefault(name, []).append(one)
    return scores


@dataclass(frozen=True)
class Plan:
    """End to end: the stem, the side of what it sees, the schedule of both trainings, and the stem's rate."""

    encoder: str
    pixels: int
    schedule: Even
    lr: float


def frozen_stem(images: ImageTable, known: Material, plan: Plan) -> Material:
    """What the frozen stem makes of images of that size, for the same classes and fingerprints."""
    return replace(known, eyes={PRETRAINED: taps.extract(images, plan.encoder)}, schedule=plan.schedule)


def strongest(rows: Sequence[Row], tried: pd.DataFrame, n: int = 2) -> list[Row]:
    """The last of ``rows``, and before it the ``n`` others that are best on patients set aside, at their rates.

    tried: of :func:`choose`, on the frozen stem. No query has a say in who is an opponent.
    """
    best = tried[tried["chosen"]].set_index("name")["validation"]
    names = set(best.loc[[row.rate for row in rows[:-1]]].nlargest(n).index)
    return [*(row for row in rows[:-1] if row.rate in names), rows[-1]]


def end_to_end(
    images: ImageTable,
    frozen: Material,
    plan: Plan,
    rows: Sequence[Row],
    rates: Mapping[str, float],
    alpha: float,
    splits: Sequence[Split],
) -> dict[str, list[Scored]]:
    """Every row trained on frozen maps (of :func:`frozen_stem`) and with the stem: "ACIR, end to end" and so on."""
    scores = {f"{name}, {FROZEN}": one for name, one in run(frozen, rows, rates, alpha, splits, FROZEN).items()}
    pixels = taps.pixels(images, plan.encoder)
    jobs = (
        joblib.delayed(_whole)(pixels, frozen, plan, row, rates[row.rate], alpha, one) for row in rows for one in splits
    )
    for one in spread(jobs, frozen.workers):
        scores.setdefault(one.name, []).append(one)
    return scores


def _whole(pixels: np.ndarray, frozen: Material, plan: Plan, row: Row, lr: float, alpha: float, split: Split) -> Scored:
    torch.set_num_threads(1)  # so that the result does not depend on the processors
    loss, name = frozen.losses(row.design.bits, split.train, alpha)[row.loss], f"{row.name}, {WHOLE}"
    job = Job(name, row.design, loss, lr, split.seed)
    given = pixels, frozen.labels, frozen.prints, split.train, job, plan.schedule, plan.encoder, plan.pixels
    made = fit_end_to_end(*given, stem_lr=plan.lr, what=f"{name}, seed {split.seed}")
    return score(made, pixels, frozen.labels, split, replace(row, name=name))


def end_to_end_pairs(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Each row end to end against itself on the frozen stem, and the last one against the others."""
    names, last = [row.name for row in rows], rows[-1].name
    learnt = [(f"{name}, {WHOLE}", f"{name}, {FROZEN}") for name in names]
    return learnt + [(f"{last}, {WHOLE}", f"{name}, {WHOLE}") for name in names[:-1]]
