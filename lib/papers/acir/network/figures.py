"""Pictures of attention on tiles, of learnt functions, and of what each level carries."""

from collections.abc import Sequence
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from torch.nn.functional import silu

from lib.encoders.taps import Taps
from lib.figures import style
from lib.heads.acir import ConsolidatedHash
from lib.heads.kan import KAN
from lib.papers.acir.network import experiment
from lib.training import acir

HEAT = "cividis"


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

    DaRF is asked from the deep pixel at the same place.
    """
    shallow, deep = acir.tensors(taps.take(slice(image, image + 1)))
    seen = experiment.attention(network, shallow, deep)
    p, side, grid = network.near.window, shallow.shape[-1], network.fusion.grid
    across = seen["ConvMSA, shallow"].shape[2]
    row, column = divmod(window, across)
    inner = divmod(pixel, p)
    corner = (row * p, column * p)
    asks = tuple((c + i) * grid // side for c, i in zip(corner, inner, strict=True))
    return Looks(
        seen["ConvMSA, shallow"][0, row, column].mean(0)[pixel].reshape(p, p).numpy(),
        corner,
        (corner[0] + inner[0], corner[1] + inner[1]),
        seen["PiT, class token"][0].mean(0).reshape(deep.shape[-2:]).numpy(),
        seen["DaRF"][0, asks[0] * grid + asks[1]].reshape(grid, grid).numpy(),
        side,
    )


def looks_rows(found: dict[tuple[int, str], Looks]) -> pd.DataFrame:
    """Every weight that is drawn: columns image, network, part, row, column, weight."""
    rows = []
    for (image, state), one in found.items():
        for part, weights in (("ConvMSA", one.window), ("PiT", one.token), ("DaRF", one.fusion)):
            for (row, column), weight in np.ndenumerate(weights):
                cells = {"image": image, "network": state, "part": part, "row": row, "column": column}
                rows.append(cells | {"weight": float(weight)})
    return pd.DataFrame(rows)


def attention(tiles: Sequence[np.ndarray | None], found: dict[tuple[int, str], Looks]) -> Figure:
    """A row per image: the tile (H, W, 3) or nothing, then each part's weights, untrained and trained.

    All maps of a part share one scale, from 0 to the part's largest weight.
    """
    states, images = list(dict.fromkeys(s for _, s in found)), list(dict.fromkeys(i for i, _ in found))
    parts = {"ConvMSA, one pixel": "window", "PiT, class token": "token", "DaRF, deep pixel": "fusion"}
    with style.house():
        width = style.WIDTH
        figure, axes = plt.subplots(len(images), 7, figsize=(width, 1.18 * len(images) + 0.85), squeeze=False)
        tops = {name: max(getattr(one, name).max() for one in found.values()) for name in parts.values()}
        for line, image, tile in zip(axes, images, tiles, strict=True):
            first = found[image, states[0]]
            _tile(line[0], tile, first)
            for number, (title, name) in enumerate(parts.items()):
                for place, state in enumerate(states):
                    axis = line[1 + 2 * number + place]
                    weights = getattr(found[image, state], name)
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


@torch.no_grad()
def curves(layer: KAN, inputs: torch.Tensor, most: int = 6, points: int = 121) -> pd.DataFrame:
    """The learnt functions of the edges that move their bit most on ``inputs: (n, dim_in)``, one of each bit at most.

    Columns edge (a name), x, total, base, spline (of Equation 11), share (of the inputs that lie below x, percent).
    """
    _, base, spline = edges(layer, inputs)
    moves = (base + spline).std(0)  # (dim_out, dim_in)
    best = moves.max(1).values.argsort(descending=True)[:most]
    x = torch.linspace(-1.5 * layer.reach, 1.5 * layer.reach, points)
    frames = []
    for bit in best.tolist():
        number = int(moves[bit].argmax())
        b = layer.base[bit, number] * silu(x)
        s = layer.scale[bit, number] * (layer.basis(x) @ layer.coefficients[bit, number])
        below = (inputs[:, number, None] <= x).double().mean(0) * 100
        columns = {"x": x, "total": b + s, "base": b, "spline": s, "share": below}
        frame = pd.DataFrame({name: values.numpy() for name, values in columns.items()})
        frames.append(frame.assign(edge=f"number {number} to bit {bit}"))
    return pd.concat(frames, ignore_index=True)


@torch.no_grad()
def edges(layer: KAN, inputs: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What every edge adds for ``inputs: (n, dim_in)``: the sum, its base and its spline, (n, dim_out, dim_in) each."""
    base = silu(inputs)[:, None] * layer.base
    spline = torch.einsum("npi,qpi->nqp", layer.basis(inputs), layer.scale[..., None] * layer.coefficients)
    return base + spline, base, spline


def functions(rows: pd.DataFrame) -> Figure:
    """The functions of :func:`curves`, a panel each: total, base and spline; grey: where half of the inputs are."""
    names = list(dict.fromkeys(rows["edge"]))
    with style.house():
        figure, axes = plt.subplots(2, 3, figsize=(style.WIDTH, 3.8), sharex=True)
        for axis, name in zip(axes.flat, names, strict=False):
            part = rows[rows["edge"] == name]
            inside = part["x"][part["share"].between(25, 75)]  # the rest of it may lie beyond what is drawn
            low, high = inside.min(), inside.max()
            axis.axvspan(low, high, color="0.9", zorder=0)
            for number, (column, label) in enumerate({"total": "φ", "base": "base", "spline": "spline"}.items()):
                look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
                axis.plot(part["x"], part[column], label=label, linewidth=2 if number == 0 else 1.2, **look)
            axis.set_title(name, fontsize=8)
        for axis in axes[-1]:
            axis.set_xlabel("input (standardised)")
        for axis in axes[:, 0]:
            axis.set_ylabel("what it adds to the bit")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def levels(rows: pd.DataFrame) -> Figure:
    """mAP of each level, untrained and trained, ± over trainings; dotted: the pooled deep map.

    rows: of :func:`lib.papers.acir.network.tables.levels`.
    """
    by = rows.set_index(["level", "network"])
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 2.9))
        for number, state in enumerate((experiment.UNTRAINED, experiment.TRAINED)):
            part = by.xs(state, level="network").reindex(experiment.LEVELS)
            x = np.arange(len(part)) + 0.12 * (2 * number - 1)
            look = {"marker": style.MARKERS[number], "color": style.PALETTE[number], "linestyle": "none"}
            axis.errorbar(x, part["mAP"], yerr=part["spread"], capsize=3, label=state, **look)
        plain = by["mAP"].xs(experiment.POOLED, level="level").iloc[0]
        axis.axhline(plain, color="black", linestyle=":", linewidth=1, label=experiment.POOLED)
        axis.axhline(rows["chance"].mean(), color="0.5", linestyle="--", linewidth=1, label="random order")
        axis.set_xticks(range(len(experiment.LEVELS)), [name.replace(" ", "\n", 1) for name in experiment.LEVELS])
        axis.set_ylabel("mAP@100 (min(k, R), %)")
        axis.set_ylim(0)
        figure.legend(loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure
