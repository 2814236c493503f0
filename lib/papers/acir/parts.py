"""What each part of the network takes, gives and weighs, ours and at the paper's widths; the method in one drawing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import matplotlib.pyplot as plt
import pandas as pd
import timm
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lib.encoders.taps import Stem
from lib.figures import style
from lib.heads.acir import ConsolidatedHash
from lib.study.columns import Column, Layout
from lib.training.acir import Design

PARTS = {
    "stem": ("ConvNet stem", "–"),
    "narrow.0": ("1×1, shallow", "ours"),
    "narrow.1": ("1×1, deep", "ours"),
    "near": ("ConvMSA, shallow", "7, 8"),
    "far": ("ConvMSA, deep", "7, 8"),
    "fusion": ("DaRF", "9"),
    "pit": ("PiT", "6"),
    "norm": ("norm of what is joined", "–"),
    "kan": ("KAN", "10, 11"),
    "decoder": ("decoder", "–"),
}
"""The parts in the order of the data: what each is called, and what equation the paper has for it."""

PAPER = Design(bits=128, narrow=None, layers=2, heads=8, width=64, grid=7)
"""Our guess at the paper's network, which has no layers, heads, window or width (AC-23), nor bits in Table 7."""

PAPER_PIXELS, PAPER_STEM = 224, "resnet50"


@dataclass(frozen=True)
class Authors:
    """The network of the authors' public code (AC-23), as read there; that code does not run as it stands.

    It is evidence of what the paper leaves open, and no oracle: :mod:`lib.papers.acir.cost` counts it.

    batch: images of a batch. pixels, fingerprint: sides of an image and of its fingerprint. layers, heads, width,
    inner: of PiT, width of a token and of a layer's hidden numbers. joined: how many last layers have their tokens
    joined. out: numbers that a linear layer makes of them. window, window_heads, window_width: of ConvMSA, width of a
    head; with a position bias, and added to its input. fusion_heads, fusion_width, grid: of DaRF, which has queries
    from the shallow map (AC-24), after BatchNorm, ReLU and pooling to grid × grid pixels. hidden: numbers between two
    KAN layers. intervals, order, reach: of their splines, on [−reach, reach]. decoder: channels of its convolutions,
    two in each of three blocks. The code is the sign of the last KAN layer, without a tanh.
    """

    batch: int = 256
    pixels: int = 224
    fingerprint: int = 32
    layers: int = 12
    heads: int = 12
    width: int = 768
    inner: int = 3072
    joined: int = 6
    out: int = 1536
    window: int = 7
    window_heads: int = 8
    window_width: int = 64
    fusion_heads: int = 12
    fusion_width: int = 128
    grid: int = 7
    hidden: int = 512
    intervals: int = 5
    order: int = 3
    reach: float = 1.0
    decoder: tuple[int, ...] = (512, 512, 256, 256, 128, 64)


AUTHORS = Authors()


def resnet() -> tuple[Stem, int]:
    """The paper's stem without weights, on the meta device, and the side of its images (ours: none is given)."""
    with torch.device("meta"):
        return Stem(timm.create_model(PAPER_STEM, pretrained=False, num_classes=0)).eval(), PAPER_PIXELS


def table(design: Design, stem: Stem, pixels: int) -> pd.DataFrame:
    """A row per part: part, equation, input, output (channels × height × width, or numbers), parameters, gmac.

    gmac: billions of multiplications in layers and products, for one image. The network has its decoder; on the meta
    device there are shapes and counts, no numbers.
    """
    with torch.device("meta"):
        stem, whole = stem.to("meta"), ConsolidatedHash(*stem.channels, pixels // 32, **vars(design)).eval()
    seen: dict[str, dict[str, str]] = {}
    hooks = [stem.register_forward_hook(_note(seen, "stem"))]
    known = dict(whole.named_modules())
    hooks += [known[name].register_forward_hook(_note(seen, name)) for name in PARTS if name in known]
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        shallow, deep = stem(torch.zeros(1, 3, pixels, pixels, device="meta"))
        of_stem = counter.get_total_flops()
        whole(shallow, deep)
        of_network = counter.get_total_flops() - of_stem
        whole.rebuild(deep)
    for hook in hooks:
        hook.remove()
    flops = counter.get_flop_counts()
    rows = []
    for name, (title, equation) in PARTS.items():
        if name in seen:
            module = stem if name == "stem" else known[name]
            own = of_stem if name == "stem" else sum(flops.get(f"ConsolidatedHash.{name}", {}).values())
            own = counter.get_total_flops() - of_stem - of_network if name == "decoder" else own
            count = sum(value.numel() for value in module.parameters())
            rows.append({"part": title, "equation": equation, **seen[name], "parameters": count, "gmac": own / 2e9})
    return pd.DataFrame(rows)


def _note(seen: dict[str, dict[str, str]], name: str) -> Callable[..., None]:
    def hook(_: nn.Module, given: tuple, made: object) -> None:
        seen[name] = {"input": _shapes(given), "output": _shapes(made)}

    return hook


def _shapes(values: object) -> str:
    shown = values if isinstance(values, tuple | list) else (values,)
    return ", ".join(" × ".join(map(str, value.shape[1:])) for value in shown)


def with_totals(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` of both networks, and below the parts all parameters of each."""
    totals = rows.groupby("network", sort=False)["parameters"].sum().reset_index()
    return pd.concat([rows, totals.assign(part="all")], ignore_index=True)


COLUMNS = (
    Column("part"),
    Column("equation"),
    Column("{}: in", "input", over="network"),
    Column("{}: out", "output", over="network"),
    Column("{}: parameters", "parameters", "{:,.0f}", over="network"),
)


LAYOUT = Layout(COLUMNS, ["part"], prepare=with_totals)
"""Ours and ResNet-50's widths side by side."""


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
    ("near", "fusion", "keys"),
    ("far", "fusion", "query"),
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
