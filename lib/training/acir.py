"""How ACIR's network is trained on feature maps of a frozen encoder (Sections 3.2 to 3.4 and 4.1).

The stem is frozen here, so that a training takes seconds: its maps were made once (:mod:`lib.encoders.taps`), of every
image and, if given, of its mirror image. :mod:`lib.training.acir_end_to_end` trains the stem as well.
"""

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import joblib
import numpy as np
import torch
from torch import Tensor

from lib import checks, paths
from lib.encoders.taps import Taps
from lib.errors import InputError
from lib.heads import acir, attention, kan
from lib.heads.acir import ConsolidatedHash
from lib.processes import spread
from lib.progress import track
from lib.training import kept, label_tree
from lib.training.divergence import Watch
from lib.training.fit import epoch_means
from lib.training.hashing import Even

AT_ONCE = 256
"""Images in a forward pass without gradients."""

START_SPREAD = 0.5
"""Of each bit before the tanh, untrained, over the training images (HD-17)."""

RATE = label_tree.Schedule(warm_up=0.05).rate
"""The share of the learning rate at a step: it rises over 5 % of the steps, and falls along a cosine (Section 4.1)."""

Loss = Callable[[Tensor, Tensor], Tensor]
"""Takes numbers before the sign (B, bits), with fingerprints behind if it wants them, and classes (B,)."""


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


@torch.inference_mode()
def outputs(network: ConsolidatedHash, taps: Taps) -> Coded:
    """Code and levels of every image from a network in evaluation mode."""
    parts = [network(*tensors(taps.take(rows))) for rows in _slices(len(taps.deep))]
    levels = zip(*(part.levels for part in parts), strict=True)
    return Coded(
        torch.cat([part.code for part in parts]).numpy(), tuple(torch.cat(several).numpy() for several in levels)
    )


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
    store: Path | str | None = "trained",
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
        store: folder for what was trained before, None keeps nothing; :data:`lib.paths.TRAINED` if not given.
        workers, what: as in :func:`lib.training.sweep.fit`.

    Raises:
        InputError: for inputs that do not belong together. Diverged: see :mod:`lib.training.divergence`.
    """
    check(taps, labels, prints, rows)
    store = paths.TRAINED if store == "trained" else store
    own = [view.take(rows) for view in taps]
    classes, looks = np.asarray(labels)[rows], np.asarray(prints, dtype=np.float32)[rows]
    data = kept.digest(own, classes, looks, schedule, kept.code(modules(jobs), "torch"))
    todo = (joblib.delayed(_once)(own, classes, looks, job, schedule, data, store) for job in jobs)
    threads = torch.get_num_threads()
    found = []
    try:
        shown = track(spread(todo, workers), total=len(jobs), what=what, unit="networks")
        for job, (state, history, steps) in zip(jobs, shown, strict=True):
            network = job.design.network((own[0].shallow.shape[1], own[0].deep.shape[1]), own[0].deep.shape[-1])
            network.load_state_dict(state)
            found.append(Trained(job.design, job.seed, network.eval(), history, steps))
    finally:
        torch.set_num_threads(threads)
    return found


def modules(jobs: Sequence[Job]) -> set[str]:
    """The modules that a training rests on, for the fingerprint of their code."""
    losses = {getattr(job.loss, "__module__", type(job.loss).__module__) for job in jobs}
    return {__name__, acir.__name__, attention.__name__, kan.__name__, *losses}


def check(taps: Sequence[Taps], *parts: np.ndarray) -> None:
    """Raise InputError unless ``parts`` (labels, fingerprints, rows that are learnt from, and images) fit together."""
    labels, prints, rows, *others = parts
    several = [labels, prints, *others, *(x for view in taps for x in view)]
    lengths = {len(part) for part in several}
    if len(several) < 3 or len(lengths) != 1:
        raise InputError(f"maps, labels and fingerprints are of {sorted(lengths)} images: give those of the same ones")
    if len(rows) < 2 or len(set(np.asarray(labels)[rows].tolist())) < 2:
        raise InputError(f"{len(rows)} images to learn from are too few, or of one class: nothing can be told apart")


def _once(
    own: Sequence[Taps],
    classes: np.ndarray,
    looks: np.ndarray,
    job: Job,
    schedule: Even,
    data: str,
    store: Path | None,
) -> tuple[dict[str, Tensor], list[float], int]:
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    key = hashlib.sha256(f"{data} {job.design} {job.loss} {job.lr} {job.seed}".encode()).hexdigest()
    found = kept.once(store, key, lambda: _trained(own, classes, looks, job, schedule))
    return found["state"], found["history"], found["steps"]


def _trained(own: Sequence[Taps], classes: np.ndarray, looks: np.ndarray, job: Job, schedule: Even) -> dict[str, Any]:
    network = untrained(own[0], np.arange(len(classes)), job.design, job.seed).train()
    optimiser = torch.optim.AdamW(network.parameters(), lr=job.lr, weight_decay=schedule.weight_decay, fused=True)
    labels, seen = torch.tensor(classes, dtype=torch.long), torch.tensor(looks)
    total = schedule.epochs * schedule.steps(len(labels))
    watch = Watch({name: value[None] for name, value in network.named_parameters()}, [job.name], [math.inf])
    losses, sizes = [], []
    for step, (rows, maps) in enumerate(_batches(own, labels, schedule, job.seed)):
        code = network(*maps).code
        if getattr(job.loss, "fingerprint", 0):
            code = torch.cat([code, seen[rows]], dim=1)
        value = job.loss(code, labels[rows])
        advance(optimiser, value, RATE(step, total), watch, (step + 1) % schedule.steps(len(labels)) == 0)
        losses.append(value.item())
        sizes.append(len(rows))
    watch.check()
    history = epoch_means(np.array(losses), np.array(sizes), schedule.epochs)
    return {
        "state": {name: value.clone() for name, value in network.state_dict().items()},
        "history": history,
        "steps": total,
    }


def advance(optimiser: torch.optim.Optimizer, value: Tensor, rate: float, watch: Watch, look: bool) -> None:
    """One step down ``value`` at a share ``rate`` of every learning rate that the optimiser was made with.

    look: whether to raise Diverged before the step, where something went wrong.
    """
    for group in optimiser.param_groups:
        group["lr"] = group.setdefault("highest", group["lr"]) * rate
    watch.add(value[None])
    optimiser.zero_grad()
    value.backward()
    if look:
        watch.check()
    optimiser.step()


def _batches(
    own: Sequence[Taps], labels: Tensor, schedule: Even, seed: int
) -> Iterator[tuple[Tensor, tuple[Tensor, Tensor]]]:
    """Rows of every batch, and the maps of one view, drawn anew, of each of its images."""
    generator = torch.Generator().manual_seed(seed)
    views = [(torch.tensor(view.shallow), torch.tensor(view.deep)) for view in own]
    for rows in schedule.batches(labels, seed):
        drawn = torch.randint(len(views), (len(rows),), generator=generator)
        maps = []
        for part in (0, 1):
            x = views[0][part][rows]
            for number in range(1, len(views)):
                x[drawn == number] = views[number][part][rows[drawn == number]]
            maps.append(x.float())
        yield rows, tuple(maps)


def _slices(n: int) -> list[slice]:
    return [slice(start, start + AT_ONCE) for start in range(0, n, AT_ONCE)]
