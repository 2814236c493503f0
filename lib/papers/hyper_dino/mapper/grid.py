"""One small head trained with every combination of the values of its loss, kept at every stage, and its sliders."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor
from torch.func import functional_call, vmap

from lib import checks
from lib.errors import InputError
from lib.figures import style
from lib.heads import HyperbolicMapper
from lib.losses import hyper_dino
from lib.progress import track
from lib.training.divergence import Watch
from lib.widgets.board import Board
from lib.widgets.slider import Slider

M0 = tuple(round(0.25 * k, 2) for k in range(9))
ALPHA = tuple(round(0.1 * k, 1) for k in range(9))
NORM_WEIGHT = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
STEPS = tuple(range(0, 121, 5))
MARKERS = (*style.MARKERS, "X", "p")


@dataclass(frozen=True, eq=False)
class Grid:
    """Embeddings (m0, alpha, norm_weight, steps, n, d) of the same images, by what their mapper was trained with.

    m0, alpha, norm_weight: of :class:`lib.losses.hyper_dino.ContrastiveLoss`. steps: when embeddings were kept. head:
    the untrained mapper that all start from.
    """

    m0: tuple[float, ...]
    alpha: tuple[float, ...]
    norm_weight: tuple[float, ...]
    steps: tuple[int, ...]
    labels: Tensor
    embeddings: Tensor
    head: HyperbolicMapper

    def at(self, m0: float, alpha: float, norm_weight: float, step: int) -> Tensor:
        """The embedding (n, d) trained with these values; InputError for a value that was not trained.

        A slider adds up its steps, so the last digit may differ.
        """
        place = []
        for name, value in {"m0": m0, "alpha": alpha, "norm_weight": norm_weight, "steps": step}.items():
            near = np.isclose(getattr(self, name), value, rtol=1e-6, atol=1e-9)
            if not near.any():
                every = ", ".join(f"{v:g}" for v in getattr(self, name))
                raise InputError(f"{name} = {value:g} was not trained: choose one of {every}")
            place.append(int(near.argmax()))
        return self.embeddings[tuple(place)]


def fit(
    head: HyperbolicMapper,
    x: np.ndarray,
    labels: np.ndarray,
    m0: Sequence[float],
    alpha: Sequence[float],
    norm_weight: Sequence[float],
    steps: Sequence[int],
    lr: float = 1e-3,
    weight_decay: float = 1e-5,
) -> Grid:
    """Train a copy of ``head`` for every combination of values; every step sees all images.

    A copy ends as :func:`lib.training.fit.fit_head` would leave it with a batch of all images, up to rounding.

    head: maps (n, dim) to (n, d); left as it is. x: (n, dim) float32 features. labels: (n,) integer classes.
    m0, alpha, norm_weight: values of the loss. steps: when to keep the embeddings, increasing; 0 is before training.

    Raises InputError for a rate or decay without meaning; Diverged when a loss is not finite or weights have outgrown
    float32, with the values and the step.
    """
    checks.values(lr=lr, weight_decay=weight_decay)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    features, classes = torch.from_numpy(x), torch.from_numpy(labels)
    every = list(product(m0, alpha, norm_weight))
    parts = [every[start : start + 64] for start in range(0, len(every), 64)]  # these fit into a processor's cache
    shown = track(parts, total=len(every), what="values of the loss", unit="heads", size=len)
    try:
        kept = torch.cat([_fit(head, features, classes, torch.tensor(p), steps, lr, weight_decay) for p in shown])
    finally:
        torch.set_num_threads(threads)
    shape = (len(m0), len(alpha), len(norm_weight), *kept.shape[1:])
    return Grid(tuple(m0), tuple(alpha), tuple(norm_weight), tuple(steps), classes, kept.reshape(shape), head)


def _fit(
    head: HyperbolicMapper,
    x: Tensor,
    labels: Tensor,
    values: Tensor,
    steps: Sequence[int],
    lr: float,
    weight_decay: float,
) -> Tensor:
    """Embeddings (heads, steps, n, d) of heads trained with ``values: (heads, 3)``."""
    weights = {
        name: value.detach().repeat(len(values), *[1] * value.ndim).requires_grad_()
        for name, value in head.state_dict().items()
    }
    apply = vmap(lambda state, batch: functional_call(head, state, (batch,)), in_dims=(0, None))
    optimiser = torch.optim.Adam(weights.values(), lr=lr, weight_decay=weight_decay, fused=True)
    loss = hyper_dino.ContrastiveLoss(head.geometry, *values.unbind(-1))
    names = ["the head with m0 {:g}, alpha {:g}, norm_weight {:g}".format(*each) for each in values.tolist()]
    watch = Watch(weights, names, [max(steps)] * len(names))
    kept = []
    for step in range(max(steps) + 1):
        h = apply(weights, x)
        if step in steps:
            kept.append(h.detach())
        value = loss(h, labels.expand(len(values), -1))
        watch.add(value)
        if step in steps:
            watch.check()
        optimiser.zero_grad()
        value.sum().backward()
        optimiser.step()
    return torch.stack(kept, dim=1)


def explore(grid: Grid, classes: Sequence[str], step: int) -> Board:
    """The board, with sliders ``m0``, ``alpha``, ``norm_weight`` and ``step`` over what :func:`fit` trained.

    grid: trained with :data:`M0`, :data:`ALPHA`, :data:`NORM_WEIGHT`, kept at :data:`STEPS`; step: where that begins.
    """

    def state(m0: float, alpha: float, norm_weight: float, step: int) -> tuple[Tensor, Tensor, hyper_dino.Parts]:
        h, geometry = grid.at(m0, alpha, norm_weight, step), grid.head.geometry
        loss = hyper_dino.ContrastiveLoss(geometry, m0, alpha, norm_weight)
        return h, geometry.pairwise(h, h), loss.parts(h, grid.labels)

    def draw(**values: float) -> Figure:
        h, distance, loss = state(**values)
        return pairs(h.numpy(), grid.labels.numpy(), classes, distance.numpy(), loss.margin.item())

    def describe(**values: float) -> str:
        h, distance, loss = state(**values)
        first, second = np.triu_indices(len(h), k=1)
        same, apart = grid.labels[first] == grid.labels[second], distance[first, second]
        pushed = (~same & (apart < loss.margin)).sum()
        numbers = {"margin m": loss.margin, "mean distance": apart.mean(), "  one class": apart[same].mean()}
        numbers |= {"  two classes": apart[~same].mean(), "L_pos  (pull)": loss.positive}
        numbers |= {"L_neg  (push)": loss.negative, "R_norm": loss.norm, "loss": loss.total}
        numbers |= {"largest norm": h.norm(dim=-1).max()}
        lines = [f"{name:16s}{value:8.4f}" for name, value in numbers.items()]
        return "\n".join([*lines, f"still pushed    {pushed:3d} of {(~same).sum():d} pairs"])

    sliders = {
        "m0": Slider("base margin m0", M0, start=0.5),
        "alpha": Slider("scale alpha", ALPHA, start=0.1),
        "norm_weight": Slider("norm weight", NORM_WEIGHT, start=1e-3),
        "step": Slider("training step", STEPS, start=step),
    }
    return Board(sliders, draw, describe, height=400)


def pairs(
    points: np.ndarray, labels: np.ndarray, classes: Sequence[str], distance: np.ndarray, margin: float
) -> Figure:
    """The embedding in the disk with the pairs that are still pushed, and the distances of all pairs.

    points: (n, 2) in the unit disk. labels: (n,) integers that index ``classes``, at most 8. distance: (n, n). A pair
    of two classes that is nearer than the margin is pushed; it is drawn as a thin line.
    """
    first, second = np.triu_indices(len(points), k=1)
    same, apart = labels[first] == labels[second], distance[first, second]
    pushed = ~same & (apart < margin)
    with style.house():
        figure = Figure(figsize=(7.6, 4.0), layout="none")
        disk, axis = figure.add_axes((0.085, 0.12, 0.44, 0.836)), figure.add_axes((0.60, 0.12, 0.385, 0.63))
        disk.add_patch(Circle((0, 0), 1, facecolor="0.96", edgecolor="black", linewidth=1.5, zorder=0))
        joined = np.stack([points[first[pushed]], points[second[pushed]]], axis=1)
        disk.add_collection(LineCollection(joined, color="0.35", linewidth=0.4, alpha=0.6, zorder=1))
        disk.plot([], [], "-", color="0.35", linewidth=1, label="still pushed")
        for code, name in enumerate(classes):
            look = {"color": style.PALETTE[code], "markeredgecolor": "black", "markeredgewidth": 0.5}
            disk.plot(*points[labels == code].T, MARKERS[code], **look, label=style.legible(name))
        largest = np.linalg.norm(points, axis=1).max()
        limit = 1.03 * next((edge for edge in (0.25, 0.5, 1.0) if largest < edge), 1.0)
        disk.set(xlim=(-limit, limit), ylim=(-limit, limit), aspect="equal", xlabel="$h_1$", ylabel="$h_2$")
        disk.grid(False)
        bins = np.linspace(0, max(apart.max(), margin, 1.0), 41)
        for chosen, label, hatch, colour in ((same, "one class", "", 0), (~same, "two classes", "////", 1)):
            look = {"facecolor": (*style.PALETTE[colour], 0.45), "edgecolor": style.PALETTE[colour], "hatch": hatch}
            share = np.full(chosen.sum(), 100 / chosen.sum())
            axis.hist(apart[chosen], bins, weights=share, histtype="stepfilled", label=label, **look)
        axis.axvline(margin, color="black", linestyle="--", linewidth=1.4, label="margin m")
        axis.set(xlim=(0, bins[-1]), xlabel="hyperbolic distance of a pair", ylabel="pairs (%)")
        axis.legend(loc="upper right", frameon=True, framealpha=0.9)
        figure.legend(*disk.get_legend_handles_labels(), loc=(0.59, 0.79), ncols=3, columnspacing=1, handletextpad=0.3)
    return figure
