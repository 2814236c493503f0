"""What each part of the network takes, gives and weighs, ours and at the widths of the paper's ResNet-50."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd
import timm
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from lib.encoders.taps import Stem
from lib.heads.acir import ConsolidatedHash
from lib.metrics.novelty import WEIGHTS
from lib.study.columns import Column, Layout
from lib.training.acir import Design
from lib.training.fit import Schedule

EQUATIONS = {
    "stem": "–",
    "narrow.0": "ours",
    "narrow.1": "ours",
    "near": "7, 8",
    "far": "7, 8",
    "fusion": "9",
    "pit": "6",
    "norm": "–",
    "kan": "10, 11",
    "decoder": "–",
}
"""The parts in the order of the data, and what equation the paper has for each."""

TITLES = {
    "stem": "ConvNet stem",
    "narrow.0": "1×1, shallow",
    "narrow.1": "1×1, deep",
    "near": "ConvMSA, shallow",
    "far": "ConvMSA, deep",
    "fusion": "DaRF",
    "pit": "PiT",
    "norm": "norm of what is joined",
    "kan": "KAN",
    "decoder": "decoder",
}

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


def network(design: Design, stem: Stem, pixels: int) -> ConsolidatedHash:
    """The network on that stem, with its decoder, on the meta device: shapes and counts, no numbers."""
    with torch.device("meta"):
        return ConsolidatedHash(*stem.channels, pixels // 32, **vars(design)).eval()


def table(design: Design, stem: Stem, pixels: int) -> pd.DataFrame:
    """A row per part: part, equation, input, output (channels × height × width, or numbers), parameters, gmac.

    gmac: billions of multiplications in layers and products, for one image.
    """
    stem, whole = stem.to("meta"), network(design, stem, pixels)
    seen: dict[str, dict[str, str]] = {}
    hooks = [stem.register_forward_hook(_note(seen, "stem"))]
    known = dict(whole.named_modules())
    hooks += [known[name].register_forward_hook(_note(seen, name)) for name in EQUATIONS if name in known]
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
    for name, equation in EQUATIONS.items():
        if name in seen:
            module = stem if name == "stem" else known[name]
            own = of_stem if name == "stem" else sum(flops.get(f"ConsolidatedHash.{name}", {}).values())
            own = counter.get_total_flops() - of_stem - of_network if name == "decoder" else own
            count = sum(value.numel() for value in module.parameters())
            rows.append(
                {"part": TITLES[name], "equation": equation, **seen[name], "parameters": count, "gmac": own / 2e9}
            )
    return pd.DataFrame(rows)


def _note(seen: dict[str, dict[str, str]], name: str) -> Callable[..., None]:
    def hook(_: nn.Module, given: tuple, made: object) -> None:
        seen[name] = {"input": _shapes(given), "output": _shapes(made)}

    return hook


def _shapes(values: object) -> str:
    shown = values if isinstance(values, tuple | list) else (values,)
    return ", ".join(" × ".join(map(str, value.shape[1:])) for value in shown)


def left_open(design: Design, stem: Stem, pixels: int, fingerprint: int, schedule: Schedule) -> pd.DataFrame:
    """What the paper gives no value for (AC-23), and what stands here: columns open, ours, paper, authors.

    ours, paper: read off the networks and settings that are used, those of ``design`` on ``stem`` with images of
    ``pixels`` and fingerprints of ``fingerprint`` pixels a side, and :data:`PAPER`, a guess; a dash where no guess is
    needed. authors: what their public code has (:data:`AUTHORS`).
    """
    guess, code = network(PAPER, *resnet()), AUTHORS
    made = network(design, stem, pixels)
    fusion = f"{code.fusion_heads} heads of {code.fusion_width}"
    rows = [
        ("pixels of an image", pixels, PAPER_PIXELS, code.pixels),
        ("images of a batch", schedule.batch_size, None, code.batch),
        ("pixels of a fingerprint's side", fingerprint, None, code.fingerprint),
        ("layers of PiT", len(made.pit.layers), len(guess.pit.layers), code.layers),
        ("heads of attention", made.near.heads, guess.near.heads, f"{code.heads}, ConvMSA {code.window_heads}"),
        ("window of ConvMSA, pixels of its side", made.near.window, guess.near.window, code.window),
        ("map with DaRF's queries (AC-24)", made.fusion.queries, guess.fusion.queries, "shallow"),
        ("inner width of DaRF", made.fusion.query.out_channels, guess.fusion.query.out_channels, fusion),
        ("intervals of a spline of KAN", made.kan[0].grid, guess.kan[0].grid, code.intervals),
        ("KAN layers (AC-7)", len(made.kan), len(guess.kan), 2),
        ("exponents of MS-SSIM", ", ".join(map(str, WEIGHTS)), None, None),
    ]
    columns = ("open", "ours", "paper", "authors")
    return pd.DataFrame([dict(zip(columns, map(str, row), strict=True)) for row in rows]).replace("None", "–")


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


def layout(rows: pd.DataFrame) -> str:
    """Ours and ResNet-50's widths side by side, as Markdown."""
    return Layout(COLUMNS, ["part"])(with_totals(rows))
