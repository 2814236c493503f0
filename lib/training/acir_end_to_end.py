"""ACIR's network trained together with its stem, on images (Section 4.1), where :mod:`lib.training.acir` freezes it.

Images are mirrored both ways and cropped at random, 0.8 to 1 of their area and in their shape; the paper's changes of
colour are left out.
As in :mod:`lib.training.finetune`, the stem's first layer and its batch norm stay as they are.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torchvision.transforms.v2 import InterpolationMode

from lib import checks, devices
from lib.datasets.crops import cut, mirrored, random_boxes, shapes_of, whole_boxes
from lib.encoders import taps
from lib.encoders.backbones import state_sha256
from lib.encoders.taps import Stem
from lib.errors import InputError
from lib.heads.acir import ConsolidatedHash, Outputs
from lib.training import acir, kept
from lib.training.acir import START_SPREAD, Coded, Job, Trained
from lib.training.finetune import adamw, thaw
from lib.training.hashing import Even

AREA = (0.8, 1.0)
"""Least and most of an image that a crop covers (Section 4.1)."""

AT_ONCE = 64
"""Images in a forward pass without gradients."""


class Whole(nn.Module):
    """Stem and network: pixels (b, 3, side, side) from 0 to 1 to :class:`lib.heads.acir.Outputs`."""

    def __init__(self, stem: Stem, network: ConsolidatedHash, scale: tuple[Tensor, Tensor]) -> None:
        super().__init__()
        self.stem, self.network = stem, network
        self.register_buffer("mean", scale[0])
        self.register_buffer("deviation", scale[1])

    def forward(self, x: Tensor) -> Outputs:
        return self.network(*self.maps(x))

    def maps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the stem makes of pixels, in bfloat16 on a GPU; channels lie side by side, which is faster."""
        x = ((x - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)
        with torch.autocast("cuda", torch.bfloat16, enabled=x.is_cuda):
            shallow, deep = self.stem(x)
        return shallow.float(), deep.float()


@dataclass(frozen=True, eq=False)
class EndToEnd(Trained):
    """A network with a stem of its own; ``pixels``: the side of the square that it sees."""

    whole: Whole
    pixels: int

    def outputs(self, images: np.ndarray) -> Coded:
        """Code and levels of images (n, 3, H, W) uint8 of any size."""
        return acir.coded(self.whole(x) for x in _squares(torch.tensor(images), self.pixels))


def fit_end_to_end(
    images: np.ndarray,
    labels: np.ndarray,
    prints: np.ndarray,
    rows: np.ndarray,
    job: Job,
    schedule: Even,
    encoder: str,
    pixels: int,
    *,
    stem_lr: float = 1e-4,
    store: kept.Store = "trained",
    device: str = "auto",
    what: str = "stem and network",
) -> EndToEnd:
    """Train stem and network with AdamW, the stem at a rate of its own.

    Args:
        images: (n, 3, H, W) uint8, all of them (:func:`lib.encoders.taps.pixels`).
        labels, prints, rows, job, schedule: as in :func:`lib.training.acir.fit`; the network learns at the job's rate.
        encoder: the stem's name, as for :func:`lib.encoders.taps.stem`.
        pixels: the side of the square that the stem sees, a multiple of 32.
        stem_lr: of the stem, at its highest.
        store, what: as there. device: see :func:`lib.devices.pick`.

    Raises:
        InputError: for inputs that do not belong together. Diverged: see :mod:`lib.training.divergence`.
    """
    acir.check([], labels, prints, rows, images)
    checks.positive("stem_lr", stem_lr)
    if images.dtype != np.uint8 or images.ndim != 4 or pixels % taps.DEEP:
        raise InputError(
            f"images are {images.shape} {images.dtype}, to be seen as squares of {pixels} pixels: expected "
            f"(n, 3, height, width) uint8 and a multiple of {taps.DEEP}"
        )
    own, classes, looks = images[rows], np.asarray(labels)[rows], np.asarray(prints, dtype=np.float32)[rows]
    target = devices.pick(device)
    stem = taps.stem(encoder)
    modules = {*acir.modules([job]), __name__, taps.__name__, "lib.training.finetune"}
    code = kept.code(modules, "torch", "timm")
    key = kept.key(own, classes, looks, schedule, pixels, stem_lr, state_sha256(stem), job, target.type, code)
    whole = Whole(stem, job.design.network(stem.channels, pixels // taps.DEEP, job.seed), taps.scale(encoder))

    def train() -> dict[str, Any]:
        return _trained(whole.to(target), own, classes, looks, job, schedule, pixels, stem_lr, what)

    done = kept.once(store, key, train)
    whole.cpu().load_state_dict(done["state"])
    whole.eval().requires_grad_(False)
    return EndToEnd(job.design, job.seed, whole.network, done["history"], done["steps"], whole, pixels)


def _trained(
    whole: Whole,
    own: np.ndarray,
    classes: np.ndarray,
    looks: np.ndarray,
    job: Job,
    schedule: Even,
    pixels: int,
    stem_lr: float,
    what: str,
) -> dict[str, Any]:
    images, labels, prints = (torch.tensor(x, device=whole.mean.device) for x in (own, classes.astype(int), looks))
    thaw(whole.stem.to(memory_format=torch.channels_last))
    _start(whole, images, pixels)
    optimiser = adamw(whole.stem, whole.network, lr=stem_lr, head_lr=job.lr, weight_decay=schedule.weight_decay)
    generator = torch.Generator().manual_seed(job.seed)
    loss = acir.cost(job, lambda rows: whole(_crops(images[rows], pixels, generator)), labels, prints)
    options = {"name": job.name, "pixels": pixels, "what": what}
    return acir.descend(whole, loss, optimiser, schedule, len(labels), job.seed, **options)


@torch.no_grad()
def _start(whole: Whole, images: Tensor, pixels: int) -> None:
    """Scale the untrained network by the maps of the images as the pretrained stem sees them."""
    whole.eval()
    maps = [[part.half() for part in whole.maps(x)] for x in _squares(images, pixels)]
    shallow, deep = (torch.cat(several) for several in zip(*maps, strict=True))
    whole.network.start(shallow, deep, START_SPREAD)
    whole.network.train()


def _squares(images: Tensor, pixels: int) -> Iterator[Tensor]:
    """Images (b, 3, pixels, pixels) from 0 to 1, squashed to the square, on the device of ``images``."""
    for x in images.split(AT_ONCE):
        yield _resized(x, whole_boxes(shapes_of(x)), pixels)


def _crops(images: Tensor, pixels: int, generator: Generator) -> Tensor:
    """A random crop of each image in its shape, squashed to the square and mirrored half of the time, either way."""
    height, width = images.shape[2:]
    x = _resized(images, random_boxes(shapes_of(images), AREA, generator, (width / height,) * 2), pixels)
    across, over = torch.randint(2, (2, len(x)), generator=generator).bool()
    return mirrored(mirrored(x, across).mT, over).mT


def _resized(images: Tensor, boxes: Tensor, pixels: int) -> Tensor:
    how = {"interpolation": InterpolationMode.BILINEAR}
    return cut(images, boxes, (pixels, pixels), images.device, **how).float() / 255
