"""Self-distillation without labels (DINO; Caron et al. 2021) of a small vision transformer.

A student is to say about a crop of an image what a teacher says about another crop of it; the teacher is a running
mean of the student. Everything random in step ``i`` depends on the seed and on ``i`` alone, so a training that was
killed goes on from its checkpoint as if nothing had happened.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor

from lib import devices
from lib.encoders import small_vit
from lib.encoders.small_vit import SIZE, SmallViT
from lib.errors import InputError
from lib.training import kept, loop
from lib.training.distillation import Pair, Settings
from lib.training.divergence import Watch
from lib.training.multicrop import crops, generator_of

CHECKPOINT_STEPS = 50
LEAST_SPREAD = 0.1
"""Below it the features of all images are nearly one; a network with random weights has 0.3 in training."""
LEAST_INFORMATION = 0.05
"""Nats; below it the teacher says the same about every image. It starts at about 0.3."""


@dataclass(frozen=True, eq=False)
class Distilled:
    """A trained network (the teacher, which is the better of the two) and how the training went.

    ``history``: one row per step with ``step``, ``loss``, ``entropy`` of the teacher's answer (nats), ``information``
    (entropy of the mean answer minus mean entropy, nats), ``spread`` and ``rank`` of its features
    (:func:`lib.metrics.directions.spread`, :func:`~lib.metrics.directions.effective_rank`).
    """

    network: SmallViT
    history: pd.DataFrame
    settings: Settings

    @property
    def end(self) -> pd.Series:
        """Mean of the history over the last tenth of the steps."""
        return self.history.tail(max(1, len(self.history) // 10)).mean()

    @property
    def collapsed(self) -> bool:
        """Whether in the end all images have the same feature, or the same answer from the teacher.

        Features that spread along few directions pass: look at ``rank``.
        """
        return bool(self.end["spread"] < LEAST_SPREAD or self.end["information"] < LEAST_INFORMATION)

    def verdict(self) -> str:
        """Whether it collapsed, and the values that this rests on."""
        end = self.end
        facts = f"spread of the features {end['spread']:.2f}, information {end['information']:.2f} nats"
        if self.collapsed:
            return f"collapsed, all images look the same to it ({facts}); do not use these weights"
        return f"no collapse ({facts})"


def views(pixels: Tensor, step: int, seed: int, settings: Settings) -> list[Tensor]:
    """The crops of step ``step`` of images (n, 3, 96, 96) uint8, from 0 to 1: two of 96 pixels, then those of 48."""
    generator = generator_of(seed, 1, step)
    wanted = [(SIZE, settings.global_area)] * 2 + [(SIZE // 2, settings.local_area)] * settings.local_crops
    return [crops(pixels, size, area, generator, settings.stain) for size, area in wanted]


def pretrain(
    pixels: Tensor,
    settings: Settings,
    *,
    seed: int,
    store: kept.Store = "trained",
    device: str = "auto",
    bf16: bool | None = None,
    what: str = "self-distillation",
) -> Distilled:
    """Train a small vision transformer on images without labels.

    Args:
        pixels: (n, 3, 96, 96) uint8 of :func:`lib.training.pixels.load_images`, at least a batch of them.
        settings: see :class:`Settings`.
        seed: decides the first weights, the order of the images and all crops.
        store: for what was trained before, and the checkpoints of what breaks off.
        device: see :func:`lib.devices.pick`.
        bf16: bfloat16 autocast; by default on a GPU alone: with AVX2 it takes four times as long as float32.
        what: the name of the work in the progress bar.

    Raises:
        InputError: if there are fewer images than a batch takes.
        Diverged: when the loss or its gradient is not finite, or the weights have outgrown float32.
    """
    if len(pixels) < settings.batch_size:
        raise InputError(
            f"{len(pixels)} images are fewer than a batch of {settings.batch_size}: add some, or take less."
        )
    target = devices.pick(device)
    bf16 = target.type == "cuda" if bf16 is None else bf16
    code = kept.code({__name__}, "torch", "timm", "skimage", "numpy")
    key = kept.key(pixels, settings, seed, target.type, bf16, code)
    done = kept.once(store, key, lambda: _train(Pair(settings, seed, target, bf16), pixels, seed, store, key, what))
    network = small_vit.create(seed).requires_grad_(False).eval()
    network.load_state_dict(done["network"])
    return Distilled(network, pd.DataFrame(done["history"]), settings)


def _train(pair: Pair, pixels: Tensor, seed: int, store: kept.Store, key: str, what: str) -> dict[str, Any]:
    """Go on from a checkpoint to the last step: the teacher's weights, and a row per step."""
    settings, watch = pair.settings, Watch.of(pair.student, "self-distillation", pair.settings.steps)
    parts = {"pair": pair, "optimiser": pair.optimiser, "watch": watch, "notes": pair.notes}
    checkpoint = loop.Checkpoint(kept.checkpoint(store, key), parts)
    checkpoint.read()
    batches = list(_batches(len(pixels), settings, seed))[len(watch.losses) :]
    pixels = pixels.to(pair.centre.device)

    def step(number: int, rows: Tensor) -> tuple[Tensor, bool]:
        return pair.step(number, views(pixels[rows], number, seed, settings))

    def loss(rows: Tensor) -> Tensor:
        student, teacher, _ = pair(views(pixels[rows], 0, seed, settings))
        return pair.loss(student, teacher)[0]

    step = loop.fitting(step, loss, SIZE)
    loop.run(step, batches, watch, every=CHECKPOINT_STEPS, checkpoint=checkpoint, what=what)
    return {"network": pair.teacher[0].cpu().state_dict(), "history": pair.notes}


def _batches(n: int, settings: Settings, seed: int) -> Iterator[Tensor]:
    """Rows of the batch of every step: full batches of all images in a new order, again and again."""
    per_lap = n // settings.batch_size
    for step in range(settings.steps):
        lap, place = divmod(step, per_lap)
        if place == 0:
            order = torch.randperm(n, generator=generator_of(seed, 0, lap))
        yield order[place * settings.batch_size : (place + 1) * settings.batch_size]
