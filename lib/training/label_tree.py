"""How Climbing the Label Tree trains (Section 4.2): two views of every image, a head, and a loss that knows the tree.

The encoder is frozen here, and the views were made once: every epoch sees the same few of each image.
:mod:`lib.training.two_views` trains the encoder as well, on new crops in every step.
"""

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
import torch
from torch import Tensor, nn

from lib import checks, paths
from lib.errors import InputError
from lib.geometry import Geometry, Sphere
from lib.heads.label_tree import ProjectionHead
from lib.losses import label_tree as losses
from lib.losses.level_margin import LevelAwareMargin
from lib.processes import spread
from lib.progress import track
from lib.taxonomy import Taxonomy
from lib.training import kept
from lib.training.divergence import Watch
from lib.training.methods import Health, points_at_rim

PAIRS = {
    "SimCLR": losses.SimCLR,
    "SupCon": losses.SupCon,
    "outside": losses.OutsideSoftmax,
    "HWC": losses.HierarchyWeighted,
    "HXE": losses.HierarchicalCrossEntropy,
}
"""Losses by the names that an objective has for them."""


@dataclass(frozen=True)
class Objective:
    """What a head learns by. Values that the paper has ranges for alone are in the middle of them (LT-16).

    pairs: one of :data:`PAIRS`, None for the margin alone. geometry: ``Sphere()`` for the paper's Euclidean rows.
    temperature: τ. cosine: of logits other than HWC's, whose ``form`` says it. alpha, gamma, form, constant: of
    :class:`lib.losses.label_tree.HierarchyWeighted`. margin_weight: λ_LAM, 0 for no margin; margin, prototype_rate: m
    and η of :class:`lib.losses.level_margin.LevelAwareMargin`. start_norm: see HD-17; 0 leaves the head as it is made.
    Raises InputError for a value without meaning.
    """

    pairs: str | None = "HWC"
    geometry: Geometry = field(default_factory=Sphere)
    temperature: float = 0.1
    cosine: bool = False
    alpha: float = 0.5
    gamma: float = 0.5
    form: str = losses.SHIFTED
    constant: str | None = None
    margin_weight: float = 0.0
    margin: float = 0.3
    prototype_rate: float = 0.05
    start_norm: float = 0.3
    reach: ClassVar[float] = 1 - 1e-3

    def __post_init__(self) -> None:
        if self.pairs is not None and self.pairs not in PAIRS:
            raise InputError(f"pairs = {self.pairs!r} is unknown: choose one of {', '.join(PAIRS)}, or None")
        checks.values(geometry=self.geometry, margin_weight=self.margin_weight, start_norm=self.start_norm)

    def loss(self, tree: Taxonomy, dim: int, seed: int) -> nn.Module:
        """The loss for embeddings of ``dim`` numbers, with what it learns itself."""
        margin = None
        if self.margin_weight:
            of_margin = {"margin": self.margin, "rate": self.prototype_rate}
            margin = LevelAwareMargin(tree, dim, self.geometry, **of_margin)
        return losses.Sum(self._pairs(tree, dim, seed), margin, self.margin_weight)

    def _pairs(self, tree: Taxonomy, dim: int, seed: int) -> nn.Module | None:
        if self.pairs is None:
            return None
        if self.pairs == "HXE":
            return PAIRS["HXE"](tree, dim, self.geometry, generator=torch.Generator().manual_seed(seed))
        if self.pairs == "HWC":
            own = {name: getattr(self, name) for name in ("alpha", "gamma", "form", "constant")}
            return PAIRS["HWC"](tree, self.geometry, self.temperature, **own)
        return PAIRS[self.pairs](tree, self.geometry, self.temperature, cosine=self.cosine)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast; defaults of Section 4.2 (published: 100 epochs, 10 of them of warm-up, batches of 256).

    batch_size: images, each in two views. lr: of the head, at its highest. warm_up: share of the steps in which the
    rate rises to it; it falls along a cosine then. hidden, dim_out: of the head. Raises InputError as above.
    """

    epochs: int = 100
    batch_size: int = 256
    lr: float = 1e-3
    weight_decay: float = 1e-4
    warm_up: float = 0.1
    hidden: int = 2048
    dim_out: int = 256

    def __post_init__(self) -> None:
        checks.values(**{name: value for name, value in vars(self).items() if name != "warm_up"})
        checks.fraction("warm_up", self.warm_up)

    def steps(self, n: int) -> int:
        """Of an epoch of ``n`` images; what does not fill a batch is left for another epoch."""
        return max(1, n // self.batch_size)

    def rate(self, step: int, of: int) -> float:
        """The share of ``lr`` in one step.

        >>> [round(Schedule().rate(step, 100), 2) for step in (0, 9, 54, 99)]
        [0.1, 1.0, 0.52, 0.0]
        """
        warm = max(1, round(self.warm_up * of))
        if step < warm:
            return (step + 1) / warm
        return (1 + math.cos(math.pi * (step - warm) / max(1, of - warm))) / 2

    def batches(self, n: int, n_views: int, seed: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Images (B,) and two different views of each (2, B) of every step, shuffled anew in each epoch."""
        generator = torch.Generator().manual_seed(seed)
        size = min(self.batch_size, n)
        for _ in range(self.epochs):
            order = torch.randperm(n, generator=generator)
            for rows in order[: self.steps(n) * size].split(size):
                yield rows, torch.rand(size, n_views, generator=generator).argsort(-1)[:, :2].T


@dataclass(frozen=True, eq=False)
class Task:
    """A head to train: which images it learns from (``rows``), by what, and the seed of its start and its batches."""

    name: str
    objective: Objective
    rows: np.ndarray
    seed: int


@dataclass(frozen=True, eq=False)
class Trained:
    """What a training has made of all images: points ``z: (n, dim_out)``, the loss of every epoch, and its health."""

    task: Task
    z: Tensor
    history: list[float]
    health: Health


def fit(
    views: np.ndarray,
    leaves: np.ndarray,
    tree: Taxonomy,
    tasks: Sequence[Task],
    schedule: Schedule,
    *,
    store: Path | None = paths.TRAINED,
    workers: int = -1,
    what: str = "heads",
) -> list[Trained]:
    """Train a head for every task.

    Args:
        views: (V, n, dim) features of V ≥ 2 views of each image, the first the image itself, which is what is embedded.
        leaves: (n,) of the tree, as numbers.
        tasks, schedule: see there.
        store: folder for what was trained before; None keeps nothing.
        workers, what: as in :func:`lib.training.sweep.fit`.

    Raises:
        InputError: for a single view. Diverged: see :mod:`lib.training.divergence`.
    """
    if views.ndim != 3 or len(views) < 2:
        raise InputError(
            f"the features have the shape {views.shape}: two views of every image are needed, (V, n, dim). "
            "Extract them with --n-views 2"
        )
    modules = {__name__, losses.__name__, ProjectionHead.__module__}
    data = kept.digest(views, leaves, sorted(tree.parents.items()), schedule, kept.code(modules, "torch", "geoopt"))
    jobs = (joblib.delayed(_once)(views, leaves, tree, task, schedule, data, store) for task in tasks)
    threads = torch.get_num_threads()
    found = []
    try:
        shown = track(spread(jobs, workers), total=len(tasks), what=what, unit="heads")
        for task, (z, history, rim) in zip(tasks, shown, strict=True):
            steps = schedule.epochs * schedule.steps(len(task.rows))
            found.append(Trained(task, z, history, Health(history[-1], rim, steps)))
    finally:
        torch.set_num_threads(threads)
    return found


def _once(
    views: np.ndarray,
    leaves: np.ndarray,
    tree: Taxonomy,
    task: Task,
    schedule: Schedule,
    data: str,
    store: Path | None,
) -> tuple[Tensor, list[float], float]:
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    key = hashlib.sha256(f"{data} {task.objective} {kept.digest(task.rows)} {task.seed}".encode()).hexdigest()
    found = kept.once(store, key, lambda: _trained(views, leaves, tree, task, schedule))
    return found["z"], found["history"], found["rim"]


def _trained(views: np.ndarray, leaves: np.ndarray, tree: Taxonomy, task: Task, schedule: Schedule) -> dict[str, Any]:
    own, objective = torch.tensor(views[:, task.rows], dtype=torch.float32), task.objective
    classes = torch.tensor(leaves[task.rows], dtype=torch.long)
    head = ProjectionHead(
        views.shape[-1],
        schedule.dim_out,
        hidden=schedule.hidden,
        geometry=objective.geometry,
        generator=torch.Generator().manual_seed(task.seed),
    )
    if objective.start_norm:
        head.start(own[0], objective.start_norm)
    loss = objective.loss(tree, schedule.dim_out, task.seed)
    history = _train(head, loss, own, classes, schedule, task)
    head.eval()
    with torch.inference_mode():
        z = head(torch.tensor(views[0], dtype=torch.float32))
    return {"z": z, "history": history, "rim": points_at_rim(objective, z[torch.from_numpy(task.rows)])}


def _train(
    head: nn.Module, loss: nn.Module, own: Tensor, classes: Tensor, schedule: Schedule, task: Task
) -> list[float]:
    """Train in place; the mean loss of every epoch."""
    weights = [*head.parameters(), *loss.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)
    n = own.shape[1]
    total, flat = schedule.epochs * schedule.steps(n), own.flatten(0, 1)
    watch = Watch({name: value[None] for name, value in head.named_parameters()}, [task.name], [math.inf])
    found = []
    for step, (rows, two) in enumerate(schedule.batches(n, len(own), task.seed)):
        for group in optimiser.param_groups:
            group["lr"] = schedule.lr * schedule.rate(step, total)
        z = head(flat.index_select(0, (two * n + rows).flatten()))
        value = loss(z, classes[rows].repeat(2), rows.repeat(2))
        watch.add(value[None])
        optimiser.zero_grad()
        value.backward()
        if (step + 1) % schedule.steps(n) == 0:
            watch.check()
        optimiser.step()
        found.append(value.item())
    watch.check()
    return np.array(found).reshape(schedule.epochs, -1).mean(1).tolist()
