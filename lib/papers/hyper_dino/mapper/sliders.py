"""The contrastive loss of Hyper-DINO on a few images: sliders for margin, scale, norm weight and training step."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from lib.losses import hyper_dino
from lib.papers.hyper_dino.mapper import figures
from lib.papers.hyper_dino.mapper.grid import Grid
from lib.widgets.board import Board
from lib.widgets.slider import Slider

M0 = tuple(round(0.25 * k, 2) for k in range(9))
ALPHA = tuple(round(0.1 * k, 1) for k in range(9))
NORM_WEIGHT = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
STEPS = tuple(range(0, 121, 5))


def explore(grid: Grid, classes: Sequence[str], step: int) -> Board:
    """The board, with sliders ``m0``, ``alpha``, ``norm_weight`` and ``step`` over the values of ``grid``.

    Args:
        grid: heads trained with :data:`M0`, :data:`ALPHA`, :data:`NORM_WEIGHT`, kept at :data:`STEPS`.
        classes: names of the grid's classes.
        step: where the training step starts.
    """

    def state(m0: float, alpha: float, norm_weight: float, step: int) -> tuple[Tensor, Tensor, hyper_dino.Parts]:
        h, geometry = grid.at(m0, alpha, norm_weight, step), grid.head.geometry
        loss = hyper_dino.contrastive(h, grid.labels, geometry, m0=m0, alpha=alpha, norm_weight=norm_weight)
        return h, geometry.pairwise(h, h), loss

    def draw(**values: float) -> Figure:
        h, distance, loss = state(**values)
        return figures.pairs(h.numpy(), grid.labels.numpy(), classes, distance.numpy(), loss.margin.item())

    def describe(**values: float) -> str:
        return text(*state(**values), grid.labels)

    sliders = {
        "m0": Slider("base margin m0", M0, start=0.5),
        "alpha": Slider("scale alpha", ALPHA, start=0.1),
        "norm_weight": Slider("norm weight", NORM_WEIGHT, start=1e-3),
        "step": Slider("training step", STEPS, start=step),
    }
    return Board(sliders, draw, describe, height=400)


def text(h: Tensor, distance: Tensor, loss: hyper_dino.Parts, labels: Tensor) -> str:
    """The readout.

    Args:
        h: (n, d) embedding.
        distance: (n, n) between its points.
        loss: of this embedding.
        labels: (n,) integer classes.
    """
    first, second = np.triu_indices(len(h), k=1)
    same, apart = labels[first] == labels[second], distance[first, second]
    active = ~same & (apart < loss.margin)
    return "\n".join(
        [
            f"margin m        {loss.margin:8.4f}",
            f"mean distance   {apart.mean():8.4f}",
            f"  one class     {apart[same].mean():8.4f}",
            f"  two classes   {apart[~same].mean():8.4f}",
            f"still pushed    {active.sum():3d} of {(~same).sum():d} pairs",
            "",
            f"L_pos  (pull)   {loss.positive:8.4f}",
            f"L_neg  (push)   {loss.negative:8.4f}",
            f"R_norm          {loss.norm:8.4f}",
            f"loss            {loss.total:8.4f}",
            "",
            f"largest norm    {h.norm(dim=-1).max():8.4f}",
        ]
    )
