"""Sliders for α, γ, τ, the distances of siblings and of far classes, and the margin m."""

import numpy as np
from matplotlib.figure import Figure

from lib.papers.label_tree.objectives import figures, forces
from lib.widgets.board import Board
from lib.widgets.slider import Slider


def draw(alpha: float, gamma: float, tau: float, siblings: float, far: float, margin: float) -> Figure:
    """The picture, see :func:`lib.papers.label_tree.objectives.figures.explorer`."""
    return figures.explorer(forces.Scene(sibling_at=siblings, far_at=far), tau, alpha, gamma, margin)


def describe(alpha: float, gamma: float, tau: float, siblings: float, far: float, margin: float) -> str:
    """The readout: the pull on one positive, who is pushed harder, and what of that the weights do."""
    scene = forces.Scene(sibling_at=siblings, far_at=far)
    lines = [
        f"{scene.positives} positives at {scene.near:g}",
        f"{scene.siblings} siblings at {siblings:g}",
        f"{scene.far} far images at {far:g}",
        "",
    ]
    lines += [f"{'':10}{'pull':>8}{'far : sibling':>15}{'by weights':>12}"]
    for kind in forces.KINDS:
        found = forces.forces(scene, tau, alpha, gamma, kind)
        by_weights = forces.effect(scene, tau, gamma, kind)
        lines.append(f"{kind:10}{found['pull']:8.2g}{found['ratio']:15.3g}{by_weights:12.3g}")
    lines += ["", f"LAM rests once d- is {margin:g} more than d+"]
    return "\n".join(lines)


def explore() -> Board:
    """The board; it starts in the middle of the ranges that the paper prints."""
    distances = np.linspace(0.1, 2, 20).round(1).tolist()
    sliders = {
        "alpha": Slider("alpha", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "gamma": Slider("gamma", np.linspace(0, 2, 21).round(1).tolist(), start=0.5),
        "tau": Slider("temperature", np.linspace(0.05, 1, 20).round(2).tolist(), start=0.1),
        "siblings": Slider("distance of siblings", distances, start=1.0),
        "far": Slider("distance of far", distances, start=1.1),
        "margin": Slider("margin m", np.linspace(0, 1, 11).round(1).tolist(), start=0.3),
    }
    return Board(sliders, draw, describe, height=380)
