"""The network of the authors' public code, counted layer by layer (AC-23).

Its widths are not those of :class:`lib.heads.acir.ConsolidatedHash`: a token is narrower than the map, ConvMSA and DaRF
have heads of their own width, and the tokens of several layers are joined. So all but the stem and the KAN layers is
counted here by its matrices: a convolution of 1×1 is a linear layer at every pixel.
"""

from itertools import pairwise

import pandas as pd

from lib.heads.kan import KAN
from lib.papers.acir.cost.networks import DEEP, NOTHING, PIXELS, SHALLOW, SIDE, Cost, count, resnet
from lib.papers.acir.network.parts import AUTHORS, Authors

CLASSES = 16
"""Of RadIN-CT, for the classifier that the code trains beside the code."""


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
    """What each part costs for one image, by name; the decoder, which comes last, works for novelty alone."""
    own = {"ConvNet stem": count(lambda: resnet(0), (1, 3, PIXELS, PIXELS))}
    for name, channels, side in (("shallow", SHALLOW, 4 * SIDE), ("deep", DEEP, SIDE)):
        own[f"ConvMSA, {name}"] = _windows(channels, side**2, code)
    own |= {"DaRF": _fusion(code), "PiT": _pixels(bits, code), "tokens joined": _joined(code)}
    n = 2 * code.out + SHALLOW
    own["KAN"] = count(lambda: KAN(n, code.hidden, code.intervals, code.order, code.reach), (1, n))
    own["KAN"] += count(lambda: KAN(code.hidden, bits, code.intervals, code.order, code.reach), (1, code.hidden))
    return own | {"classifier": linear(code.hidden, CLASSES), "decoder": _decoder(code)}


CODE = "ResNet-50, authors' code"
WITHOUT = {CODE: ("decoder",), f"{CODE}, with decoder": (), f"{CODE}, with decoder, without KAN": ("KAN",)}
"""Name of a row of Table 7 → the parts that it leaves out."""


def costs(bits: int = 16) -> pd.DataFrame:
    """The rows of :data:`WITHOUT`, columns of :func:`lib.papers.acir.cost.networks.costs`."""
    own, rows = parts(bits), []
    for name, left_out in WITHOUT.items():
        cost = sum((one for part, one in own.items() if part not in left_out), NOTHING)
        cells = {"network": name, "whose": "authors' code", "pixels": AUTHORS.pixels}
        rows.append(cells | {"macs": cost.macs, "parameters": cost.parameters})
    return pd.DataFrame(rows)


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
