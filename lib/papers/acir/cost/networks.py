"""Numbers and multiplications of a network, counted without weights, and widths that give the published ones."""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import timm
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from lib.encoders.taps import Stem
from lib.errors import InputError
from lib.heads.acir import ConsolidatedHash, Decoder
from lib.heads.attention import ConvMSA, DaRF
from lib.heads.kan import KAN
from lib.papers.acir.network.parts import PAPER
from lib.training.acir_end_to_end import Whole

PIXELS = 224
SHALLOW, DEEP = 512, 2048
"""Channels of the maps of a ResNet-50 at strides 8 and 32."""

SIDE = PIXELS // 32
NEAR, FAR = (1, SHALLOW, 4 * SIDE, 4 * SIDE), (1, DEEP, SIDE, SIDE)
"""Both maps of one image."""


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
    """The cost of one pass of ``make()`` over inputs of these shapes, with torch's own counter, on no device at all.

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


def published_like(bits: int = 16) -> Whole:
    """ResNet-50 with ACIR's network at full width, sizes of :data:`lib.papers.acir.network.parts.PAPER`, no decoder."""
    design = replace(PAPER, bits=bits)
    return whole(Stem(resnet(1000)), ConsolidatedHash(SHALLOW, DEEP, SIDE, **vars(design), image_channels=0))


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


def networks() -> Mapping[str, tuple[Callable[[], nn.Module], int]]:
    """Everything that is counted: name → how it is made, pixels of its images."""
    return {
        "ResNet-50, 1000 classes": (lambda: resnet(1000), PIXELS),
        "ResNet-50, 16 bits (CSQ)": (lambda: resnet(16), PIXELS),
        "ResNet-50, ACIR's network": (published_like, PIXELS),
        "Lite0, 16 bits": (lambda: small(PIXELS, acir=False), PIXELS),
        "Lite0, ACIR's network": (lambda: small(PIXELS, acir=True), PIXELS),
        "Lite0 at 96 px, 16 bits": (lambda: small(96, acir=False), 96),
        "Lite0 at 96 px, ACIR's network": (lambda: small(96, acir=True), 96),
    }


def costs() -> pd.DataFrame:
    """Columns network, whose, pixels, macs (G), parameters (M)."""
    rows = []
    for name, (make, pixels) in networks().items():
        found = count(make, (1, 3, pixels, pixels))
        cells = {"network": name, "whose": "ours", "pixels": pixels}
        rows.append(cells | {"macs": found.macs, "parameters": found.parameters})
    return pd.DataFrame(rows)


def parts(width: int, ratio: int, decoder: int, bits: int = 16) -> tuple[Cost, Cost]:
    """ACIR on a ResNet-50 without layers of PiT, and one layer of PiT.

    width: of a token; a convolution of 1×1 leads to it where it is not that of the map. ratio: of the hidden layer of a
    token's perceptron to ``width``. decoder: width of its first block, 0 for none.
    """
    rest = _fixed() + _head(width, bits) + _decoder(decoder)
    tokens = (1, 1 + SIDE**2, width)
    layer = nn.TransformerEncoderLayer
    return rest, count(lambda: layer(width, 8, ratio * width, batch_first=True), tokens)


@cache
def _fixed() -> Cost:
    """ResNet-50, both ConvMSA and DaRF, which no size below changes."""
    found = count(lambda: resnet(0), (1, 3, PIXELS, PIXELS))
    found += count(lambda: ConvMSA(SHALLOW), NEAR) + count(lambda: ConvMSA(DEEP, window=SIDE), FAR)
    return found + count(lambda: DaRF(SHALLOW, DEEP), NEAR, FAR)


@cache
def _head(width: int, bits: int) -> Cost:
    """The KAN layer, and the convolution to the width of a token."""
    narrow = NOTHING if width == DEEP else count(lambda: nn.Conv2d(DEEP, width, 1), FAR)
    return narrow + count(lambda: KAN(DEEP + 2 * width, bits), (1, DEEP + 2 * width))


@cache
def _decoder(width: int) -> Cost:
    return count(lambda: Decoder(DEEP, 3, width), FAR) if width else NOTHING


def search(
    target: Cost,
    widths: Sequence[int] = (512, 768, 1024, 2048),
    ratios: Sequence[int] = (1, 2, 4),
    layers: Sequence[int] = tuple(range(1, 13)),
    decoders: Sequence[int] = (0, 64, 128, 256, 512),
) -> pd.DataFrame:
    """Which sizes of ACIR on a ResNet-50 come to ``target``, the nearest first.

    Columns width, ratio, layers, decoder (see :func:`parts`), macs, parameters, off: the larger of both relative
    deviations, in percent.
    """
    rows = []
    for width, ratio, decoder in itertools.product(widths, ratios, decoders):
        rest, layer = parts(width, ratio, decoder)
        for n in layers:
            found = rest + layer * n
            off = max(abs(found.macs / target.macs - 1), abs(found.parameters / target.parameters - 1))
            sizes = {"width": width, "ratio": ratio, "layers": n, "decoder": decoder}
            rows.append(sizes | {"macs": found.macs, "parameters": found.parameters, "off": 100 * off})
    return pd.DataFrame(rows).sort_values("off", kind="stable").reset_index(drop=True)


@torch.inference_mode()
def times(makers: Mapping[str, tuple[Callable[[], nn.Module], int]], repeats: int = 5) -> pd.Series:
    """Median seconds of one image on this machine, the networks in turns, so that a busy moment meets all.

    makers: of :func:`networks`, how each is made and the side of its image. A first turn does not count. Raises
    InputError for no repeat.
    """
    if repeats < 1:
        raise InputError(f"repeats = {repeats}: measure at least once")
    made = {name: (make().eval(), torch.zeros(1, 3, pixels, pixels)) for name, (make, pixels) in makers.items()}
    turns = [{name: _seconds(*one) for name, one in made.items()} for _ in range(repeats + 1)]
    return pd.Series({name: float(np.median([turn[name] for turn in turns[1:]])) for name in made})


def _seconds(network: nn.Module, image: Tensor) -> float:
    start = time.perf_counter()
    network(image)
    return time.perf_counter() - start
