"""Sliders for the two limits: how many standard deviations, and how many bits."""

import numpy as np
from matplotlib.figure import Figure

from lib.metrics import novelty
from lib.papers.acir.novelty import figures
from lib.papers.acir.novelty.experiment import ACIR, L1
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, NEAR, SORTS, Scene
from lib.papers.acir.novelty.scores import Scores
from lib.widgets.board import Board
from lib.widgets.slider import Slider

SIGMAS = np.linspace(0, 6, 25).round(2).tolist()
TITLES = {KNOWN: "known, refused"} | SORTS


def explore(scene: Scene, found: Scores, bits: int) -> Board:
    """The board, on the scores of the first training; it begins at the paper's two limits."""
    code, error = found[ACIR][0], found[L1][0]
    aside, asks = scene.rows(ASIDE), scene.rows(KNOWN, NEAR, FAR)

    def draw(sigmas: float, radius: float) -> Figure:
        limit = novelty.threshold(error[aside], sigmas)
        return figures.plane(code[asks], error[asks], scene.part[asks], radius, limit)

    def describe(sigmas: float, radius: float) -> str:
        limit = novelty.threshold(error[aside], sigmas)
        outside, beyond = code > radius, error > limit
        lines = [f"limit {limit:.3f}, radius {radius:g} bits", ""]
        lines += [f"{'':16}{'balls':>8}{'residual':>10}{'either':>8}"]
        for part, title in TITLES.items():
            rows = scene.rows(part)
            shares = [100 * rule[rows].mean() for rule in (outside, beyond, outside | beyond)]
            lines.append(f"{title:16}{shares[0]:7.1f}%{shares[1]:9.1f}%{shares[2]:7.1f}%")
        return "\n".join(lines)

    sliders = {
        "sigmas": Slider("limit, standard deviations", SIGMAS, start=3.0),
        "radius": Slider("radius, bits", range(bits // 2 + 1), start=novelty.ball_radius(bits)),
    }
    return Board(sliders, draw, describe, height=360)
