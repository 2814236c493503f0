"""A network so small that it is fine-tuned in no time, in the place of those of timm."""

from typing import ClassVar

import pandas as pd
import pytest
import torch
from torch import nn

from lib.datasets import tissue
from lib.datasets.table import ImageTable
from lib.encoders import backbones


@pytest.fixture(scope="session", autouse=True)
def one_process():
    """Nothing here is worth another process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOKY_MAX_CPU_COUNT", "1")
        yield


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


@pytest.fixture(scope="module")
def tiles(tmp_path_factory) -> ImageTable:
    """Embedded tiles of 32 pixels: eight tissues of six patients."""
    root = tissue.write(tmp_path_factory.mktemp("tiles") / "set", 96, 6, 32, n_duplicates=0)
    rows = pd.read_csv(root / "table.csv")
    rows = rows.assign(label=rows["tissue"], group=rows["patient"])[["image_id", "path", "label", "group"]]
    return ImageTable("tissue", root, rows, "patient")
