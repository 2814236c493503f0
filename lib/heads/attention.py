"""Attention over the pixels of feature maps: the parts of ACIR's network that look around (Section 3.2).

Attention is written out, without a fused kernel, which chooses by processor how it rounds.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, gelu, interpolate, linear

from lib import checks
from lib.errors import InputError

QUERIES = ("deep", "shallow")
"""Which map has the queries of :class:`DaRF`: as Equation 9 is printed, or as the sentence beside it has it."""


class ConvMSA(nn.Module):
    """Self-attention inside windows (Equations 7 and 8): a map (b, channels, h, w) keeps its shape.

    channels: C = D_h · N_h. heads: N_h. window: pixels of its side, p_h = p_w. Raises InputError where the heads do not
    divide the channels, and for a map that the window does not divide.
    """

    def __init__(self, channels: int, heads: int = 4, window: int = 4) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("heads", heads), ("window", window)):
            checks.whole(name, value)
        _check_heads(channels, heads)
        self.heads, self.window = heads, window
        self.query_key_value = nn.Conv2d(channels, 3 * channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        (b, c, h, w), p = x.shape, self.window
        weights, v = self._attend(x)
        attended = (weights @ v).transpose(1, 2).reshape(b, h // p, w // p, p, p, c)
        return attended.permute(0, 5, 1, 3, 2, 4).reshape(b, c, h, w)

    def attention(self, x: Tensor) -> Tensor:
        """The weights of Equation 8: (b, h/p, w/p, heads, p², p²), pixels of a window row by row; rows add up to 1."""
        p = self.window
        return self._attend(x)[0].unflatten(0, (len(x), x.shape[2] // p, x.shape[3] // p))

    def _attend(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Weights (windows, heads, p², p²) and values (windows, heads, p², D_h)."""
        (_, c, h, w), p = x.shape, self.window
        if h % p or w % p:
            raise InputError(f"windows of {p} x {p} do not cover a map of {h} x {w}: take a common divisor")
        pixels = x.unflatten(3, (w // p, p)).unflatten(2, (h // p, p)).permute(0, 2, 4, 3, 5, 1).reshape(-1, p * p, c)
        own = self.query_key_value  # as a matrix: a convolution of so many small maps is slow
        mixed = linear(pixels, own.weight.flatten(1), own.bias)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in mixed.split(c, dim=2))
        return _weights(q, k), v


class Layer(nn.Module):
    """A layer of a vision transformer: self-attention, then two linear layers, each behind a norm and added."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(channels), nn.LayerNorm(channels)
        self.query_key_value, self.join = nn.Linear(channels, 3 * channels), nn.Linear(channels, channels)
        self.widen, self.narrow = nn.Linear(channels, 2 * channels), nn.Linear(2 * channels, channels)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens (b, n, channels) to tokens, and the weights (b, heads, n, n) of its attention."""
        mixed = self.query_key_value(self.before(x)).unflatten(2, (3, self.heads, -1))
        q, k, v = mixed.permute(2, 0, 3, 1, 4).unbind(0)
        weights = _weights(q, k)
        x = x + self.join((weights @ v).transpose(1, 2).flatten(2))
        return x + self.narrow(gelu(self.widen(self.between(x)))), weights


class PiT(nn.Module):
    """Pixels as tokens (Equation 6): class token, a position for each pixel, ``layers`` of self-attention.

    channels: of the map, and width of a token. side: height and width of the map. Raises InputError for another map.
    """

    def __init__(self, channels: int, side: int, layers: int = 2, heads: int = 4) -> None:
        super().__init__()
        for name, value in (("channels", channels), ("side", side), ("layers", layers), ("heads", heads)):
            checks.whole(name, value)
        _check_heads(channels, heads)
        self.token = nn.Parameter(torch.zeros(channels))
        self.positions = nn.Parameter(torch.zeros(1 + side**2, channels))
        self.layers = nn.ModuleList(Layer(channels, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(channels)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """A map ``x: (b, channels, side, side)`` to the class token (b, channels) and pixels of the shape of x."""
        out = self._refined(x)[0]
        return out[:, 0], out[:, 1:].mT.unflatten(2, x.shape[2:])

    def attention(self, x: Tensor) -> Tensor:
        """The weights of every layer, (b, layers, heads, 1 + side², 1 + side²), the class token first."""
        return torch.stack(self._refined(x)[1], dim=1)

    def _refined(self, x: Tensor) -> tuple[Tensor, list[Tensor]]:
        tokens = x.flatten(2).mT
        if tokens.shape[1:] != (len(self.positions) - 1, len(self.token)):
            places, width = len(self.positions) - 1, len(self.token)
            raise InputError(f"a map of {tuple(x.shape[1:])} does not fit {places} pixels of {width} numbers")
        out = torch.cat([self.token.expand(len(x), 1, -1), tokens], dim=1) + self.positions
        weights = []
        for layer in self.layers:
            out, seen = layer(out)
            weights.append(seen)
        return self.norm(out), weights


class DaRF(nn.Module):
    """Depth-aware fusion (Equation 9): one map has the queries, the other has keys and values.

        R_F = softmax(Q Kᵀ/√width) E,   Q = 1×1(queries' map),   K = 1×1(E),   E: the other map

    Args:
        shallow, deep: channels of the two maps. The result has as many as the deep one.
        width: of queries and keys. grid: A, and I where the deep map is coarser, bring both maps to grid × grid pixels.
        queries: "deep" is Equation 9 as printed: E = E_s, and the result is a mixture of shallow features alone.
            "shallow" is the sentence beside it and the authors' code (AC-24): shallow features select deep ones,
            E = E_d (their code has twelve heads, and a convolution for values).
    """

    def __init__(self, shallow: int, deep: int, width: int = 64, grid: int = 4, queries: str = "deep") -> None:
        super().__init__()
        for name, value in (("shallow", shallow), ("deep", deep), ("width", width), ("grid", grid)):
            checks.whole(name, value)
        if queries not in QUERIES:
            raise InputError(f"queries = {queries!r} is unknown; choose one of {', '.join(QUERIES)}")
        self.grid, self.queries = grid, queries
        looks, holds = (deep, shallow) if queries == "deep" else (shallow, deep)
        self.query, self.key = nn.Conv2d(looks, width, 1), nn.Conv2d(holds, width, 1)
        self.project = nn.Conv2d(holds, deep, 1)

    def forward(self, shallow: Tensor, deep: Tensor) -> Tensor:
        """Fused features (b, deep channels, grid, grid) of maps (b, channels, h, w) of any size."""
        return self.mix(self.attention(shallow, deep), shallow, deep)

    def mix(self, weights: Tensor, shallow: Tensor, deep: Tensor) -> Tensor:
        """Fused features of these ``weights``, of :meth:`attention`; only the map that holds the values is read."""
        value = self._aligned(shallow, deep)[1]
        return self.project((weights @ value.flatten(2).mT).mT.unflatten(2, (self.grid, self.grid)))

    def attention(self, shallow: Tensor, deep: Tensor) -> Tensor:
        """How each pixel with a query weighs the pixels of the other map: (b, grid², grid²); rows add up to 1."""
        looks, holds = self._aligned(shallow, deep)
        return _weights(self.query(looks).flatten(2).mT, self.key(holds).flatten(2).mT)

    def _aligned(self, shallow: Tensor, deep: Tensor) -> tuple[Tensor, Tensor]:
        """The map with the queries and the one with keys and values, both (b, ·, grid, grid)."""
        shallow = adaptive_avg_pool2d(shallow, self.grid)
        deep = interpolate(deep, (self.grid, self.grid), mode="bilinear", align_corners=False)
        return (deep, shallow) if self.queries == "deep" else (shallow, deep)


def _check_heads(channels: int, heads: int) -> None:
    if channels % heads:
        raise InputError(f"{channels} channels cannot be shared among {heads} heads: take a divisor")


def _weights(q: Tensor, k: Tensor) -> Tensor:
    """softmax(q kᵀ/√D) of queries and keys (..., n, D)."""
    return (q * q.shape[-1] ** -0.5 @ k.mT).softmax(-1)
