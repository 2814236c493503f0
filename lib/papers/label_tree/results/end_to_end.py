"""Encoder and head trained together on new crops in every step, and the encoder as it was before (section 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

from lib import paths
from lib.datasets.table import ImageTable
from lib.geometry import Geometry, Sphere
from lib.heads.label_tree import ProjectionHead
from lib.losses import label_tree as losses
from lib.papers.label_tree import experiment
from lib.papers.label_tree.experiment import Images, Scored
from lib.training.label_tree import Objective
from lib.training.methods import Health, points_at_rim
from lib.training.splits import Split
from lib.training.whole import Plan, Whole

END, BEFORE = ", end to end", "before training, encoder"
PLACES = ("head", "encoder")


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
    whole = Whole(images, plan, store, frozenset({__name__, losses.__name__, ProjectionHead.__module__}))
    untouched = whole.before()
    found = {BEFORE: [_scored(BEFORE, split, untouched, Sphere(), Health(), [], seen, store) for split in several]}
    for name, objective in objectives.items():
        for split in several:
            make = partial(_made, seen, objective, split, plan, untouched[torch.from_numpy(split.train)])
            what = f"{name}{END}, seed {split.seed}"
            told = objective, seen.tree.parents
            made = whole.trained(split.train, seen.leaves[split.train], make, split.seed, what, *told)
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


def _made(
    seen: Images, objective: Objective, split: Split, plan: Plan, start: torch.Tensor, dim: int
) -> tuple[nn.Module, nn.Module]:
    """Head and loss; ``start``: features of the training images before training."""
    settings, generator = plan.settings, torch.Generator().manual_seed(split.seed)
    options = {"hidden": settings.hidden, "geometry": objective.geometry, "generator": generator}
    head = ProjectionHead(dim, settings.dim_out, **options)
    if objective.start_norm:
        head.start(start, objective.start_norm)
    return head, objective.loss(seen.tree, settings.dim_out, split.seed)


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
