"""What is chosen, trained and searched for Tables 2, 4 and 5, for α, and end to end (Section 4.3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

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
from lib.papers.acir.ablations.rows import (
    CAUCHY,
    FULL,
    LAYER,
    PRETRAINED,
    STRUCTURE,
    TOKEN,
    UNTRAINED,
    Row,
    losses,
)
from lib.papers.acir.heads import TOP
from lib.papers.acir.training import Material, Sized, by_code, by_content, of_head, of_network, search
from lib.processes import spread
from lib.study.rates import choose_middle
from lib.training import experiment
from lib.training.acir import Job, Trained
from lib.training.acir_end_to_end import fit_end_to_end
from lib.training.hashing import Even, Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

KS = (1, TOP)
FROZEN, WHOLE = "stem frozen", "end to end"

Materials = Mapping[str, Material]
"""What a network sees (:attr:`Row.eye`) → what it learns from."""


def available(vit: str) -> bool:
    """Whether the weights of a vision transformer are on this machine."""
    return vit not in MODELS or zoo.wanting(vit) is None


def token(features: np.ndarray) -> Taps:
    """Features (n, d) as maps of one pixel, so that they are trained like the others; the shallow map is empty."""
    return Taps(np.zeros((len(features), 1, 1, 1), np.float16), features[:, :, None, None].astype(np.float16))


def materials(
    images: ImageTable, prints: np.ndarray, schedule: Even, encoder: str, features: np.ndarray | None = None
) -> dict[str, Material]:
    """Maps of an encoder, of the same encoder untrained, and of a vision transformer's ``features: (n, d)``, if any."""
    maps = {PRETRAINED: taps.extract(images, encoder), UNTRAINED: taps.extract(images, encoder + RANDOM)}
    maps |= {} if features is None else {TOKEN: token(features)}
    return {eye: Material([view], images.codes, prints, schedule) for eye, view in maps.items()}


def known(materials: Materials, rows: Iterable[Row]) -> list[Row]:
    """The rows whose input there is: without weights of a ViT its rows are left out."""
    return [row for row in rows if row.eye in materials]


@dataclass(frozen=True)
class Setting:
    """A row as it is trained: at a learning rate, ACIR's losses with this α and form of L_Q."""

    row: Row
    lr: float
    alpha: float = 0.0
    quantisation: str = "ours"

    def job(self, material: Material, split: Split) -> Job:
        """What is trained for it: ranking by content trains nothing, α is ACIR's only, and at 0 no form matters."""
        row, form = self.row, self.quantisation if self.alpha else "ours"
        loss = losses(material, row.design.bits, split.train, self.alpha, form)[row.loss]
        return Job(f"{row.loss}, {row.design}", row.design, loss, self.lr, split.seed)


def trained(
    materials: Materials, settings: Sequence[Setting], splits: Sequence[Split], what: str = "networks"
) -> list[list[Trained]]:
    """The network of every setting for every split, of which the training images are the same.

    Settings that differ in nothing that is trained share one.
    """
    jobs = [
        [(setting.row.eye, setting.job(materials[setting.row.eye], split)) for split in splits] for setting in settings
    ]
    networks = {}
    for eye in dict.fromkeys(s.row.eye for s in settings):
        own = dict.fromkeys(job for of_setting in jobs for seen, job in of_setting if seen == eye)
        fitted = materials[eye].fit(list(own), splits[0].train, what)
        networks |= {(eye, job): network for job, network in zip(own, fitted, strict=True)}
    return [[networks[job] for job in of_setting] for of_setting in jobs]


def scored(
    materials: Materials, settings: Sequence[Setting], splits: Sequence[Split], what: str = "networks"
) -> list[list[Sized]]:
    """What every setting finds in the closed gallery, trained on every split; a list over splits for each."""
    jobs = (
        joblib.delayed(score)(network, m.views[0], m.labels, split, setting.row.content)
        for setting, networks in zip(settings, trained(materials, settings, splits, what), strict=True)
        for m in [materials[setting.row.eye]]
        for network, split in zip(networks, splits, strict=True)
    )
    scores, n = list(spread(jobs, next(iter(materials.values())).workers)), len(splits)
    return [scores[at : at + n] for at in range(0, len(scores), n)]


def score(
    network: Trained, images: Taps | np.ndarray, labels: np.ndarray, split: Split, content: bool = False
) -> Sized:
    """What a network finds in the closed gallery, ties broken by ``content`` or in expectation."""
    torch.set_num_threads(1)  # as it was trained, so that the result does not depend on the processors
    codes = of_network("", split.repeat, network, images)
    values = by_content(codes, labels, split, KS) if content else by_code(codes.h, labels, split, KS)
    return Sized(split, values, network.history, network.steps, parameters(network), codes.bits / 8)


def parameters(fitted: Trained) -> int:
    """How many numbers were trained for the code: without the shallow map's convolution where nothing reads it."""
    unused = fitted.network.narrow[0].parameters() if fitted.design.narrow and not fitted.design.fusion else ()
    return sum(value.numel() for value in fitted.network.parameters()) - sum(value.numel() for value in unused)


def run(
    materials: Materials,
    rows: Sequence[Row],
    rates: Mapping[str, float],
    alpha: float,
    splits: Sequence[Split],
    what: str,
) -> dict[str, list[Sized]]:
    """Every row trained on each of ``splits`` at its rate (by :attr:`Row.rate`), ACIR's losses with ``alpha``."""
    settings = [Setting(row, rates[row.rate], alpha) for row in rows]
    return {row.name: scores for row, scores in zip(rows, scored(materials, settings, splits, what), strict=True)}


def choose(
    materials: Materials, rows: Sequence[Row], lrs: Sequence[float], aside: Sequence[Split], groups: np.ndarray
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
    tried = pd.DataFrame({"name": [name for name in own for _ in lrs], "lr": [setting.lr for setting in settings]})
    return _chosen(materials, settings, tried, aside, groups, "lr")


def choose_alpha(
    materials: Materials, row: Row, lr: float, alphas: Sequence[float], aside: Sequence[Split], groups: np.ndarray
) -> pd.DataFrame:
    """The same for α of our L_Q: columns name, alpha, and those of the rule."""
    tried = pd.DataFrame({"name": row.name, "alpha": list(alphas)})
    return _chosen(materials, [Setting(row, lr, alpha) for alpha in alphas], tried, aside, groups, "alpha")


def _chosen(
    materials: Materials,
    settings: list[Setting],
    tried: pd.DataFrame,
    aside: Sequence[Split],
    groups: np.ndarray,
    by: str,
) -> pd.DataFrame:
    scores = scored(materials, settings, aside, "learning rates" if by == "lr" else "α")
    values = [[100 * training.per_query.values["ap_min", TOP] for training in of_setting] for of_setting in scores]
    return choose_middle(tried, values, groups[aside[0].test], "name", [by])


def by_alpha(
    materials: Materials, row: Row, lr: float, alphas: Sequence[float], splits: Sequence[Split]
) -> dict[tuple[str, float], list[Sized]]:
    """:data:`FULL` with each form of L_Q at each α: (form, α) → one per training.

    As printed and in the authors' code the term is a constant; these two are trained once, at 0 and the largest α, to
    see whether they end where α = 0 does.
    """
    ours = scored(materials, [Setting(row, lr, alpha) for alpha in alphas], splits, "α")
    keys = [(form, alpha) for form in ("printed", "code") for alpha in alphas if alpha in {0.0, max(alphas)}]
    others = scored(materials, [Setting(row, lr, alpha, form) for form, alpha in keys], splits[:1], "α, other forms")
    by_alpha = {("ours", alpha): trainings for alpha, trainings in zip(alphas, ours, strict=True)}
    return by_alpha | dict(zip(keys, others, strict=True))


def layers(
    material: Material, bits: int, lrs: Sequence[float], aside: Sequence[Split], splits: Sequence[Split], alpha: float
) -> dict[str, list[Sized]]:
    """:data:`LAYER` with the Cauchy loss and with L_WSC, its rate the best of ``lrs`` on patients set aside."""
    scores = {}
    for loss in (CAUCHY, STRUCTURE):
        tried = [
            np.mean([training.per_query.values["ap_min", TOP].mean() for training in trainings])
            for trainings in _layers(material, loss, bits, lrs, aside, alpha)
        ]
        (scores[LAYER.format(loss)],) = _layers(material, loss, bits, [lrs[int(np.argmax(tried))]], splits, alpha)
    return scores


def _layers(
    material: Material, loss: str, bits: int, lrs: Sequence[float], splits: Sequence[Split], alpha: float
) -> list[list[Sized]]:
    """A linear layer at each rate, on features and fingerprints, as notebook 31 trains it: Adam, no warm-up."""
    x, used = material.x, losses(material, bits, splits[0].train, alpha)[loss]
    head, recipe = Settings(used, fingerprint=material.prints.shape[1]), Recipe("raw", x.shape[1], bits)
    methods = [Method(f"{lr:g}", recipe, head, replace(material.schedule, lr=lr)) for lr in lrs]
    fitted = experiment.fit(x, material.labels, methods, splits, workers=material.workers, what="heads").values()
    return [
        [
            Sized(
                training.split,
                by_code(of_head("", training, x).h, material.labels, training.split, KS),
                training.history,
                training.health.steps,
                sum(value.numel() for value in training.network.layers.parameters()),
                bits / 8,
            )
            for training in trainings
        ]
        for trainings in fitted
    ]


def floats(
    material: Material, features: np.ndarray, row: Row, lr: float, alpha: float, splits: Sequence[Split]
) -> dict[str, list[Sized]]:
    """What is not compressed, by cosine: the encoder's feature (n, d), the pooled map, and what ACIR makes codes of."""
    scores: dict[str, list[Sized]] = {}

    def add(name: str, x: np.ndarray, split: Split, *health: object) -> None:
        values = search(x.astype(np.float32), material.labels, split, Sphere(), KS)
        answer = Sized(split, values, *health, size=4 * x.shape[1])
        scores.setdefault(f"{name}, {x.shape[1]} numbers", []).append(answer)

    add("feature of the encoder", features, splits[0])
    add("pooled deep map", material.pooled, splits[0])
    (networks,) = trained({row.eye: material}, [Setting(row, lr, alpha)], splits)
    for split, network in zip(splits, networks, strict=True):
        codes = of_network(FULL, split.repeat, network, material.views[0])
        add(f"what {FULL} makes its code of", codes.joined, split, network.history, network.steps)
    return scores


@dataclass(frozen=True)
class Plan:
    """End to end: the stem, the side of what it sees, the schedule of both trainings, and the stem's rate."""

    encoder: str
    pixels: int
    schedule: Even
    lr: float


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
) -> dict[str, list[Sized]]:
    """Every row trained on ``frozen`` maps of the stem and with the stem: "ACIR, end to end" and so on."""
    by_name = run({PRETRAINED: frozen}, rows, rates, alpha, splits, FROZEN)
    scores = {f"{name}, {FROZEN}": trainings for name, trainings in by_name.items()}
    pixels = taps.pixels(images, plan.encoder)
    pairs = [(row, split) for row in rows for split in splits]
    jobs = (joblib.delayed(_whole)(pixels, frozen, plan, row, rates[row.rate], alpha, split) for row, split in pairs)
    for (row, _), training in zip(pairs, spread(jobs, frozen.workers), strict=True):
        scores.setdefault(f"{row.name}, {WHOLE}", []).append(training)
    return scores


def _whole(pixels: np.ndarray, frozen: Material, plan: Plan, row: Row, lr: float, alpha: float, split: Split) -> Sized:
    torch.set_num_threads(1)  # so that the result does not depend on the processors
    loss, name = losses(frozen, row.design.bits, split.train, alpha)[row.loss], f"{row.name}, {WHOLE}"
    job = Job(name, row.design, loss, lr, split.seed)
    given = pixels, frozen.labels, frozen.prints, split.train, job, plan.schedule, plan.encoder, plan.pixels
    network = fit_end_to_end(*given, stem_lr=plan.lr, what=f"{name}, seed {split.seed}")
    return score(network, pixels, frozen.labels, split, row.content)


def end_to_end_pairs(rows: Sequence[Row]) -> list[tuple[str, str]]:
    """Each row end to end against itself on the frozen stem, and the last one against the others."""
    names, last = [row.name for row in rows], rows[-1].name
    learnt = [(f"{name}, {WHOLE}", f"{name}, {FROZEN}") for name in names]
    return learnt + [(f"{last}, {WHOLE}", f"{name}, {WHOLE}") for name in names[:-1]]
