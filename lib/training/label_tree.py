"""How Climbing the Label Tree trains (Section 4.2): two views of every image, a head, and a loss that knows the tree.

The encoder is frozen here, and the views were made once: every epoch sees the same few of each image.
:mod:`lib.training.two_views` trains the encoder as well, on new crops in every step.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, Sphere
from lib.heads.label_tree import ProjectionHead
from lib.losses import label_tree as losses
from lib.losses.level_margin import LevelAwareMargin
from lib.taxonomy import Taxonomy
from lib.training import kept, loop
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
        """The share of ``lr`` in one step; see :func:`lib.training.loop.warmed_cosine`."""
        return loop.warmed_cosine(step, of, self.warm_up)

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
    store: kept.Store = "trained",
    workers: int = -1,
    what: str = "heads",
) -> list[Trained]:
    """Train a head for every task.

    Args:
        views: (V, n, dim) features of V ≥ 2 views of each image, the first the image itself, which is what is embedded.
        leaves: (n,) of the tree, as numbers.
        tasks, schedule: see there.
        store: for what was trained before.
        workers, what: as in :func:`lib.training.sweep.fit`.

    Raises:
        InputError: for a single view. Diverged: see :mod:`lib.training.divergence`.
    """
    if views.ndim != 3 or len(views) < 2:
        raise InputError(
            f"the features have the shape {views.shape}: two views of every image are needed, (V, n, dim). "
            "Extract them with --n-views 2"
        )
    code = kept.code({__name__, losses.__name__, ProjectionHead.__module__}, "torch", "geoopt")
    data = kept.key(views, leaves, sorted(tree.parents.items()), schedule, code)
    keys = [kept.key(data, task.objective, task.rows, task.seed) for task in tasks]
    works = [partial(_trained, views, leaves, tree, task, schedule) for task in tasks]
    jobs = list(zip(keys, works, strict=True))
    made = zip(tasks, kept.each(store, jobs, workers=workers, what=what, unit="heads"), strict=True)
    return [Trained(task, done["z"], done["history"], Health(**done["health"])) for task, done in made]


def _trained(views: np.ndarray, leaves: np.ndarray, tree: Taxonomy, task: Task, schedule: Schedule) -> dict[str, Any]:
    own, objective = torch.tensor(views[:, task.rows], dtype=torch.float32), task.objective
    classes = torch.tensor(leaves[task.rows], dtype=torch.long)
    n, steps = len(classes), schedule.epochs * schedule.steps(len(classes))
    generator = torch.Generator().manual_seed(task.seed)
    sizes = {"hidden": schedule.hidden, "geometry": objective.geometry}
    head = ProjectionHead(views.shape[-1], schedule.dim_out, **sizes, generator=generator)
    if objective.start_norm:
        head.start(own[0], objective.start_norm)
    loss, flat = objective.loss(tree, schedule.dim_out, task.seed), own.flatten(0, 1)

    def cost(batch: tuple[Tensor, Tensor]) -> Tensor:  # all batches are of one size, and count alike
        rows, two = batch
        z = head(flat.index_select(0, (two * n + rows).flatten()))
        return loss(z, classes[rows].repeat(2), images=rows.repeat(2))

    weights = [*head.parameters(), *loss.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)
    watch, batches = Watch.of(head, task.name, steps), schedule.batches(n, len(own), task.seed)
    history = loop.train(cost, batches, optimiser, watch, schedule.epochs, rate=schedule.rate)
    head.eval()
    with torch.inference_mode():
        z = head(torch.tensor(views[0], dtype=torch.float32))
    rim = points_at_rim(objective, z[torch.from_numpy(task.rows)])
    return {"z": z, "history": history, "health": {"loss": history[-1], "rim": rim, "steps": steps}}
