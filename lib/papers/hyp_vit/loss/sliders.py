"""The loss of Hyp-ViT on the small batch: sliders for curvature, temperature and clip radius."""

from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lib.geometry import PoincareBall
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.papers.hyp_vit.loss import figures, tables
from lib.widgets.board import Board
from lib.widgets.slider import Slider


class Reading(NamedTuple):
    """Everything that the board shows, in float64."""

    z: Tensor
    """(8, 2) points in the ball."""
    clipped: int
    """How many outputs are longer than the clip radius."""
    largest: float
    """√c‖z‖ of the outermost point."""
    shares: pd.DataFrame
    """What the softmax of the anchor sees, see :func:`lib.papers.hyp_vit.loss.tables.shares`."""
    loss: float
    gradient: float
    """Norm of the loss's gradient with respect to the outputs of the head."""


def read(c: float, temperature: float, clip_radius: float) -> Reading:
    """Take the small batch through the head and the loss: curvature −c, τ, r."""
    e, labels = tables.small_batch()
    e.requires_grad_()
    z = tables.place(e, c, clip_radius)
    loss = PairwiseCrossEntropy(PoincareBall(c), temperature)(z, labels)
    (slope,) = torch.autograd.grad(loss, e)
    z = z.detach()
    apart = {"D_hyp": PoincareBall(c).pairwise(z, z)}
    return Reading(
        z,
        int((e.norm(dim=-1) > clip_radius).sum()),
        (c**0.5 * z.norm(dim=-1).max()).item(),
        tables.shares(apart, [temperature], labels, tables.ANCHOR),
        loss.item(),
        slope.norm().item(),
    )


def draw(c: float, temperature: float, clip_radius: float) -> Figure:
    """The picture, see :func:`lib.papers.hyp_vit.loss.figures.explorer`."""
    reading = read(c, temperature, clip_radius)
    return figures.explorer(reading.z, tables.small_batch()[1], c, clip_radius, reading.shares)


def describe(c: float, temperature: float, clip_radius: float) -> str:
    """The readout."""
    r = read(c, temperature, clip_radius)
    positive = r.shares[r.shares["positive"]].iloc[0]
    ball = f"curvature -{c:.2f}, radius {c**-0.5:.3f}" if c else "curvature 0: the flat plane, no rim"
    lines = [
        ball,
        f"clipped to r = {clip_radius:.1f}   {r.clipped:3d} of {len(r.z)} outputs",
        f"farthest possible  {4 * clip_radius:9.2f}  (4r)",
        f"largest norm       {100 * r.largest:9.2f} % of the radius",
        "",
        f"anchor {tables.names(tables.small_batch()[1])[tables.ANCHOR]}, positive {positive['image']}",
        f"  distance         {positive['apart']:9.4f}",
        f"  share of softmax {positive['share']:9.2f} %",
        "",
        f"loss of the batch  {r.loss:9.4f}",
        f"gradient norm      {r.gradient:9.4f}",
    ]
    return "\n".join(lines)


def explore() -> Board:
    """The board, with sliders ``c``, ``temperature`` and ``clip_radius``; it starts at the published values."""
    sliders = {
        "c": Slider("curvature c", np.linspace(0, 2, 41).round(2).tolist(), start=0.1),
        "temperature": Slider("temperature", np.linspace(0.05, 1, 20).round(2).tolist(), start=0.2),
        "clip_radius": Slider("clip radius r", np.linspace(0.5, 6, 56).round(1).tolist(), start=2.3),
    }
    return Board(sliders, draw, describe, height=400)
