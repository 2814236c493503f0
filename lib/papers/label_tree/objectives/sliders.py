"""Sliders for α, γ, τ, the distance of the negatives and the margin m."""

import numpy as np
from matplotlib.figure import Figure

from lib.papers.label_tree.objectives import figures, forces
from lib.widgets.board import Board
from lib.widgets.slider import Slider


def draw(alpha: float, gamma: float, tau: float, apart: float, margin: float) -> Figure:
    """The picture, see :func:`lib.papers.label_tree.objectives.figures.explorer`."""
    return figures.explorer(forces.Scene(apart=apart), tau, alpha, gamma, margin)


def describe(alpha: float, gamma: float, tau: float, apart: float, margin: float) -> str:
    """The readout: the pull on one positive, and who is pushed harder."""
    scene = forces.Scene(apart=apart)
    lines = [
        f"{scene.positives} positives at {scene.near:g}",
        f"{scene.siblings} siblings, {scene.far} far at {apart:g}",
        "",
    ]
    lines += [f"{'':12}{'pull':>8}{'far : sibling':>16}"]
    for kind in forces.KINDS:
        found = forces.forces(scene, tau, alpha, gamma, kind)
        lines.append(f"{kind:12}{found['pull']:8.2g}{found['ratio']:16.3g}")
    lines += ["", f"LAM rests once d- is {margin:g} more than d+"]
    return "\n".join(lines)


def explore() -> Board:
    """The board; it starts in the middle of the ranges that the paper prints."""
    sliders = {
        "alpha": Slider("alpha", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "gamma": Slider("gamma", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "tau": Slider("temperature", np.linspace(0.05, 1, 20).round(2).tolist(), start=0.1),
        "apart": Slider("distance of negatives", np.linspace(0.1, 2, 20).round(1).tolist(), start=1.0),
        "margin": Slider("margin m", np.linspace(0, 1, 11).round(1).tolist(), start=0.3),
    }
    return Board(sliders, draw, describe, height=380)
