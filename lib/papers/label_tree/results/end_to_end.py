"""Encoder and head trained together on new crops in every step, and the encoder as it was before (section 4.2)."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lib import paths
from lib.datasets.content import content
from lib.datasets.table import ImageTable
from lib.encoders import backbones, lite0
from lib.geometry import Geometry, Sphere
from lib.heads.label_tree import ProjectionHead
from lib.losses import label_tree as losses
from lib.papers.label_tree import experiment
from lib.papers.label_tree.experiment import Images, Scored
from lib.training import finetune, kept, together, two_views
from lib.training.label_tree import Objective
from lib.training.methods import Health, points_at_rim
from lib.training.photos import Preparation
from lib.training.splits import Split

END, BEFORE = ", end to end", "before training, encoder"
PLACES = ("head", "encoder")


@dataclass(frozen=True)
class Plan:
    """What is trained: the name of an encoder (lite0 or timm), how long and how fast, and what the network sees."""

    encoder: str
    settings: two_views.Settings
    preparation: Preparation


def run(
    seen: Images,
    images: ImageTable,
    objectives: Mapping[str, Objective],
    several: Sequence[Split],
    plan: Plan,
    *,
    store: Path | None = paths.TRAINED,
) -> dict[str, list[Scored]]:
    """Every objective trained on every split: "HWC, end to end, head" and "..., encoder", and ``BEFORE``.

    images: the table of ``seen``. Values are those of :func:`lib.papers.label_tree.experiment.measures`: of the head's
    embedding, and of the encoder's feature, which downstream work would take.
    """
    shown = content(images)
    untouched = kept.once(store, _key(shown, "before", plan.encoder, plan.preparation), lambda: _before(images, plan))
    found: dict[str, list[Scored]] = {BEFORE: []}
    for split in several:
        found[BEFORE].append(_scored(BEFORE, split, untouched["z"], Sphere(), Health(), [], seen, store))
    for name, objective in objectives.items():
        for split in several:
            key = _key(shown, objective, plan, kept.digest(split.train, seen.leaves), split.seed, seen.tree.parents)
            start = untouched["z"][torch.from_numpy(split.train)]
            broken_off = None if store is None else store / f"{key}.checkpoint"
            train = partial(_trained, seen, images, name, objective, split, plan, start, broken_off)
            made = kept.once(store, key, train)
            spaces = {"head": objective.geometry, "encoder": Sphere()}
            history = made["history"]
            for place in PLACES:
                rim = (
                    points_at_rim(objective, made["head"][torch.from_numpy(split.train)]) if place == "head" else np.nan
                )
                health = Health(float(np.mean(history[-10:])), rim, len(history))
                where = f"{name}{END}, {place}"
                one = _scored(where, split, made[place], spaces[place], health, history, seen, store)
                found.setdefault(where, []).append(one)
    return found


def _key(shown: str, *others: object) -> str:
    """A hash of what the images ``shown`` hold, of ``others``, by what they print, and of the code that trains."""
    modules = {__name__, two_views.__name__, losses.__name__, ProjectionHead.__module__}
    code = kept.code(modules, "torch", "timm", "torchvision", "geoopt", "lightning_fabric")
    return hashlib.sha256(repr([shown, *others, code]).encode()).hexdigest()


def _encoder(plan: Plan) -> nn.Module:
    return (lite0 if lite0.size(plan.encoder) else backbones).load(plan.encoder).model


def _before(images: ImageTable, plan: Plan) -> dict[str, Any]:
    encoder = _encoder(plan)
    return {"z": finetune.embed(nn.Sequential(encoder, nn.Identity()), images, plan.preparation.seen_by(encoder))[0]}


def _trained(
    seen: Images,
    images: ImageTable,
    name: str,
    objective: Objective,
    split: Split,
    plan: Plan,
    start: torch.Tensor,
    store: Path | None,
) -> dict[str, Any]:
    """Embeddings of all images and the loss of every step; ``start``: features of the training images before it."""
    encoder, settings = _encoder(plan), plan.settings
    generator = torch.Generator().manual_seed(split.seed)
    options = {"hidden": settings.hidden, "geometry": objective.geometry, "generator": generator}
    head = ProjectionHead(encoder.num_features, settings.dim_out, **options)
    if objective.start_norm:
        head.start(start, objective.start_norm)
    loss = objective.loss(seen.tree, settings.dim_out, split.seed)
    learnt = images.take(images.rows["image_id"].iloc[split.train])
    what = f"{name}, end to end, seed {split.seed}"
    leaves = seen.leaves[split.train]
    preparation = plan.preparation.seen_by(encoder)
    options = {"seed": split.seed, "store": store, "what": what}
    given = encoder, head, loss, learnt, leaves, settings, preparation
    network, done = together.launched(two_views.train, *given, **options)
    features, z = finetune.embed(network, images, preparation)
    return {"encoder": features, "head": z, "history": done}


def _scored(
    name: str,
    split: Split,
    z: torch.Tensor,
    space: Geometry,
    health: Health,
    history: list[float],
    seen: Images,
    store: Path | None,
) -> Scored:
    values, apart = experiment.measured(z, space, seen.leaves, seen.tree, split, store, experiment.measuring())
    return Scored(name, split, health, history, values.assign(group=seen.groups[split.test]), apart)


def first_fold(several: Sequence[Split], n_trainings: int) -> list[Split]:
    """The first split, ``n_trainings`` times with other seeds."""
    first = several[0]
    return [replace(first, seed=first.seed + 1000 * repeat, repeat=repeat) for repeat in range(n_trainings)]
