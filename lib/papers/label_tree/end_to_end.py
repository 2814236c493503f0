"""Encoder and head trained together on new crops in every step, and the encoder as it was before (section 4.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from lib.datasets.table import ImageTable
from lib.geometry import Geometry, Sphere
from lib.heads.label_tree import ProjectionHead
from lib.losses import label_tree as losses
from lib.papers.label_tree import experiment
from lib.papers.label_tree.experiment import Images, Scored
from lib.training import kept
from lib.training.label_tree import Objective
from lib.training.methods import Health, points_at_rim
from lib.training.splits import Split
from lib.training.whole import Plan, Whole

END, BEFORE = ", end to end", "before training, encoder"
PLACES = ("head", "encoder")


def run(
    seen: Images,
    images: ImageTable,
    named: Mapping[str, Objective],
    splits: Sequence[Split],
    plan: Plan,
    *,
    store: kept.Store = "trained",
) -> dict[str, list[Scored]]:
    """Every objective trained on every split: "HWC, end to end, head" and "..., encoder", and ``BEFORE``.

    images: the table of ``seen``. Measured are the head's embedding, and the encoder's feature below it.
    """
    whole = Whole(images, plan, store, frozenset({__name__, losses.__name__, ProjectionHead.__module__}))
    untouched = whole.before()

    def scored(name: str, split: Split, z: Tensor, space: Geometry, health: Health, history: list[float]) -> Scored:
        values = experiment.measured(z, space, seen, split, store, experiment.measuring())
        return Scored(name, split, health, history, values)

    scores = {BEFORE: [scored(BEFORE, split, untouched, Sphere(), Health(), []) for split in splits]}
    for name, objective in named.items():
        for split in splits:
            make = partial(_made, seen, objective, split, plan, untouched[torch.from_numpy(split.train)])
            what, about = f"{name}{END}, seed {split.seed}", (objective, seen.tree.parents)
            made = whole.trained(split.train, seen.leaves[split.train], make, split.seed, what, *about)
            history, steps = made["history"], len(made["history"])
            rim = points_at_rim(objective, made["head"][torch.from_numpy(split.train)])
            for place, space, at_rim in (("head", objective.geometry, rim), ("encoder", Sphere(), np.nan)):
                title, health = f"{name}{END}, {place}", Health(float(np.mean(history[-10:])), at_rim, steps)
                scores.setdefault(title, []).append(scored(title, split, made[place], space, health, history))
    return scores


def _made(
    seen: Images, objective: Objective, split: Split, plan: Plan, start: Tensor, dim: int
) -> tuple[nn.Module, nn.Module]:
    """Head and loss; ``start``: features of the training images before training."""
    settings, generator = plan.settings, torch.Generator().manual_seed(split.seed)
    options = {"hidden": settings.hidden, "geometry": objective.geometry, "generator": generator}
    head = ProjectionHead(dim, settings.dim_out, **options)
    if objective.start_norm:
        head.start(start, objective.start_norm)
    return head, objective.loss(seen.tree, settings.dim_out, split.seed)


def first_fold(splits: Sequence[Split], n_trainings: int) -> list[Split]:
    """The first split, ``n_trainings`` times with other seeds."""
    first = splits[0]
    return [replace(first, seed=first.seed + 1000 * repeat, repeat=repeat) for repeat in range(n_trainings)]
