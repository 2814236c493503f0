"""The network of ACIR on two feature maps of any encoder (Sections 3.2 and 3.4).

    shallow map ─ 1×1 ─ ConvMSA ─┐
                                 DaRF ─ 1×1 ─ mean ─┐
    deep map ──── 1×1 ─ ConvMSA ─┘                  ├─ KAN ─ tanh → code
         │          └── PiT ─ class token, tokens ──┘
         └─────── decoder → image

The paper taps the second and the last block of a ResNet-50; here the encoder stays outside, and a tap is a tensor
(b, channels, height, width). The first 1×1 convolutions are ours: they narrow the maps where the network is to be
small. Not given (erratum AC-23 has what the authors' code says): layers, heads and window of the attention, the grid of
the splines, the activation before the sign (tanh here, as in most of deep hashing; none in their code). "Two" KAN
layers in one sentence are "one" in another (AC-7): ``hidden`` makes them two.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, leaky_relu

from lib import checks
from lib.errors import InputError
from lib.geometry.numerics import root
from lib.heads.attention import ConvMSA, DaRF, PiT
from lib.heads.kan import KAN, mlp
from lib.heads.scaling import widths

UPSAMPLING = (2, 4, 4)
"""Of the decoder's three blocks (Section 3.4): 32 in all, the stride of the deep map."""


class Outputs(NamedTuple):
    """What the network makes of an image.

    code: (b, bits) from −1 to 1. levels: (b, ·) means of the features of each level, from shallow to deep, by which
    content is ranked (Section 3.5).
    """

    code: Tensor
    levels: tuple[Tensor, ...]


class Decoder(nn.Module):
    """Rebuild an image of 32 times the side from the deep map alone, without skip connections (Section 3.4).

    Three blocks of convolution, InstanceNorm, LeakyReLU and upsampling by 2, 4 and 4, each with half the channels of
    the one before; a last convolution, and a sigmoid for values from 0 to 1.
    """

    def __init__(self, deep: int, channels: int = 3, width: int = 64) -> None:
        super().__init__()
        for name, value in (("deep", deep), ("channels", channels), ("width", width)):
            checks.whole(name, value)
        widths = [deep, *(max(4, width >> block) for block in range(len(UPSAMPLING)))]
        pairs = pairwise(widths)
        self.blocks = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in pairs)
        self.norms = nn.ModuleList(nn.InstanceNorm2d(b, affine=True) for b in widths[1:])
        self.last = nn.Conv2d(widths[-1], channels, 3, padding=1)

    def forward(self, deep: Tensor) -> Tensor:
        """Images (b, channels, 32 h, 32 w) of ``deep: (b, channels, h, w)``; InputError for a map of one pixel."""
        if deep.shape[2] * deep.shape[3] < 2:
            raise InputError("a deep map of one pixel cannot be normalised over its pixels: take images of 64 or more")
        x = deep
        for conv, norm, factor in zip(self.blocks, self.norms, UPSAMPLING, strict=True):
            x = interpolate(leaky_relu(norm(conv(x)), 0.2), scale_factor=factor, mode="nearest")
        return self.last(x).sigmoid()


class ConsolidatedHash(nn.Module):
    """The network of the figure above: taps → code and levels; :meth:`rebuild` runs the decoder.

    Args:
        shallow, deep: channels of the two maps.
        side: height and width of the deep map.
        bits: length of the code.
        narrow: channels that both maps are brought to by a convolution of 1×1; None leaves them as they are.
        pit: False takes the mean of the deep map where PiT's token and pixels are.
        fusion: False leaves out DaRF, and ConvMSA with it, as nothing else makes the code from its maps.
        windows: False leaves out ConvMSA alone: DaRF gets both maps as they are.
        kan: False takes two linear layers and a ReLU with as many numbers in all instead.
        window: of the attention in the shallow map; that of the deep map covers it whole.
        layers, heads: of PiT; the heads are those of ConvMSA, too.
        width, grid, queries: of DaRF.
        hidden: numbers between two KAN layers; 0 for one layer.
        image_channels: of what the decoder rebuilds; 0 for no decoder.
        generator: source of the initial weights (He-normal, Section 4.1), so that no global state decides them.

    Raises:
        InputError: for a value without meaning, and where heads do not divide channels.
    """

    def __init__(
        self,
        shallow: int,
        deep: int,
        side: int,
        bits: int = 16,
        *,
        narrow: tuple[int, int] | None = None,
        pit: bool = True,
        fusion: bool = True,
        windows: bool = True,
        kan: bool = True,
        window: int = 4,
        layers: int = 2,
        heads: int = 4,
        width: int = 64,
        grid: int = 4,
        queries: str = "deep",
        hidden: int = 0,
        image_channels: int = 3,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        checks.whole("bits", bits)
        checks.whole("hidden", hidden, least=0)
        checks.whole("image_channels", image_channels, least=0)
        for name, value in (("pit", pit), ("fusion", fusion), ("windows", windows), ("kan", kan)):
            checks.switch(name, value)
        if narrow is not None:
            checks.pair("narrow", narrow, checks.whole)
        own = zip(("shallow", "deep"), (shallow, deep), strict=True)
        self.scales = nn.ModuleDict({name: Standard(channels) for name, channels in own})
        self.decoder = Decoder(deep, image_channels) if image_channels else None
        self.narrow = (
            None if narrow is None else nn.ModuleList([nn.Conv2d(shallow, narrow[0], 1), nn.Conv2d(deep, narrow[1], 1)])
        )
        shallow, deep = narrow or (shallow, deep)
        if fusion:
            self.near = ConvMSA(shallow, heads, window) if windows else nn.Identity()
            self.far = ConvMSA(deep, heads, side) if windows else nn.Identity()
        self.fusion = DaRF(shallow, deep, width, grid, queries) if fusion else None
        self.pit = PiT(deep, side, layers, heads) if pit else None
        n = deep * (fusion + 1 + pit)
        self.norm = nn.LayerNorm(n)  # so that inputs lie where the splines are
        pairs = list(pairwise([n, *([hidden] if hidden else []), bits]))
        layer = KAN if kan else mlp
        self.kan = nn.Sequential(*(layer(a, b) for a, b in pairs))
        self.scale, self.shift = nn.Parameter(torch.ones(bits)), nn.Parameter(torch.zeros(bits))
        he_normal(self, generator)

    def forward(self, shallow: Tensor, deep: Tensor) -> Outputs:
        """Maps (b, shallow, h, w) and (b, deep, side, side) to :class:`Outputs`."""
        levels = self.levels(shallow, deep)
        return Outputs((self.scale * self._raw(levels) - self.shift).tanh(), levels)

    def maps(self, shallow: Tensor, deep: Tensor) -> tuple[Tensor, Tensor]:
        """Both maps as the parts get them: standardised, and narrowed."""
        shallow, deep = self.scales["shallow"](shallow), self.scales["deep"](deep)
        return (shallow, deep) if self.narrow is None else (self.narrow[0](shallow), self.narrow[1](deep))

    def levels(self, shallow: Tensor, deep: Tensor) -> tuple[Tensor, ...]:
        """Means of the features of each level, in the order of :attr:`level_names`."""
        shallow, deep = self.maps(shallow, deep)
        near, fused = shallow, []
        if self.fusion is not None:
            near = self.near(shallow)
            fused = [self.fusion(near, self.far(deep)).mean((2, 3))]
        if self.pit is None:
            return near.mean((2, 3)), *fused, deep.mean((2, 3))
        token, pixels = self.pit(deep)
        return near.mean((2, 3)), *fused, pixels.mean((2, 3)), token

    @property
    def level_names(self) -> tuple[str, ...]:
        """What the levels are, from shallow to deep."""
        deep = ["deep"] if self.pit is None else ["pixels", "token"]
        return ("shallow", *([] if self.fusion is None else ["fused"]), *deep)

    @torch.no_grad()
    def start(self, shallow: Tensor, deep: Tensor, spread: float = 0.5, at_once: int = 256) -> None:
        """Standardise the maps of training images, and bring each bit to the mean 0 and ``spread`` before the tanh.

        shallow: (n, channels, h, w), deep: (n, channels, side, side), float16 or float32. As initialised, most images
        might have the same sign, or a tanh without a gradient. Raises InputError where a bit is the same for all.
        """
        checks.positive("spread", spread)
        checks.whole("at_once", at_once)
        self.scales["shallow"].measure(shallow)
        self.scales["deep"].measure(deep)
        parts = zip(shallow.split(at_once), deep.split(at_once), strict=True)
        levels = [
            torch.cat(level) for level in zip(*(self.levels(a.float(), b.float()) for a, b in parts), strict=True)
        ]
        joined = nn.functional.layer_norm(torch.cat(levels[1:], dim=1), self.norm.normalized_shape)
        mean, deviation = joined.mean(0), joined.std(0, correction=0)
        differs = (deviation > 1e-5).any()  # of equal images rounding leaves less
        self.norm.weight.copy_(1 / deviation.clamp_min(1e-3))  # a number that hardly differs is not blown up
        self.norm.bias.copy_(-mean * self.norm.weight)
        spread_bits(self, self._raw(levels) * differs, spread)

    def rebuild(self, deep: Tensor) -> Tensor:
        """The decoder's images (b, channels, 32 side, 32 side); raises InputError where there is none."""
        if self.decoder is None:
            raise InputError("this network has no decoder: make it with image_channels = 3, or 1 for grey images")
        return self.decoder(self.scales["deep"](deep))

    def _raw(self, levels: Sequence[Tensor]) -> Tensor:
        """Numbers (b, bits) before their scale and the tanh."""
        return self.kan(self.norm(torch.cat(list(levels[1:]), dim=1)))


class Standard(nn.Module):
    """A map (b, channels, h, w), each channel less its mean, over its deviation; neither is learnt."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(channels, 1, 1))
        self.register_buffer("deviation", torch.ones(channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return (x - self.centre) / self.deviation

    @torch.no_grad()
    def measure(self, x: Tensor) -> None:
        """Take mean and deviation over images and pixels of ``x: (n, channels, h, w)``; of equal numbers, 1."""
        flat = x.transpose(0, 1).flatten(1)
        mean = flat.mean(1, dtype=torch.float32)
        square = torch.stack([row.float().sub(m).square().mean() for row, m in zip(flat, mean, strict=True)])
        self.centre.copy_(mean[:, None, None])
        self.deviation.copy_(torch.from_numpy(widths(root(square).cpu().numpy()))[:, None, None])


@torch.no_grad()
def spread_bits(head: nn.Module, out: Tensor, spread: float) -> None:
    """Give ``out: (n, bits)`` of training images the mean 0 and the deviation ``spread`` by the head's scale and shift.

    Raises InputError where a bit is the same for all images.
    """
    deviation = out.std(0, correction=0)
    if not (deviation > 0).all() or not deviation.isfinite().all():
        raise InputError("the untrained head gives all images the same bit: look at its input")
    head.scale.copy_(spread / deviation)
    head.shift.copy_(out.mean(0) * head.scale)


@torch.no_grad()
def he_normal(network: nn.Module, generator: torch.Generator | None = None) -> None:
    """Initial weights from ``generator``: He-normal matrices, biases 0, norms 1; tokens and splines small."""
    for name, value in network.named_parameters():
        last = name.rpartition(".")[2]
        if last in ("token", "positions"):
            value.normal_(0, 0.02, generator=generator)
        elif last == "coefficients":
            value.normal_(0, (0.1 / value.shape[1]) ** 0.5, generator=generator)
        elif last == "scale" or (value.ndim == 1 and last == "weight"):
            value.fill_(1)
        elif value.ndim > 1:
            nn.init.kaiming_normal_(value, nonlinearity="relu", generator=generator)
        else:
            value.zero_()
