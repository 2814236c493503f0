"""The whole method in one drawing, and attention on tiles."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from lib.encoders.taps import Taps
from lib.figures import style
from lib.heads.acir import ConsolidatedHash
from lib.papers.acir.network import study
from lib.training import acir

HEAT = "cividis"


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


def diagram() -> Figure:
    """Fig. 2, from left to right; grey: has weights, dashed: trains them, dotted: searches with them."""
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


class Looks(NamedTuple):
    """Where one image's parts look, means over heads; each map has rows and columns of pixels and adds up to 1.

    window: of ConvMSA, from one pixel, (p, p). corner: row and column of the window's first pixel in the shallow map.
    token: of PiT's class token, (side, side). fusion: shallow pixels that answer one deep one, (grid, grid). side: of
    the shallow map.
    """

    window: np.ndarray
    corner: tuple[int, int]
    pixel: tuple[int, int]
    token: np.ndarray
    fusion: np.ndarray
    side: int


def looks(network: ConsolidatedHash, taps: Taps, image: int, window: int, pixel: int) -> Looks:
    """Where the parts look on one ``image``: from ``pixel`` of ``window`` of the shallow map, both counted by rows.

    DaRF's query is the deep pixel at the same place.
    """
    shallow, deep = acir.tensors(taps.take(slice(image, image + 1)))
    weights = study.attention(network, shallow, deep)
    p, side, grid = network.near.window, shallow.shape[-1], network.fusion.grid
    across = weights["ConvMSA, shallow"].shape[2]
    row, column = divmod(window, across)
    inner = divmod(pixel, p)
    corner = (row * p, column * p)
    query = tuple((c + i) * grid // side for c, i in zip(corner, inner, strict=True))
    return Looks(
        weights["ConvMSA, shallow"][0, row, column].mean(0)[pixel].reshape(p, p).numpy(),
        corner,
        (corner[0] + inner[0], corner[1] + inner[1]),
        weights["PiT, class token"][0].mean(0).reshape(deep.shape[-2:]).numpy(),
        weights["DaRF"][0, query[0] * grid + query[1]].reshape(grid, grid).numpy(),
        side,
    )


def looks_rows(seen: dict[tuple[int, str], Looks]) -> pd.DataFrame:
    """Every weight that is drawn: columns image, network, part, row, column, weight."""
    rows = []
    for (image, state), one in seen.items():
        for part, weights in (("ConvMSA", one.window), ("PiT", one.token), ("DaRF", one.fusion)):
            for (row, column), weight in np.ndenumerate(weights):
                cells = {"image": image, "network": state, "part": part, "row": row, "column": column}
                rows.append(cells | {"weight": float(weight)})
    return pd.DataFrame(rows)


def attention(tiles: Sequence[np.ndarray | None], seen: dict[tuple[int, str], Looks]) -> Figure:
    """A row per image: the tile (H, W, 3) or nothing, then each part's weights, untrained and trained.

    All maps of a part share one scale, from 0 to the part's largest weight.
    """
    states, images = list(dict.fromkeys(s for _, s in seen)), list(dict.fromkeys(i for i, _ in seen))
    parts = {"ConvMSA, one pixel": "window", "PiT, class token": "token", "DaRF, deep pixel": "fusion"}
    with style.house():
        width = style.WIDTH
        figure, axes = plt.subplots(len(images), 7, figsize=(width, 1.18 * len(images) + 0.85), squeeze=False)
        tops = {name: max(getattr(one, name).max() for one in seen.values()) for name in parts.values()}
        for line, image, tile in zip(axes, images, tiles, strict=True):
            first = seen[image, states[0]]
            _tile(line[0], tile, first)
            for number, (title, name) in enumerate(parts.items()):
                for place, state in enumerate(states):
                    axis = line[1 + 2 * number + place]
                    weights = getattr(seen[image, state], name)
                    shown = axis.imshow(weights, cmap=HEAT, vmin=0, vmax=tops[name])
                    axis.set(xticks=[], yticks=[])
                    if image == images[0]:
                        axis.set_title(f"{title}\n{state}", fontsize=6.5)
            for number in range(3):
                if image == images[-1]:
                    bar = figure.colorbar(
                        shown if number == 2 else line[2 + 2 * number].images[0],
                        ax=axes[:, 1 + 2 * number : 3 + 2 * number],
                        location="bottom",
                        shrink=0.8,
                        aspect=25,
                    )
                    bar.set_label("weight", fontsize=6.5)
                    bar.ax.tick_params(labelsize=6)
        axes[0, 0].set_title("tile, window\nand pixel", fontsize=6.5)
        plt.close(figure)
    return figure


def _tile(axis: plt.Axes, tile: np.ndarray | None, one: Looks) -> None:
    """The tile with the window that is looked at, and the pixel that looks."""
    axis.imshow(np.full((1, 1, 3), 0.9) if tile is None else tile, extent=(0, one.side, one.side, 0))
    (top, left), p = one.corner, len(one.window)
    axis.add_patch(Rectangle((left, top), p, p, fill=False, edgecolor="black", linewidth=1.6))
    axis.add_patch(Rectangle((left, top), p, p, fill=False, edgecolor="white", linewidth=0.7))
    axis.add_patch(Rectangle((one.pixel[1], one.pixel[0]), 1, 1, fill=False, edgecolor="yellow", linewidth=1.2))
    axis.set(xticks=[], yticks=[])
