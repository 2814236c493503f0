"""Prototypes in a plane: sliders for the support, the temperature and the curvature."""

from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.plane.experiment import LIMIT, Plane, entrance, place
from lib.widgets.board import Board
from lib.widgets.slider import Slider


def explore(v: Tensor, labels: Tensor, classes: Sequence[str], query: int, seed: int = 0) -> Board:
    """The board, with sliders ``k``, ``temperature`` and ``c``.

    v: (n, 2) tangent vectors, about 1 long. labels: (n,). classes: at most 8 names. query: index of the image that asks
    and is never in the support. seed: of the order in which images enter the support.
    """
    order = entrance(len(v), query, seed)
    largest = int(torch.bincount(labels[order]).min())

    def draw(k: int, temperature: float, c: float) -> Figure:
        plane = place(v, labels, order, k, temperature, c)
        return figures.regions(plane, labels.numpy(), classes, query, LIMIT, c)

    def describe(k: int, temperature: float, c: float) -> str:
        return text(place(v, labels, order, k, temperature, c), labels, classes, query)

    sliders = {
        "k": Slider("support K", range(1, largest + 1), start=min(5, largest)),
        "temperature": Slider("temperature", np.logspace(-2, 1, 13).tolist(), start=1.0),
        "c": Slider("curvature c", np.linspace(0, 2, 21).round(1).tolist(), start=0.0),
    }
    return Board(sliders, draw, describe, height=440)


def text(plane: Plane, labels: Tensor, classes: Sequence[str], query: int) -> str:
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
