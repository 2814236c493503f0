"""How ACIR's network is trained on feature maps of a frozen encoder (Sections 3.2 to 3.4 and 4.1).

The stem is frozen here, so that a training takes seconds: its maps were made once (:mod:`lib.encoders.taps`), of every
image and, if given, of its mirror image. :mod:`lib.training.acir_end_to_end` trains the stem as well.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import AdamW

from lib import checks
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.heads import acir, attention, kan
from lib.heads.acir import ConsolidatedHash, Outputs
from lib.training import kept, loop
from lib.training.divergence import Watch
from lib.training.hashing import Even

AT_ONCE = 256
"""Images in a forward pass without gradients."""

START_SPREAD = 0.5
"""Of each bit before the tanh, untrained, over the training images (HD-17)."""

RATE = partial(loop.warmed_cosine, warm_up=0.05)
"""The share of the learning rate at a step: it rises over 5 % of the steps, and falls along a cosine (Section 4.1)."""

Loss = Callable[..., Tensor]
"""A loss of :mod:`lib.losses` that takes codes; one that ``looks`` gets fingerprints (B, p) as ``prints``."""


@dataclass(frozen=True)
class Design:
    """The network, arguments of :class:`lib.heads.acir.ConsolidatedHash`; sizes are ours (AC-23).

    bits: of the code. pit, fusion, kan: parts of the ablation (Table 2); windows: ConvMSA, which the paper never leaves
    out alone. narrow: channels of both maps. window: of the attention in the shallow map. layers, heads: of PiT. width,
    grid, queries: of DaRF. hidden: numbers between two KAN layers, 0 for one.
    """

    bits: int = 16
    pit: bool = True
    fusion: bool = True
    windows: bool = True
    kan: bool = True
    narrow: tuple[int, int] | None = (16, 64)
    window: int = 4
    layers: int = 1
    heads: int = 2
    width: int = 32
    grid: int = 3
    queries: str = "deep"
    hidden: int = 0

    def network(self, channels: tuple[int, int], side: int, seed: int = 0) -> ConsolidatedHash:
        """The untrained network for maps of these channels, the deep one of ``side`` pixels; without a decoder."""
        generator = torch.Generator().manual_seed(seed)
        return ConsolidatedHash(*channels, side, **vars(self), image_channels=0, generator=generator)


@dataclass(frozen=True)
class Job:
    """A network to train: by what loss, at which learning rate; the seed decides its start and its batches."""

    name: str
    design: Design
    loss: Loss
    lr: float
    seed: int

    def __post_init__(self) -> None:
        checks.values(lr=self.lr, seed=self.seed)


class Coded(NamedTuple):
    """What a network makes of n images.

    h: (n, bits) float32, numbers before the sign. levels: means of the features of each level, (n, ·) float32 each,
    from shallow to deep (:attr:`lib.heads.acir.ConsolidatedHash.level_names`).
    """

    h: np.ndarray
    levels: tuple[np.ndarray, ...]


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained network: history has the mean loss of each epoch, steps those of the optimiser."""

    design: Design
    seed: int
    network: ConsolidatedHash
    history: list[float]
    steps: int

    def outputs(self, taps: Taps) -> Coded:
        """Code and levels of every image."""
        return outputs(self.network, taps)


def outputs(network: ConsolidatedHash, taps: Taps) -> Coded:
    """Code and levels of every image from a network in evaluation mode."""
    starts = range(0, len(taps.deep), AT_ONCE)
    return coded(network(*tensors(taps.take(slice(start, start + AT_ONCE)))) for start in starts)


@torch.inference_mode()
def coded(parts: Iterable[Outputs]) -> Coded:
    """What a network makes of all images, from what it makes of some of them at a time."""
    codes, levels = zip(*parts, strict=True)
    joined = [torch.cat(parts).numpy() for parts in (codes, *zip(*levels, strict=True))]
    return Coded(joined[0], tuple(joined[1:]))


def tensors(taps: Taps) -> tuple[Tensor, Tensor]:
    """Both maps as float32 tensors."""
    return torch.tensor(taps.shallow, dtype=torch.float32), torch.tensor(taps.deep, dtype=torch.float32)


def untrained(taps: Taps, rows: np.ndarray, design: Design, seed: int) -> ConsolidatedHash:
    """The network of a design as training begins: scaled by the images ``rows`` of ``taps``."""
    shallow, deep = taps.take(rows)
    network = design.network((shallow.shape[1], deep.shape[1]), deep.shape[-1], seed)
    network.start(torch.tensor(shallow), torch.tensor(deep), START_SPREAD)
    return network.eval()


def fit(
    taps: Sequence[Taps],
    labels: np.ndarray,
    prints: np.ndarray,
    rows: np.ndarray,
    jobs: Sequence[Job],
    schedule: Even,
    *,
    store: kept.Store = "trained",
    workers: int = -1,
    what: str = "networks",
) -> list[Trained]:
    """Train a network for every job with AdamW.

    Args:
        taps: maps of one or more views of all n images, the first of the images themselves; each time an image is
            learnt from, one of its views is drawn.
        labels: (n,) classes from 0 on.
        prints: (n, p) fingerprints, for losses that see them.
        rows: images that are learnt from.
        jobs: see there. schedule: epochs, batch size and weight decay; the learning rate is the job's.
        store: for what was trained before.
        workers, what: as in :func:`lib.training.sweep.fit`.

    Raises:
        InputError: for inputs that do not belong together. Diverged: see :mod:`lib.training.divergence`.
    """
    check(taps, labels, prints, rows)
    own = [view.take(rows) for view in taps]
    classes, looks = np.asarray(labels)[rows], np.asarray(prints, dtype=np.float32)[rows]
    data = kept.key(own, classes, looks, schedule, kept.code(modules(jobs), "torch"))
    works = [(kept.key(data, job), partial(_trained, own, classes, looks, job, schedule)) for job in jobs]
    made = []
    for job, done in zip(jobs, kept.each(store, works, workers=workers, what=what, unit="networks"), strict=True):
        network = job.design.network((own[0].shallow.shape[1], own[0].deep.shape[1]), own[0].deep.shape[-1])
        network.load_state_dict(done["state"])
        made.append(Trained(job.design, job.seed, network.eval(), done["history"], done["steps"]))
    return made


def modules(jobs: Sequence[Job]) -> set[str]:
    """The modules that a training rests on, for the fingerprint of their code."""
    return {__name__, acir.__name__, attention.__name__, kan.__name__, *(job.loss.__module__ for job in jobs)}


def check(taps: Sequence[Taps], *parts: np.ndarray) -> None:
    """Raise InputError unless ``parts`` (labels, fingerprints, rows that are learnt from, and images) fit together."""
    labels, prints, rows, *others = parts
    several = [labels, prints, *others, *(x for view in taps for x in view)]
    lengths = {len(part) for part in several}
    if len(several) < 3 or len(lengths) != 1:
        raise InputError(f"maps, labels and fingerprints are of {sorted(lengths)} images: give those of the same ones")
    if len(rows) < 2 or len(set(np.asarray(labels)[rows].tolist())) < 2:
        raise InputError(f"{len(rows)} images to learn from are too few, or of one class: nothing can be told apart")


def _trained(own: Sequence[Taps], classes: np.ndarray, looks: np.ndarray, job: Job, schedule: Even) -> dict[str, Any]:
    network = untrained(own[0], np.arange(len(classes)), job.design, job.seed).train()
    optimiser = AdamW(network.parameters(), lr=job.lr, weight_decay=schedule.weight_decay, fused=True)
    views = [[torch.tensor(maps) for maps in view] for view in own]
    generator = torch.Generator().manual_seed(job.seed)

    def made(rows: Tensor) -> Outputs:
        """Of one view, drawn anew, of each image."""
        drawn = torch.randint(len(views), (len(rows),), generator=generator)
        maps = [first[rows] for first in views[0]]
        for number, view in enumerate(views[1:], 1):
            for x, of_view in zip(maps, view, strict=True):
                x[drawn == number] = of_view[rows[drawn == number]]
        return network(*(x.float() for x in maps))

    loss = cost(job, made, torch.tensor(classes, dtype=torch.long), torch.tensor(looks))
    return descend(network, loss, optimiser, schedule, len(classes), job.seed, name=job.name)


def cost(job: Job, made: Callable[[Tensor], Outputs], labels: Tensor, prints: Tensor) -> Callable[[Tensor], Tensor]:
    """The job's loss of a batch of rows, from what a network has ``made`` of these images."""

    def loss(rows: Tensor) -> Tensor:
        looks = {"prints": prints[rows]} if getattr(job.loss, "looks", False) else {}
        return job.loss(made(rows).code, labels[rows], **looks)

    return loss


def descend(
    network: nn.Module,
    loss: Callable[[Tensor], Tensor],
    optimiser: AdamW,
    schedule: Even,
    n: int,
    seed: int,
    *,
    name: str,
    pixels: int = 0,
    what: str = "",
) -> dict[str, Any]:
    """Train by the ``loss`` of batches of rows of ``n`` images, at :data:`RATE`; state, history and number of steps.

    name: of the network, for errors. pixels, what: as in :func:`lib.training.loop.train`.
    """
    watch = Watch.of(network, name, schedule.epochs * schedule.steps(n))
    batches = schedule.batches(torch.zeros(n), seed)
    history = loop.train(loss, batches, optimiser, watch, schedule.epochs, rate=RATE, pixels=pixels, what=what)
    state = {key: value.detach().cpu().clone() for key, value in network.state_dict().items()}
    return {"state": state, "history": history, "steps": watch.steps}
