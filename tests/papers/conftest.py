"""A network so small that it is fine-tuned in no time, in the place of those of timm."""

from typing import ClassVar

import pytest
import torch
from torch import nn

from lib.encoders import backbones


class Small(nn.Module):
    """Two convolutions and an average, with what fine-tuning asks of a network of timm."""

    pretrained_cfg: ClassVar = {"first_conv": "first", "mean": (0.5,) * 3, "std": (0.5,) * 3}
    num_features = 4

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x).relu()).mean((2, 3))


class Encoder:
    def __init__(self) -> None:
        self.model = Small()


@pytest.fixture
def small(monkeypatch) -> type[nn.Module]:
    """The class of the network that every name loads."""
    monkeypatch.setattr(backbones, "load", lambda name, **options: Encoder())
    return Small
