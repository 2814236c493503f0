"""The whole method in one drawing, as the paper's Fig. 2 has it."""

from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lib.figures import style


class Box(NamedTuple):
    """A part: where its middle is, how wide it is, what is written in it, and what kind it is."""

    x: float
    y: float
    width: float
    text: str
    kind: str


KINDS = {"data": ("white", "-"), "network": ("0.93", "-"), "loss": ("white", "--"), "search": ("white", ":")}
"""Face and outline, legible in grey."""

BOXES = {
    "image": Box(0.7, 3.2, 1.1, "image", "data"),
    "print": Box(0.7, 5.4, 1.1, "fingerprint\n(small copy)", "data"),
    "stem": Box(2.4, 3.2, 1.3, "ConvNet stem", "network"),
    "near": Box(4.5, 4.3, 1.7, "ConvMSA, stride 8\nEq. 7, 8", "network"),
    "far": Box(4.5, 3.2, 1.7, "ConvMSA, stride 32\nEq. 7, 8", "network"),
    "pit": Box(4.5, 2.2, 1.7, "PiT: pixels, class\ntoken, Eq. 6", "network"),
    "decoder": Box(4.5, 0.8, 1.7, "decoder", "network"),
    "fusion": Box(6.7, 3.75, 1.5, "DaRF, Eq. 9", "network"),
    "kan": Box(8.3, 2.9, 1.1, "KAN\nEq. 10, 11", "network"),
    "code": Box(9.9, 2.9, 1.2, "tanh, sign:\ncode", "data"),
    "loss": Box(8.3, 5.4, 3.4, "structure-aware contrastive loss\nEq. 12 to 17", "loss"),
    "levels": Box(6.7, 1.75, 1.5, "means of levels", "data"),
    "rank": Box(9.4, 1.7, 2.2, "Hamming distance, ties\nby content (3.5)", "search"),
    "rebuilt": Box(6.7, 0.8, 1.5, "rebuilt image", "data"),
    "ood": Box(9.4, 0.6, 2.2, "L1 or 1 − MS-SSIM\n> τ: novel, Eq. 18, 19", "search"),
}

ARROWS = (
    ("image", "print", ""),
    ("image", "stem", ""),
    ("stem", "near", ""),
    ("stem", "far", ""),
    ("stem", "pit", ""),
    ("stem", "decoder", ""),
    ("near", "fusion", "answers"),
    ("far", "fusion", "asks"),
    ("fusion", "kan", "mean"),
    ("pit", "kan", ""),
    ("kan", "code", ""),
    ("print", "loss", "H"),
    ("code", "loss", "S"),
    ("code", "rank", ""),
    ("pit", "levels", ""),
    ("fusion", "levels", ""),
    ("levels", "rank", ""),
    ("decoder", "rebuilt", ""),
    ("rebuilt", "ood", ""),
)
"""From, to, and what is written at the arrow."""


def rows() -> pd.DataFrame:
    """The arrows: columns source, target, label."""
    return pd.DataFrame(ARROWS, columns=["source", "target", "label"])


def draw() -> Figure:
    """Boxes and arrows from left to right; grey: has weights, dashed: trains them, dotted: searches with them."""
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 4.3))
        for box in BOXES.values():
            face, line = KINDS[box.kind]
            corner = (box.x - box.width / 2, box.y - 0.36)
            look = {"boxstyle": "round,pad=0,rounding_size=0.08", "facecolor": face, "edgecolor": "black"}
            axis.add_patch(FancyBboxPatch(corner, box.width, 0.72, linestyle=line, linewidth=1, zorder=3, **look))
            axis.text(box.x, box.y, box.text, ha="center", va="center", fontsize=6.5, zorder=4)
        for source, target, label in ARROWS:
            start, end = _ends(BOXES[source], BOXES[target])
            arrow = FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=8, color="0.25", linewidth=0.9)
            axis.add_patch(arrow)
            middle = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            if label:
                axis.text(*middle, label, fontsize=6, ha="center", va="center", bbox=box)
        axis.set(xlim=(0, 10.7), ylim=(0, 6))
        axis.set_axis_off()
        plt.close(figure)
    return figure


def _ends(source: Box, target: Box) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where an arrow leaves and arrives: right to left, or up and down where boxes stand above each other."""
    above = min(source.x + source.width / 2, target.x + target.width / 2)
    below = max(source.x - source.width / 2, target.x - target.width / 2)
    if above > below:
        middle, up = (above + below) / 2, 0.36 if target.y > source.y else -0.36
        return (middle, source.y + up), (middle, target.y - up)
    return (source.x + source.width / 2, source.y), (target.x - target.width / 2, target.y)
