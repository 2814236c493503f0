"""Prototypes where everything can be seen: a head with two outputs, its images in the plane or the Poincaré disk."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from lib.geometry import PoincareBall
from lib.geometry.numerics import root
from lib.heads.reduction import standard
from lib.losses.linear_prototypes import EpisodeLoss
from lib.training.episodes import Episodes
from lib.training.fit import fit_head
from lib.training.linear_prototypes import Settings
from lib.training.recipes import Recipe

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
