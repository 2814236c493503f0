"""Prototypes in a plane: sliders for the support, the temperature and the curvature."""

from collections.abc import Sequence

import numpy as np
import torch
from ipywidgets import FloatLogSlider, FloatSlider, IntSlider
from matplotlib.figure import Figure
from torch import Tensor

from lib.figures import prototypes as figures
from lib.training.plane import LIMIT, Plane, entrance, place
from lib.widgets.board import Board


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
        "k": IntSlider(value=5, min=1, max=largest, description="support K"),
        "temperature": FloatLogSlider(value=1.0, min=-2, max=1, step=0.25, description="temperature"),
        "c": FloatSlider(value=0.0, min=0.0, max=2.0, step=0.1, description="curvature c"),
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
