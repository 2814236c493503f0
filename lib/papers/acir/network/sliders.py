"""Sliders for the image, the window and the pixel whose attention is drawn."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure

from lib.encoders.taps import Taps
from lib.heads.acir import ConsolidatedHash
from lib.papers.acir.network import figures
from lib.papers.acir.network.experiment import TRAINED, UNTRAINED
from lib.widgets.board import Board
from lib.widgets.slider import Slider


def explore(
    networks: Mapping[str, ConsolidatedHash], taps: Taps, tiles: Sequence[np.ndarray | None], start: tuple[int, int]
) -> Board:
    """The board: images of ``taps`` and their tiles (H, W, 3), untrained and trained network beside each other.

    start: window and pixel at the beginning, both counted by rows.
    """
    network = networks[TRAINED]
    p, side = network.near.window, taps.shallow.shape[-1]

    def looks(image: float, window: float, pixel: float) -> dict[tuple[int, str], figures.Looks]:
        chosen = int(image) - 1, int(window) - 1, int(pixel) - 1
        return {(chosen[0], state): figures.looks(networks[state], taps, *chosen) for state in (UNTRAINED, TRAINED)}

    def draw(image: float, window: float, pixel: float) -> Figure:
        return figures.attention([tiles[int(image) - 1]], looks(image, window, pixel))

    def describe(image: float, window: float, pixel: float) -> str:
        one = looks(image, window, pixel)[int(image) - 1, TRAINED]
        lines = [f"image {image:g}, window {window:g}, pixel {pixel:g}", f"pixel {one.pixel} of {side} x {side}", ""]
        lines += [f"{'trained':10}{'largest weight':>16}{'equal weights':>16}"]
        for name, weights in (("ConvMSA", one.window), ("PiT", one.token), ("DaRF", one.fusion)):
            lines.append(f"{name:10}{weights.max():16.3f}{1 / weights.size:16.3f}")
        return "\n".join(lines)

    counts = {"image": len(tiles), "window": (side // p) ** 2, "pixel": p**2}
    begins = {"image": 1, "window": start[0] + 1, "pixel": start[1] + 1}
    sliders = {name: Slider(name, list(range(1, n + 1)), start=begins[name]) for name, n in counts.items()}
    return Board(sliders, draw, describe, height=230)
