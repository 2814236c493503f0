"""The second stage of ACIR's training: a decoder that rebuilds images from the frozen stem's deep map (Section 3.4)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.transforms import v2

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.heads.acir import Decoder, Standard, he_normal
from lib.losses.acir import reconstruction
from lib.training import acir, kept
from lib.training.hashing import Even

STRIDE = 32
"""Pixels of an image for one of its deep map."""


@dataclass(frozen=True, eq=False)
class Rebuilder:
    """A trained decoder: history has the mean L1 of each epoch, steps those of the optimiser."""

    network: nn.Sequential
    history: list[float]
    steps: int

    @torch.inference_mode()
    def rebuild(self, taps: Taps) -> np.ndarray:
        """Images (n, channels, H, W) float32 from 0 to 1, of the deep maps alone."""
        parts = torch.tensor(taps.deep).split(acir.AT_ONCE)
        return torch.cat([self.network(part.float()) for part in parts]).numpy()


def fit_decoder(
    taps: Taps,
    images: ImageTable | np.ndarray,
    rows: np.ndarray,
    schedule: Even,
    seed: int,
    *,
    width: int = 32,
    store: kept.Store = "trained",
    what: str = "decoder",
) -> Rebuilder:
    """Train a decoder by the L1 between images and what it makes of their deep maps, with AdamW.

    Args:
        taps: maps of all n images.
        images: (n, channels, H, W) uint8, H and W 32 times those of the deep map; or their table, of which each is
            squashed to that size.
        rows: images that are learnt from.
        schedule: epochs, batch size, learning rate and weight decay. seed: of the start and the batches.
        width: channels after the first block.
        store, what: as in :func:`lib.training.acir.fit`.

    Raises:
        InputError: for images of another size, or a deep map of one pixel. Diverged: see there.
    """
    side = taps.deep.shape[2:]
    target = _squashed(images, side) if isinstance(images, ImageTable) else np.asarray(images)
    wanted = tuple(STRIDE * length for length in side)
    if target.shape[2:] != wanted or target.dtype != np.uint8 or len(target) != len(taps.deep):
        raise InputError(
            f"images are {target.shape} {target.dtype}: expected {len(taps.deep)} of {wanted[0]} x {wanted[1]}, uint8"
        )
    deep, target = taps.deep[rows], target[rows]
    code = kept.code({__name__, Decoder.__module__, reconstruction.__module__}, "torch")
    key = kept.key(deep, target, schedule, seed, width, code)
    done = kept.once(store, key, lambda: _trained(deep, target, schedule, seed, width, what))
    network = _network(deep.shape[1], target.shape[1], width, seed)
    network.load_state_dict(done["state"])
    return Rebuilder(network.eval(), done["history"], done["steps"])


def _squashed(images: ImageTable, side: tuple[int, int]) -> np.ndarray:
    size = tuple(STRIDE * length for length in side)
    resize = v2.Compose([v2.Resize(size, v2.InterpolationMode.BICUBIC), v2.PILToTensor()])
    return np.stack([resize(read_image(images.path(i))).numpy() for i in range(len(images))])


def _network(deep: int, channels: int, width: int, seed: int) -> nn.Sequential:
    network = nn.Sequential(Standard(deep), Decoder(deep, channels, width))
    he_normal(network, torch.Generator().manual_seed(seed))
    return network


@kept.one_thread()
def _trained(deep: np.ndarray, target: np.ndarray, schedule: Even, seed: int, width: int, what: str) -> dict[str, Any]:
    network = _network(deep.shape[1], target.shape[1], width, seed).train()
    maps, images = torch.tensor(deep), torch.tensor(target)
    network[0].measure(maps)
    optimiser = torch.optim.AdamW(network.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)

    def loss(rows: Tensor) -> Tensor:
        return reconstruction(images[rows].float() / 255, network(maps[rows].float()))

    return acir.descend(network, loss, optimiser, schedule, len(maps), seed, name=what, what=what)
