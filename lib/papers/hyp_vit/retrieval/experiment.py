"""Heads on frozen features, and encoder and head trained end to end: unseen categories ask each other (section 3.3)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

from lib import paths
from lib.datasets.categories import Halves, held_out
from lib.datasets.table import ImageTable
from lib.encoders import backbones, lite0
from lib.geometry import Sphere
from lib.losses.hyp_vit import PRINTED_SPHERICAL, PairwiseCrossEntropy
from lib.metrics import retrieval
from lib.training import classifier, finetune, kept
from lib.training.by_class import ByClass
from lib.training.experiment import ask, fit
from lib.training.hyp_vit import Settings, flat, spherical
from lib.training.methods import Answer, Health, Method, points_at_rim
from lib.training.photos import Preparation
from lib.training.recipes import Recipe
from lib.training.splits import Split, repeated

NONE, NCA, LINEAR = "no head", "NCA", "linear classifier"
HYP, SPH, PRINTED = "Hyp", "Sph", "Sph, τ as printed"
FLAT, UNCLIPPED, INSIDE = "flat", "Hyp, not clipped", "Hyp, begun inside"
VALIDATION = 0.25
"""Of the categories that are learnt from, the share that learning rates and steps are chosen by."""


def heads(settings: Settings, dim: int, dim_out: int, schedule: ByClass) -> list[Method]:
    """The paper's head in the ball and on the sphere, and one thing changed at a time.

    Begun inside: the untrained outputs are brought to half of the clip radius, so that clipping leaves them alone.
    """
    inside = replace(settings, start_norm=(settings.clip_radius or 2.0) / 2)
    kinds = {
        HYP: settings,
        SPH: spherical(settings),
        PRINTED: spherical(settings, PRINTED_SPHERICAL),
        FLAT: flat(settings),
        UNCLIPPED: replace(settings, clip_radius=None),
        INSIDE: inside,
    }
    return [Method(name, Recipe("raw", dim, dim_out), kind, schedule) for name, kind in kinds.items()]


def opponents(
    settings: Settings, dim: int, dim_out: int, n: int, schedule: ByClass, classifier_lr: float
) -> list[Method]:
    """The features as they are, NCA, and a linear classifier of ``n`` categories."""
    seen = Recipe("raw", dim, dim_out)
    return [
        Method(NONE, replace(seen, dim_out=0), settings, search="cosine"),
        Method(NCA, Recipe("NCA", min(dim_out, dim), 0), settings),
        classifier.method(LINEAR, seen, n, schedule, classifier_lr),
    ]


def answers(
    x: np.ndarray,
    halves: Halves,
    methods: Sequence[Method],
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
    seed: int = 0,
    what: str = "heads",
) -> dict[str, list[Answer]]:
    """Fit ``methods`` on features ``x: (n, dim)`` of the categories that are learnt from; the others ask each other."""
    split = Split(0, halves.learnt, halves.queries, seed, held_out=halves.gallery)
    return _answers(x, halves.codes, methods, [split], ks, n_seeds, what)


def _answers(
    x: np.ndarray,
    codes: np.ndarray,
    methods: Sequence[Method],
    several: list[Split],
    ks: Sequence[int],
    n_seeds: int,
    what: str,
) -> dict[str, list[Answer]]:
    fitted = fit(x, codes, methods, repeated(several, n_seeds), what=what)
    images = np.arange(len(x))
    return ask(fitted, x, codes, ks, gallery="open", groups=images, what=f"{what}, queries")


def rates(
    x: np.ndarray, halves: Halves, methods: Sequence[Method], candidates: Sequence[float], *, seed: int = 0
) -> pd.DataFrame:
    """Recall@1 of every method at each learning rate on categories set aside of those that are learnt from.

    Columns method, lr, validation (percent), loss, chosen: the best of each method, of equal ones the first.
    """
    learnt, aside = held_out(halves, VALIDATION, seed)
    split, rows = Split(0, learnt, aside, seed), []
    for lr in candidates:
        several = [replace(one, schedule=replace(one.schedule, lr=lr)) for one in methods]
        for name, (answer,) in _answers(x, halves.codes, several, [split], [1], 1, f"learning rate {lr:g}").items():
            value = 100 * answer.per_query.values["hit_rate", 1].mean()
            rows.append({"method": name, "lr": lr, "validation": value, "loss": answer.health.loss})
    table = pd.DataFrame(rows).sort_values("method", kind="stable", key=lambda names: names.map(_order(methods)))
    best = table.groupby("method", sort=False)["validation"].idxmax()
    return table.assign(chosen=table.index.isin(best)).reset_index(drop=True)


def _order(methods: Sequence[Method]) -> dict[str, int]:
    return {one.name: number for number, one in enumerate(methods)}


def at_rates(methods: Sequence[Method], chosen: pd.DataFrame) -> list[Method]:
    """``methods`` with the learning rates that :func:`rates` chose."""
    lr = chosen[chosen["chosen"]].set_index("method")["lr"]
    return [replace(one, schedule=replace(one.schedule, lr=float(lr[one.name]))) for one in methods]


@dataclass(frozen=True)
class EndToEnd:
    """Encoder and head trained together: how long and how fast, and what the network sees.

    encoder: a network of :mod:`lib.encoders.lite0` or of timm. dim_out: length of the embedding.
    """

    encoder: str
    dim_out: int
    settings: finetune.Settings
    preparation: Preparation


def end_to_end(
    images: ImageTable,
    halves: Halves,
    kinds: Mapping[str, Settings],
    plan: EndToEnd,
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
    seed: int = 0,
    store: Path | None = paths.TRAINED,
) -> tuple[dict[str, list[Answer]], pd.DataFrame]:
    """Answers of the head and of the encoder of every kind and training, and the course of all trainings.

    Names are "Hyp, end to end, head" and "..., encoder". The step with the best Recall@1 of the head on categories set
    aside is kept (the paper names no rule). Steps count up to it. Columns of the course: method, repeat, step, loss,
    head, encoder (validation, percent).
    """
    split = Split(0, halves.learnt, halves.queries, seed, held_out=halves.gallery)
    found: dict[str, list[Answer]] = {}
    courses = []
    for name, kind in kinds.items():
        for one in repeated([split], n_seeds):
            known = _once(images, halves, name, kind, plan, one, store)
            courses.append(_course(known, f"{name}, end to end", one.repeat))
            for place, answer in _asked(halves, name, kind, plan, one, known, ks).items():
                found.setdefault(place, []).append(answer)
    return found, pd.concat(courses, ignore_index=True)


def _once(
    images: ImageTable, halves: Halves, name: str, kind: Settings, plan: EndToEnd, split: Split, store: Path | None
) -> dict[str, Any]:
    """Embeddings and features of all images, and the course of the training; trained once, then read."""
    code = kept.code({__name__, finetune.__name__, type(kind).__module__}, "torch", "timm", "torchvision")
    rows = images.rows[["image_id", "path"]].assign(name=halves.names)
    known = [images.name, joblib.hash(rows), joblib.hash([split.train, split.held_out]), kind, plan, split.seed, code]
    key = hashlib.sha256(repr(known).encode()).hexdigest()
    return kept.once(store, key, lambda: _trained(images, halves, name, kind, plan, split, store, key))


def _trained(
    images: ImageTable,
    halves: Halves,
    name: str,
    kind: Settings,
    plan: EndToEnd,
    split: Split,
    store: Path | None,
    key: str,
) -> dict[str, Any]:
    source = lite0 if lite0.size(plan.encoder) else backbones
    encoder = source.load(plan.encoder).model
    head = kind.make(Recipe("raw", encoder.num_features, plan.dim_out), split.seed)
    loss = PairwiseCrossEntropy(kind.geometry, kind.temperature, plan.settings.samples, kind.cosine)
    learnt, aside = held_out(halves, VALIDATION, split.seed)
    parts = (_part(images, halves, rows) for rows in (learnt, aside))
    checkpoint = None if store is None else store / f"{key}.checkpoint"
    options = {"seed": split.seed, "store": checkpoint, "what": f"{name}, end to end, seed {split.seed}"}
    done = finetune.finetune(encoder, head, loss, *parts, plan.settings, plan.preparation, **options)
    features, embeddings = finetune.embed(done.network, images, plan.preparation)
    return {
        "features": features,
        "embeddings": embeddings,
        "history": done.history.to_dict("list"),
        "scores": done.scores.to_dict("list"),
        "best": int(done.best["step"]),
    }


def _part(images: ImageTable, halves: Halves, rows: np.ndarray) -> ImageTable:
    """The images ``rows``, labelled by their category."""
    part = images.rows.iloc[rows].assign(label=halves.names[rows])
    return ImageTable(images.name, images.root, part, images.group_kind)


def _course(known: Mapping[str, Any], name: str, repeat: int) -> pd.DataFrame:
    losses = pd.DataFrame(known["history"])
    losses["step"] += 1  # taken so far, as the scores count them
    scores = pd.DataFrame(known["scores"])
    scores[["head", "encoder"]] *= 100
    return losses.merge(scores, on="step", how="outer").assign(method=name, repeat=repeat)


def _asked(
    halves: Halves, name: str, kind: Settings, plan: EndToEnd, split: Split, known: Mapping[str, Any], ks: Sequence[int]
) -> dict[str, Answer]:
    """The held-out images searched by the head's embedding, and by the encoder's feature with D_cos."""
    spaces = {"head": (known["embeddings"], kind.geometry), "encoder": (known["features"], Sphere())}
    best, losses = known["best"], known["history"]["loss"]
    ids, codes = np.arange(len(halves.codes)), halves.codes
    found = {}
    for place, (points, space) in spaces.items():
        dim = points.shape[1]
        method = Method(f"{name}, end to end, {place}", Recipe("raw", dim, dim), kind)
        rim = points_at_rim(kind, points[split.train]) if place == "head" else np.nan
        health = Health(float(np.mean(losses[max(0, best - 10) : best] or losses[:1])), rim, best)
        sides = [(points[rows], codes[rows], ids[rows]) for rows in (split.test, split.held_out)]
        (query, of_query, query_ids), (gallery, of_gallery, gallery_ids) = sides
        values = retrieval.evaluate(query, gallery, of_query, of_gallery, space, tuple(ks), query_ids, gallery_ids)
        found[method.name] = Answer(method, split, health, list(losses), gallery.norm(dim=-1).numpy(), values)
    return found
