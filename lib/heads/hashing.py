"""A hash head on features: one layer, two, or learnt functions on edges, then a tanh; the code is its sign."""

import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.heads.acir import he_normal, spread_bits
from lib.heads.kan import KAN
from lib.heads.mapper import defined, uniform
from lib.heads.scaling import widths

KINDS = ("linear", "mlp", "kan")


class HashHead(nn.Module):
    """``h = tanh(s · f((x − μ)/σ) − m)``, f one of :data:`KINDS`; :meth:`start` sets μ, σ, m and s from images.

    μ and σ stay: features are far from the origin, so that otherwise one step along their mean turns all bits at once,
    the same way for all images, and the loss may not mind (a Pearson coefficient over the bits does not see it).

    Args:
        dim_in: length of a row, with its fingerprint.
        bits: length of the code.
        kind: "linear", "mlp" (``hidden`` numbers between two layers) or "kan" (one layer of ACIR's Equations 10
            and 11).
        hidden: of "mlp".
        fingerprint: how many of the last numbers of a row are the image's fingerprint, which the layers do not see.
        generator: source of the initial weights, so that no global state is touched.

    Raises:
        InputError: for a value without meaning.
    """

    def __init__(
        self,
        dim_in: int,
        bits: int,
        *,
        kind: str = "linear",
        hidden: int = 256,
        fingerprint: int = 0,
        generator: torch.Generator | None = None,
    ) -> None:
        super().__init__()
        checks.values(dim_in=dim_in)
        checks.whole("bits", bits)
        checks.whole("hidden", hidden)
        checks.whole("fingerprint", fingerprint, least=0)
        if kind not in KINDS:
            raise InputError(f"kind = {kind!r} is unknown; choose one of {', '.join(KINDS)}")
        if fingerprint >= dim_in:
            raise InputError(f"rows of {dim_in} numbers with a fingerprint of {fingerprint} hold no feature")
        self.fingerprint, n = fingerprint, dim_in - fingerprint
        if kind == "kan":
            self.layers = nn.Sequential(KAN(n, bits))
            he_normal(self.layers, generator)
        else:
            deep = [nn.Linear(n, hidden), nn.ReLU(), nn.Linear(hidden, bits)]
            self.layers = nn.Sequential(*(deep if kind == "mlp" else [nn.Linear(n, bits)]))
            uniform(self.layers, generator)
        self.centre, self.width = nn.Parameter(torch.zeros(n)), nn.Parameter(torch.ones(n))
        self.scale, self.shift = nn.Parameter(torch.ones(bits)), nn.Parameter(torch.zeros(bits))

    def outputs(self, x: Tensor) -> Tensor:
        """f of features ``x: (..., n)``, (..., bits)."""
        return defined(self.layers((x - self.centre.detach()) / self.width.detach()))

    def forward(self, x: Tensor) -> Tensor:
        """``x: (..., dim_in)`` to codes before their sign (..., bits)."""
        return (self.scale * self.outputs(x[..., : x.shape[-1] - self.fingerprint]) - self.shift).tanh()

    @torch.no_grad()
    def start(self, x: Tensor, spread: float = 0.5) -> None:
        """Standardise features, and bring each bit of the images ``x: (m, dim_in)`` to mean 0, ``spread`` before tanh.

        As initialised, most images might have the same sign, or a tanh without a gradient.

        Raises:
            InputError: where the untrained head gives all images the same output.
        """
        checks.positive("spread", spread)
        x = x[..., : x.shape[-1] - self.fingerprint]
        self.centre.copy_(x.mean(dim=0))
        deviation = x.std(dim=0, correction=0)
        width = torch.from_numpy(widths(deviation.numpy()))  # a weight must be finite: the largest stands for infinity
        self.width.copy_(width.masked_fill(width.isinf(), deviation.max().item() or 1))
        spread_bits(self, self.outputs(x), spread)
