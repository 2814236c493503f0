"""ACIR's network trained together with its stem, on images (Section 4.1), where :mod:`lib.training.acir` freezes it.

Images are mirrored both ways and cropped at random, 0.8 to 1 of their area; the paper's changes of colour are left out.
As in :mod:`lib.training.finetune`, the stem's first layer and its batch norm stay as they are.
"""

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import affine_grid, grid_sample, interpolate

from lib import checks, paths
from lib.encoders import taps
from lib.encoders.backbones import state_sha256
from lib.encoders.taps import Stem
from lib.errors import InputError
from lib.geometry.numerics import root
from lib.heads.acir import ConsolidatedHash
from lib.progress import track
from lib.training import acir, kept
from lib.training.acir import RATE, START_SPREAD, Coded, Job, Trained, advance
from lib.training.divergence import Watch
from lib.training.finetune import thaw
from lib.training.fit import epoch_means
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

    def forward(self, x: Tensor) -> Any:
        return self.network(*self.maps(x))

    def maps(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """What the stem makes of pixels."""
        return self.stem((x - self.mean) / self.deviation)


@dataclass(frozen=True, eq=False)
class EndToEnd(Trained):
    """A network with a stem of its own; ``pixels``: the side of the square that it sees."""

    whole: Whole
    pixels: int

    @torch.inference_mode()
    def outputs(self, images: np.ndarray) -> Coded:
        """Code and levels of images (n, 3, H, W) uint8 of any size."""
        parts = [self.whole(x) for x in _central(images, self.pixels)]
        levels = tuple(torch.cat(several).numpy() for several in zip(*(part.levels for part in parts), strict=True))
        return Coded(torch.cat([part.code for part in parts]).numpy(), levels)


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
    store: Path | str | None = "trained",
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
        store, what: as there. device: "cpu", "cuda", or "auto" for cuda where there is one.

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
    target = torch.device("cuda" if device == "auto" and torch.cuda.is_available() else device.replace("auto", "cpu"))
    stem = taps.stem(encoder)
    modules = {*acir.modules([job]), __name__, taps.__name__, "lib.training.finetune"}
    about = [own, classes, looks, schedule, pixels, stem_lr, state_sha256(stem), kept.code(modules, "torch", "timm")]
    key = f"{kept.digest(about)} {job.design} {job.loss} {job.lr} {job.seed} {target.type}"
    store = paths.TRAINED if store == "trained" else store

    whole = Whole(stem, job.design.network(stem.channels, pixels // taps.DEEP, job.seed), taps.scale(encoder))

    def train() -> dict[str, Any]:
        return _trained(whole.to(target), own, classes, looks, job, schedule, pixels, stem_lr, what)

    found = kept.once(store, hashlib.sha256(key.encode()).hexdigest(), train)
    whole.cpu().load_state_dict(found["state"])
    whole.eval().requires_grad_(False)
    return EndToEnd(job.design, job.seed, whole.network, found["history"], found["steps"], whole, pixels)


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
    device = whole.mean.device
    thaw(whole.stem)
    _start(whole, own, pixels)
    groups = [
        {"params": [weight for weight in whole.stem.parameters() if weight.requires_grad], "lr": stem_lr},
        {"params": list(whole.network.parameters()), "lr": job.lr},
    ]
    optimiser = torch.optim.AdamW(groups, weight_decay=schedule.weight_decay, fused=True)
    labels, seen = torch.tensor(classes, dtype=torch.long, device=device), torch.tensor(looks, device=device)
    per_epoch = schedule.steps(len(labels))
    total = schedule.epochs * per_epoch
    learnt = {name: value[None] for name, value in whole.named_parameters() if value.requires_grad}
    watch = Watch(learnt, [job.name], [math.inf])
    losses, sizes = [], []
    batches = _batches(own, schedule, job.seed, pixels)
    for step, (rows, x) in enumerate(track(batches, total=total, what=what, unit="steps")):
        code = whole(x.to(device)).code
        if getattr(job.loss, "fingerprint", 0):
            code = torch.cat([code, seen[rows]], dim=1)
        value = job.loss(code, labels[rows])
        advance(optimiser, value, RATE(step, total), watch, (step + 1) % per_epoch == 0)
        losses.append(value.item())
        sizes.append(len(rows))
    watch.check()
    state = {name: value.detach().cpu().clone() for name, value in whole.state_dict().items()}
    history = epoch_means(np.array(losses), np.array(sizes), schedule.epochs)
    return {"state": state, "history": history, "steps": total}


@torch.no_grad()
def _start(whole: Whole, own: np.ndarray, pixels: int) -> None:
    """Scale the untrained network by the maps of the images as the pretrained stem sees them."""
    whole.eval()
    maps = [[part.half() for part in whole.maps(x.to(whole.mean.device))] for x in _central(own, pixels)]
    shallow, deep = (torch.cat(several) for several in zip(*maps, strict=True))
    whole.network.start(shallow, deep, START_SPREAD)
    whole.network.train()


def _central(images: np.ndarray, pixels: int) -> Iterator[Tensor]:
    """Images (b, 3, pixels, pixels) from 0 to 1, squashed to the square."""
    for part in torch.tensor(images).split(AT_ONCE):
        x = part.float() / 255
        same = x.shape[2:] == (pixels, pixels)
        yield x if same else interpolate(x, (pixels, pixels), mode="bilinear", align_corners=False, antialias=True)


def _batches(own: np.ndarray, schedule: Even, seed: int, pixels: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows and augmented pixels of every batch."""
    generator, source = torch.Generator().manual_seed(seed), torch.tensor(own)
    for rows in schedule.batches(torch.zeros(len(own)), seed):
        yield rows, augmented(source[rows].float() / 255, pixels, generator)


def augmented(x: Tensor, pixels: int, generator: torch.Generator) -> Tensor:
    """Images ``x: (b, 3, H, W)`` cropped at random, mirrored in either direction half of the time, resized.

    Crops have the shape of the image, and :data:`AREA` of its area; bilinear.
    """
    n = len(x)
    drawn = torch.rand(5, n, generator=generator)
    share = root(AREA[0] + (AREA[1] - AREA[0]) * drawn[0])
    flips = torch.where(drawn[1:3] < 0.5, -1.0, 1.0)
    shift = (1 - share) * (2 * drawn[3:5] - 1)
    theta = torch.zeros(n, 2, 3)
    theta[:, 0, 0], theta[:, 1, 1] = share * flips[0], share * flips[1]
    theta[:, :, 2] = shift.T
    grid = affine_grid(theta, [n, x.shape[1], pixels, pixels], align_corners=False)
    return grid_sample(x, grid, padding_mode="border", align_corners=False)
