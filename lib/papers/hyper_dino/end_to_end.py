"""The mapper and its flat twin with the encoder trained along, which the paper keeps frozen, and the encoder before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from lib.datasets.table import ImageTable
from lib.geometry import Geometry, Sphere
from lib.heads import HyperbolicMapper
from lib.losses.hyper_dino import ContrastiveLoss
from lib.metrics import retrieval
from lib.training import kept, two_views
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Answer, Health, Method, points_at_rim
from lib.training.recipes import Recipe
from lib.training.splits import Split
from lib.training.whole import Plan, Whole

END, BEFORE = ", end to end, ", "before training, encoder"
BALL, FLAT = "ball", "flat, half margin"
PAIRS = [
    (f"{BALL}{END}head", f"{FLAT}{END}head"),
    (f"{BALL}{END}encoder", f"{FLAT}{END}encoder"),
    (f"{BALL}{END}head", BEFORE),
    (f"{BALL}{END}encoder", BEFORE),
]
"""What is tested: the ball against its flat twin, by the head and by the encoder below it; both against no training."""


def plan(
    settings: Settings, dim_out: int, weight_decay: float, network: str, pixels: int, steps: int, batch_size: int
) -> Plan:
    """What is trained: a ``network`` and the mapper of ``settings``, on images of ``pixels`` by ``pixels``."""
    of = {"weight_decay": weight_decay, "hidden": settings.hidden, "dim_out": dim_out}
    return Plan(network, two_views.Settings(steps, batch_size, **of), two_views.Augmented(pixels, pixels))


class OfLabels(nn.Module):
    """The mapper's loss of two views of a batch, as :func:`lib.training.two_views.train` calls one."""

    def __init__(self, loss: ContrastiveLoss) -> None:
        super().__init__()
        self.loss = loss

    def forward(self, z: Tensor, classes: Tensor, *, images: Tensor) -> Tensor:
        """Embeddings (B, d) and classes (B,) give a number; two views of an image count as two of its class."""
        return self.loss(z, classes)


def run(
    images: ImageTable,
    labels: np.ndarray,
    settings: Settings,
    splits_of: Mapping[str, Sequence[Split]],
    plan: Plan,
    ks: Sequence[int],
    *,
    store: kept.Store = "trained",
) -> dict[str, dict[str, list[Answer]]]:
    """Rule of the folds → "ball, end to end, head", "..., encoder", the same of the flat twin, and ``BEFORE``.

    The gallery is closed, as in the paper; ``splits_of``: rule → splits. The mapper sees the feature itself, 32
    or so numbers (``plan.settings.dim_out``) come out; encoders are searched by the cosine.
    """
    modules = {Settings.__module__, HyperbolicMapper.__module__, ContrastiveLoss.__module__}
    whole = Whole(images, plan, store, frozenset({__name__, *modules}))
    untouched = whole.before()
    kinds = {BALL: settings, FLAT: flat(settings, settings.m0 / 2)}
    results: dict[str, dict[str, list[Answer]]] = {}
    for rule, splits in splits_of.items():
        answers = results.setdefault(rule, {BEFORE: []})
        for split in splits:
            answers[BEFORE].append(_answer(BEFORE, settings, untouched, Sphere(), labels, split, ks))
            for name, kind in kinds.items():
                rows = torch.from_numpy(split.train)
                make = partial(_made, kind, plan.settings.dim_out, untouched[rows], split.seed)
                what = f"{name}, end to end, folds {rule}, fold {split.fold}, seed {split.seed}"
                made = whole.trained(split.train, labels[split.train], make, split.seed, what, kind)
                last, steps = float(np.mean(made["history"][-10:])), len(made["history"])
                for place, space in {"head": kind.geometry, "encoder": Sphere()}.items():
                    rim = points_at_rim(kind, made["head"][rows]) if place == "head" else np.nan
                    answer = _answer(f"{name}{END}{place}", kind, made[place], space, labels, split, ks)
                    health = replace(answer, health=Health(last, rim, steps), history=made["history"])
                    answers.setdefault(answer.method.name, []).append(health)
    return results


def _made(kind: Settings, dim_out: int, start: Tensor, seed: int, dim: int) -> tuple[nn.Module, nn.Module]:
    """Head and loss; ``start``: features of the training images before training."""
    head = kind.make(Recipe("raw", dim, dim_out), seed)
    kind.start(head, start.numpy())
    return head, OfLabels(kind.loss)


def _answer(
    name: str, kind: Settings, z: Tensor, space: Geometry, labels: np.ndarray, split: Split, ks: Sequence[int]
) -> Answer:
    """The queries of a split search the images that were learnt from by ``z: (n, d)`` of all images."""
    query, gallery = (z[torch.from_numpy(rows)] for rows in (split.test, split.train))
    values = retrieval.evaluate(query, gallery, labels[split.test], labels[split.train], space, tuple(ks))
    method = Method(name, Recipe("raw", z.shape[1], z.shape[1]), kind)
    return Answer(method, split, Health(), [], gallery.norm(dim=-1).numpy(), values)
