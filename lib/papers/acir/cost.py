"""Section 5: what ACIR costs (Table 7). Networks are counted without weights, on no device at all.

The widths of the authors' public code (AC-23) are not those of :class:`lib.heads.acir.ConsolidatedHash`: a token is
narrower than the map, ConvMSA and DaRF have heads of their own width, and the tokens of several layers are joined. So
all of it but the stem and the KAN layers is counted by its matrices: a convolution of 1×1 is a linear layer at every
pixel.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import pandas as pd
import timm
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lib.encoders.taps import Stem
from lib.heads.acir import ConsolidatedHash
from lib.heads.kan import KAN
from lib.papers.acir import published
from lib.papers.acir.parts import AUTHORS, PAPER, Authors
from lib.study.columns import Column, Layout
from lib.training.acir_end_to_end import Whole

PIXELS = 224
SHALLOW, DEEP = 512, 2048
"""Channels of the maps of a ResNet-50 at strides 8 and 32."""

SIDE = PIXELS // 32
"""Of the deep map; the shallow one is four times as wide."""

CLASSES = 16
"""Of RadIN-CT, for the classifier that the authors' code trains beside the code."""


@dataclass(frozen=True)
class Cost:
    """macs: multiplications, each with its addition, in thousand millions (G). parameters: in millions (M)."""

    macs: float
    parameters: float

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(self.macs + other.macs, self.parameters + other.parameters)

    def __mul__(self, times: float) -> "Cost":
        return Cost(self.macs * times, self.parameters * times)


NOTHING = Cost(0.0, 0.0)


def count(make: Callable[[], nn.Module], *shapes: Sequence[int]) -> Cost:
    """The cost of one pass of ``make()`` over inputs of these shapes, with torch's own counter.

    torch counts a multiplication and an addition as two; papers that print 4.1 for a ResNet-50 count them as one, and
    so does this. Additions, activations, norms and the splines' polynomials are not counted.
    """
    with torch.device("meta"):
        network, inputs = make(), [torch.empty(tuple(shape)) for shape in shapes]
    with FlopCounterMode(display=False) as counter:
        network(*inputs)
    return Cost(counter.get_total_flops() / 2e9, sum(value.numel() for value in network.parameters()) / 1e6)


def resnet(classes: int) -> nn.Module:
    """A ResNet-50 without weights; ``classes``: outputs of its last layer, 0 for none."""
    return timm.create_model("resnet50", pretrained=False, num_classes=classes)


def whole(stem: Stem, network: ConsolidatedHash) -> Whole:
    """Stem and network of ACIR in one, for pixels that are scaled already: (b, 3, H, W) to its outputs."""
    return Whole(stem, network, (torch.zeros(3, 1, 1), torch.ones(3, 1, 1)))


def published_like() -> Whole:
    """ResNet-50 with ACIR's network at full width, sizes of :data:`PAPER`, 16 bits, no decoder."""
    sizes = vars(replace(PAPER, bits=16)) | {"image_channels": 0}
    return whole(Stem(resnet(1000)), ConsolidatedHash(SHALLOW, DEEP, SIDE, **sizes))


class Plain(nn.Module):
    """Stem, mean of its deep map, and a linear hash head."""

    def __init__(self, stem: Stem, bits: int) -> None:
        super().__init__()
        self.stem, self.head = stem, nn.Linear(stem.channels[1], bits)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.stem(images)[1].mean((2, 3))).tanh()


def small(pixels: int, bits: int = 16, *, acir: bool) -> nn.Module:
    """EfficientNet-Lite0 with a linear hash head, or with ACIR's network of the sizes that the notebooks train."""
    stem = Stem(timm.create_model("tf_efficientnet_lite0", pretrained=False))
    if not acir:
        return Plain(stem, bits)
    narrow = {"narrow": (16, 64), "layers": 1, "width": 32, "grid": 3, "image_channels": 0}
    return whole(stem, ConsolidatedHash(*stem.channels, pixels // 32, bits, **narrow))


CSQ = "ResNet-50, 16 bits (CSQ)"
"""The network that all ratios of ours are to."""


def networks() -> Mapping[str, tuple[Callable[[], nn.Module], int]]:
    """Everything of ours that is counted: name → how it is made, pixels of its images."""
    return {
        "ResNet-50, 1000 classes": (lambda: resnet(1000), PIXELS),
        CSQ: (lambda: resnet(16), PIXELS),
        "ResNet-50, ACIR's network": (published_like, PIXELS),
        "Lite0, 16 bits": (lambda: small(PIXELS, acir=False), PIXELS),
        "Lite0, ACIR's network": (lambda: small(PIXELS, acir=True), PIXELS),
        "Lite0 at 96 px, 16 bits": (lambda: small(96, acir=False), 96),
        "Lite0 at 96 px, ACIR's network": (lambda: small(96, acir=True), 96),
    }


def linear(n_in: int, n_out: int, places: int = 1, bias: bool = True) -> Cost:
    """A linear layer from ``n_in`` to ``n_out`` numbers at each of ``places``."""
    return Cost(places * n_in * n_out / 1e9, (n_in + bias) * n_out / 1e6)


def products(queries: int, keys: int, width: int) -> Cost:
    """Both products of attention, all heads together ``width`` numbers wide."""
    return Cost(2 * queries * keys * width / 1e9, 0.0)


def values(n: int) -> Cost:
    """``n`` learnt numbers that multiply no matrix: of a norm, of positions."""
    return Cost(0.0, n / 1e6)


def parts(bits: int = 16, code: Authors = AUTHORS) -> dict[str, Cost]:
    """The authors' network, part by part, for one image; the decoder, which comes last, works for novelty alone."""
    own = {"ConvNet stem": count(lambda: resnet(0), (1, 3, PIXELS, PIXELS))}
    for name, channels, side in (("shallow", SHALLOW, 4 * SIDE), ("deep", DEEP, SIDE)):
        own[f"ConvMSA, {name}"] = _windows(channels, side**2, code)
    own |= {"DaRF": _fusion(code), "PiT": _pixels(bits, code), "tokens joined": _joined(code)}
    n = 2 * code.out + SHALLOW
    own["KAN"] = count(lambda: KAN(n, code.hidden, code.intervals, code.order, code.reach), (1, n))
    own["KAN"] += count(lambda: KAN(code.hidden, bits, code.intervals, code.order, code.reach), (1, code.hidden))
    return own | {"classifier": linear(code.hidden, CLASSES), "decoder": _decoder(code)}


def _windows(channels: int, pixels: int, code: Authors) -> Cost:
    """Attention in windows, its output brought back to ``channels``; a bias for each offset of two pixels."""
    width = code.window_heads * code.window_width
    mixed = linear(channels, 3 * width, pixels, bias=False) + linear(width, channels, pixels)
    return mixed + products(pixels, code.window**2, width) + values((2 * code.window - 1) ** 2)


def _fusion(code: Authors) -> Cost:
    """Queries from the shallow map, keys and values from the deep one, the result as wide as the shallow one."""
    width, pixels = code.fusion_heads * code.fusion_width, code.grid**2
    norms = values(2 * (SHALLOW + DEEP))
    sides = linear(SHALLOW, width, pixels, bias=False) + linear(DEEP, 2 * width, pixels, bias=False)
    return norms + sides + products(pixels, pixels, width) + linear(width, SHALLOW, pixels, bias=False)


def _pixels(bits: int, code: Authors) -> Cost:
    """PiT. A last norm and a linear layer to the code are made and not used; they are counted, and multiply nothing."""
    d, n = code.width, 1 + SIDE**2
    tokens = values(2 * DEEP) + linear(DEEP, d, SIDE**2) + values(2 * d + (1 + n) * d)
    attention = linear(d, 3 * d, n, bias=False) + products(n, n, d) + linear(d, d, n)
    layer = attention + linear(d, code.inner, n) + linear(code.inner, d, n) + values(4 * d)
    return tokens + layer * code.layers + values(2 * d + (d + 1) * bits)


def _joined(code: Authors) -> Cost:
    """The class tokens of the last layers to ``out`` numbers, and their pixels to as many."""
    n = code.joined * code.width
    return linear(n, code.out) + linear(n, code.out, SIDE**2)


def _decoder(code: Authors) -> Cost:
    """Two convolutions of 3×3 in each block, then its upsampling by 2, 4 and 4; a last one to three colours."""
    sides = [SIDE] * 2 + [2 * SIDE] * 2 + [8 * SIDE] * 2 + [32 * SIDE]
    convolutions = zip(pairwise((DEEP, *code.decoder, 3)), sides, strict=True)
    return sum((linear(9 * n_in, n_out, side**2) for (n_in, n_out), side in convolutions), NOTHING)


CODE = "ResNet-50, authors' code"
WITHOUT = {CODE: ("decoder",), f"{CODE}, with decoder": (), f"{CODE}, with decoder, without KAN": ("KAN",)}
"""Row of Table 7 → the parts that it leaves out."""


def costs() -> pd.DataFrame:
    """Ours, then the authors' code by what is left out: columns network, whose, pixels, macs (G), parameters (M)."""
    counted = {(n, "ours", p): count(make, (1, 3, p, p)) for n, (make, p) in networks().items()}
    code = parts()
    for name, out in WITHOUT.items():
        kept = (cost for part, cost in code.items() if part not in out)
        counted[name, "authors' code", AUTHORS.pixels] = sum(kept, NOTHING)
    return pd.DataFrame(
        [dict(zip(("network", "whose", "pixels"), key, strict=True)) | vars(cost) for key, cost in counted.items()]
    )


TABLE_7 = Layout(
    (
        Column("network"),
        Column("whose"),
        Column("pixels", form="0"),
        Column("multiplications (G)", "macs"),
        Column("parameters (M)", "parameters"),
        Column("of CSQ's", "ratio"),
        Column("seconds", form="3"),
    ),
    by=("network", "whose"),
)


def table_7(ours: pd.DataFrame) -> str:
    """Published rows, then :func:`costs`; ratios are to the published CSQ, and to ours."""
    theirs = published.costs().rename(columns={"method": "network"}).assign(whose="published")
    tables = []
    for rows, name in ((theirs, "CSQ"), (ours, CSQ)):
        of_csq = rows[["macs", "parameters"]] / rows.set_index("network").loc[name, ["macs", "parameters"]].astype(
            float
        )
        tables.append(rows.assign(ratio=[f"{macs:.2f} / {size:.2f}" for macs, size in of_csq.to_numpy()]))
    return TABLE_7(pd.concat(tables, ignore_index=True))


LAYOUTS = {"table_7": table_7}
