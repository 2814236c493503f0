"""Prototypes where everything can be seen: a head with two outputs, its images in the plane or the Poincaré disk."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch import Tensor

from lib.figures import style
from lib.geometry import PoincareBall
from lib.geometry.numerics import root
from lib.heads.reduction import standard
from lib.losses.linear_prototypes import NAMES, Comparison, EpisodeLoss
from lib.study.markdown import markdown_table
from lib.training.episodes import Episodes
from lib.training.fit import fit_head
from lib.training.linear_prototypes import Settings
from lib.training.recipes import Recipe
from lib.widgets.board import Board
from lib.widgets.slider import Slider

LAYOUTS = {"table_agreement": lambda rows: markdown_table(rows.round(2))}

GRID = 90
"""Points of the background, in each direction."""

LIMIT = 1.15
"""Half the width of the picture."""


def flat_embedding(x: np.ndarray, labels: np.ndarray, schedule: Episodes, seed: int) -> tuple[Tensor, list[float]]:
    """The paper's head with two outputs, trained on all images.

    Args:
        x: (n, dim) features, standardised here. labels: (n,) classes 0 to N − 1. schedule, seed: of the episodes.

    Returns:
        (n, 2) embeddings around 0, scaled to a root mean square length of 0.65 so that the unit disk shows them; and
        the mean loss of every epoch.
    """
    features = standard(x).transform(x).astype(np.float32)
    head = Settings().make(Recipe("scaled", x.shape[1], 2), seed)
    history = fit_head(head, EpisodeLoss(schedule.k, int(labels.max()) + 1), features, labels, schedule, seed=seed)
    with torch.inference_mode():
        e = head(torch.from_numpy(features))
    e = e - e.mean(dim=0)
    return 0.65 * e / root(e.square().sum(-1).mean()), history


def entrance(n: int, query: int, seed: int) -> Tensor:
    """The order in which images enter the support of their class; the query is not among them."""
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    return order[order != query]


def support_of(labels: Tensor, order: Tensor, k: int) -> Tensor:
    """(N, k) the first k images of each class in ``order``."""
    return torch.stack([order[labels[order] == code][:k] for code in range(int(labels.max()) + 1)])


@dataclass(frozen=True, eq=False)
class Plane:
    """Images, prototypes and decision regions at one curvature and temperature.

    h: (n, 2) images in the ball. prototypes: (N, 2). support: (N · K,) indices of images. chances: (n, N) probability
    of each class for every image. regions: (GRID, GRID, N) the same on a grid over ±LIMIT, first axis upwards.
    """

    h: Tensor
    prototypes: Tensor
    support: Tensor
    chances: Tensor
    regions: Tensor


def place(v: Tensor, labels: Tensor, order: Tensor, k: int, temperature: float, c: float) -> Plane:
    """Place the images in the ball of curvature −c and compare all of it with the prototypes, by squared distance.

    Args:
        v: (n, 2) tangent vectors at the origin. labels: (n,) classes 0 to N − 1.
        order: indices of the images in the order in which they enter the support of their class.
        k: support images of each class. temperature: > 0. c: ≥ 0; c = 0 is the plane, where the squared distance is 4
            times the Euclidean one, so that temperature 4 is the paper's loss.
    """
    ball = PoincareBall(c)
    h = ball.project(ball.exp0(v))
    support = support_of(labels, order, k)
    prototypes = ball.mean(h[support])
    axis = torch.linspace(-LIMIT, LIMIT, GRID, dtype=v.dtype)
    grid = torch.stack(torch.meshgrid(axis, axis, indexing="xy"), dim=-1)
    inside = ball.project(grid.flatten(0, 1))  # beyond the rim there is nothing: the colour of the rim is drawn there

    def chance(points: Tensor) -> Tensor:
        return (-ball.pairwise(points, prototypes).square() / temperature).softmax(-1)

    return Plane(h, prototypes, support.flatten(), chance(h), chance(inside).unflatten(0, (GRID, GRID)))


def hardest(v: Tensor, labels: Tensor) -> int:
    """The image whose class mean is nearly as far as another class's: the one worth asking about.

    It is nearest to its own mean, by the smallest margin.
    """
    means = torch.stack([v[labels == code].mean(dim=0) for code in range(int(labels.max()) + 1)])
    distance = torch.cdist(v, means)
    own = distance.gather(1, labels[:, None])[:, 0]
    margin = distance.scatter(1, labels[:, None], torch.inf).amin(dim=1) - own
    return int(margin.masked_fill(margin < 0, torch.inf).argmin())


def agreement(v: Tensor, labels: Tensor, k: int, seed: int, times: int = 50) -> pd.DataFrame:
    """How often images outside the support get another class than by squared Euclidean distance, over many supports.

    Args:
        v: (n, 2) embeddings; for "poincare" they are put into the ball of c = 1 first.
        labels: (n,) classes. k: support images of each class. seed: of the supports. times: how many.

    Returns:
        Columns comparison, right and changed (percent of the queries).
    """
    space, truth, classes = PoincareBall(1.0), [], {name: [] for name in NAMES}
    for number in range(times):
        support = support_of(labels, entrance(len(v), -1, seed + number), k)
        queries = np.setdiff1d(np.arange(len(v)), support.numpy())
        truth.append(labels[queries])
        for name in NAMES:
            h = space.project(space.exp0(v)) if name == "poincare" else v
            comparison = Comparison(name)
            given = comparison.dissimilarity(h[queries], comparison.prototypes(h[support])).argmin(-1)
            classes[name].append(given)
    own, paper = torch.cat(truth), torch.cat(classes[NAMES[0]])
    parts = {name: torch.cat(given) for name, given in classes.items()}
    shares = [
        {"right": (given == own).double().mean(), "changed": (given != paper).double().mean()}
        for given in parts.values()
    ]
    table = 100 * pd.DataFrame([{name: share.item() for name, share in of.items()} for of in shares])
    table.insert(0, "comparison", list(parts))
    return table


def regions(plane: Plane, labels: np.ndarray, classes: Sequence[str], query: int, limit: float, c: float) -> Figure:
    """Images in a plane, the prototypes of the support, and which class a query would be given where.

    Args:
        plane: what is where. labels: (n,) integers that index ``classes``, at most 8. query: index of the query.
        limit: half width of the picture. c: the rim is at 1/√c, drawn where it is in the picture.
    """
    points, support, prototypes = plane.h.numpy(), plane.support.numpy(), plane.prototypes.numpy()
    shades = _shades(plane.regions.numpy())
    height, width = np.meshgrid(*2 * [np.linspace(-limit, limit, len(shades))], indexing="ij")
    shades[c * (height**2 + width**2) > 1] = 0.93  # there is no point beyond the rim
    with style.house():
        figure = Figure(figsize=(6.4, 4.4), layout="none")
        axis = figure.add_axes((0.1, 0.11, 0.6, 0.873))
        axis.imshow(shades, origin="lower", extent=(-limit, limit, -limit, limit), interpolation="nearest")
        if c > 0 and 1 / np.sqrt(c) < np.sqrt(2) * limit:
            axis.add_patch(Circle((0, 0), 1 / np.sqrt(c), fill=False, edgecolor="black", linewidth=1.5))
        others = np.setdiff1d(np.arange(len(points)), support)
        for code, name in enumerate(classes):
            look = {"color": style.PALETTE[code], "marker": style.MARKERS[code], "linestyle": ""}
            look["markeredgecolor"] = "black"
            axis.plot(*points[others[labels[others] == code]].T, markersize=4, markeredgewidth=0.3, alpha=0.7, **look)
            own = points[support[labels[support] == code]]
            axis.plot(*own.T, markersize=7, markeredgewidth=1.2, label=style.legible(name), **look)
            ends = np.stack([own, np.broadcast_to(prototypes[code], own.shape)], axis=1)
            axis.add_collection(LineCollection(ends, color="black", linewidth=0.6, zorder=1.5))
        axis.plot(*prototypes.T, "P", color="white", markeredgecolor="black", markersize=11, label="prototype")
        axis.plot(*points[query], "*", color="yellow", markeredgecolor="black", markersize=15, label="query")
        axis.set(xlim=(-limit, limit), ylim=(-limit, limit), xlabel="first coordinate", ylabel="second coordinate")
        axis.grid(False)
        axis.locator_params(nbins=5)
        figure.legend(*axis.get_legend_handles_labels(), loc=(0.72, 0.5), title="large: support")
    return figure


def _shades(chances: np.ndarray) -> np.ndarray:
    """The colour of the most probable class, white where all classes are equally probable."""
    best = chances.argmax(-1)
    n = chances.shape[-1]
    certain = (np.take_along_axis(chances, best[..., None], -1) - 1 / n) / (1 - 1 / n)
    return 1 - 0.75 * certain * (1 - np.array(style.PALETTE)[best])


def explore(v: Tensor, labels: Tensor, classes: Sequence[str], query: int, seed: int = 0) -> Board:
    """The board, with sliders ``k``, ``temperature`` and ``c``.

    v: (n, 2) tangent vectors, about 1 long. labels: (n,). classes: at most 8 names. query: index of the query image
    and is never in the support. seed: of the order in which images enter the support.
    """
    order = entrance(len(v), query, seed)
    largest = int(torch.bincount(labels[order]).min())

    def draw(k: int, temperature: float, c: float) -> Figure:
        plane = place(v, labels, order, k, temperature, c)
        return regions(plane, labels.numpy(), classes, query, LIMIT, c)

    def describe(k: int, temperature: float, c: float) -> str:
        return readout(place(v, labels, order, k, temperature, c), labels, classes, query)

    sliders = {
        "k": Slider("support K", range(1, largest + 1), start=min(5, largest)),
        "temperature": Slider("temperature", np.logspace(-2, 1, 13).tolist(), start=1.0),
        "c": Slider("curvature c", np.linspace(0, 2, 21).round(1).tolist(), start=0.0),
    }
    return Board(sliders, draw, describe, height=440)


def readout(plane: Plane, labels: Tensor, classes: Sequence[str], query: int) -> str:
    """The readout: the probabilities and the loss of the query, and how many images outside the support are right."""
    chances = plane.chances[query]
    others = np.setdiff1d(np.arange(len(labels)), plane.support.numpy())
    right = (plane.chances[others].argmax(-1) == labels[others]).sum()
    own = labels[query]
    return "\n".join(
        [
            f"query: {classes[own]}",
            *(f"  p({name:<12.12}) {100 * chance:6.2f} %" for name, chance in zip(classes, chances, strict=True)),
            f"loss of the query  {-chances[own].log():7.4f}",
            "",
            f"right outside the support: {right} of {len(others)}",
            f"mean largest p  {100 * plane.chances.amax(-1).mean():6.2f} %",
        ]
    )
