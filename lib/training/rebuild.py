"""The second stage of ACIR's training: a decoder that rebuilds images from the frozen stem's deep map (Section 3.4)."""

import hashlib
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torchvision.transforms import v2

from lib import paths
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.heads.acir import Decoder, Standard, he_normal
from lib.losses.acir import reconstruction
from lib.progress import track
from lib.training import kept
from lib.training.acir import AT_ONCE, RATE, advance
from lib.training.divergence import Watch
from lib.training.fit import epoch_means
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
        parts = torch.tensor(taps.deep).split(AT_ONCE)
        return torch.cat([self.network(part.float()) for part in parts]).numpy()


def fit_decoder(
    taps: Taps,
    images: ImageTable | np.ndarray,
    rows: np.ndarray,
    schedule: Even,
    seed: int,
    *,
    width: int = 32,
    store: Path | str | None = "trained",
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
    store = paths.TRAINED if store == "trained" else store
    modules = {__name__, Decoder.__module__, reconstruction.__module__}
    data = kept.digest(deep, target, schedule, seed, width, kept.code(modules, "torch"))
    key = hashlib.sha256(data.encode()).hexdigest()
    found = kept.once(store, key, lambda: _trained(deep, target, schedule, seed, width, what))
    network = _network(deep.shape[1], target.shape[1], width, seed)
    network.load_state_dict(found["state"])
    return Rebuilder(network.eval(), found["history"], found["steps"])


def _squashed(images: ImageTable, side: tuple[int, int]) -> np.ndarray:
    size = tuple(STRIDE * length for length in side)
    resize = v2.Compose([v2.Resize(size, v2.InterpolationMode.BICUBIC), v2.PILToTensor()])
    return np.stack([resize(read_image(images.path(i))).numpy() for i in range(len(images))])


def _network(deep: int, channels: int, width: int, seed: int) -> nn.Sequential:
    network = nn.Sequential(Standard(deep), Decoder(deep, channels, width))
    he_normal(network, torch.Generator().manual_seed(seed))
    return network


def _trained(
    deep: np.ndarray, target: np.ndarray, schedule: Even, seed: int, width: int, what: str
) -> dict[str, object]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    try:
        return _on_one_thread(torch.tensor(deep), torch.tensor(target), schedule, seed, width, what)
    finally:
        torch.set_num_threads(threads)


def _on_one_thread(deep: Tensor, target: Tensor, schedule: Even, seed: int, width: int, what: str) -> dict[str, object]:
    network = _network(deep.shape[1], target.shape[1], width, seed).train()
    network[0].measure(deep)
    optimiser = torch.optim.AdamW(network.parameters(), lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)
    per_epoch = schedule.steps(len(deep))
    total = schedule.epochs * per_epoch
    watch = Watch({name: value[None] for name, value in network.named_parameters()}, [what], [math.inf])
    losses, sizes = [], []
    batches = schedule.batches(torch.zeros(len(deep)), seed)
    for step, rows in enumerate(track(batches, total=total, what=what, unit="steps")):
        value = reconstruction(target[rows].float() / 255, network(deep[rows].float()))
        advance(optimiser, value, RATE(step, total), watch, (step + 1) % per_epoch == 0)
        losses.append(value.item())
        sizes.append(len(rows))
    watch.check()
    state = {name: value.clone() for name, value in network.state_dict().items()}
    return {
        "state": state,
        "history": epoch_means(np.array(losses), np.array(sizes), schedule.epochs),
        "steps": total,
    }
