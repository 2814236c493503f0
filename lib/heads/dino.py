"""What stands on top of the encoder while it is distilled, and is thrown away afterwards (Caron et al. 2021)."""

import torch
from timm.layers import trunc_normal_
from torch import Tensor, nn
from torch.nn import functional

from lib import checks
from lib.heads.mapper import defined


class ProjectionHead(nn.Module):
    """Three linear layers to a short unit vector, then its cosine with every prototype.

    dim: length of the feature; hidden, bottleneck: widths of the layers; prototypes: K. Features (..., dim) give logits
    (..., K) from -1 to 1: prototypes have length 1 as well, so that no one of them can win by being long. Raises
    InputError for a value without meaning.
    """

    def __init__(self, dim: int, prototypes: int, hidden: int = 512, bottleneck: int = 128) -> None:
        super().__init__()
        checks.values(prototypes=prototypes, bottleneck=bottleneck)
        checks.whole("dim", dim)
        checks.whole("hidden", hidden)
        self.layers = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, bottleneck)
        )
        for layer in self.layers[::2]:
            trunc_normal_(layer.weight, std=0.02)
            nn.init.zeros_(layer.bias)
        self.prototypes = nn.Parameter(torch.randn(prototypes, bottleneck))

    def forward(self, features: Tensor) -> Tensor:
        """Logits (..., K)."""
        unit = functional.normalize(defined(self.layers(features)), dim=-1)
        return functional.linear(unit, functional.normalize(self.prototypes, dim=-1))
