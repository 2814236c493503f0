"""The one training loop: what a step does is a function, and what trainings differ in is declared.

A training brings batches and a step. :func:`run` counts the steps, looks every so often whether the training goes well
(:class:`lib.training.divergence.Watch`), writes a checkpoint there, and reports. For most trainings a step is
:func:`descend`, and what they bring is the loss of a batch: :func:`train`.
"""

import math
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lib.errors import InputError
from lib.progress import track
from lib.training import kept
from lib.training.divergence import Watch

if TYPE_CHECKING:
    from lightning_fabric import Fabric

Step = Callable[[int, Any], tuple[Tensor, bool]]
"""Takes the number of a step, from 0 on, and a batch; returns the losses (S,) of the networks that are trained side by
side, and whether the step was taken. It is not where a gradient is not finite."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A file from which a training that broke off goes on; of several processes all read it and the first writes it.

    file: its name has to tell all that the training depends on; None keeps nothing. parts: name → a list, or anything
    with a ``state_dict``. place: of a training that several processes share.
    """

    file: Path | None
    parts: Mapping[str, Any]
    place: "Fabric | None" = None

    def write(self) -> None:
        """Keep the parts, with their checksum, whole or as the file was before."""
        if self.file is not None and (self.place is None or self.place.is_global_zero):
            kept.write(self.file, {name: _state(part) for name, part in self.parts.items()})

    def read(self) -> None:
        """Bring the parts to where they were, if there is a file.

        Raises InputError, naming the file, if it is not what was written, or holds other parts. What else goes wrong,
        such as memory that is too small, says nothing against the file, and passes.
        """
        if self.file is None or not self.file.is_file():
            return
        try:
            states = kept.read(self.file)
            for name, part in self.parts.items():
                _restore(part, states[name])
        except kept.Damaged as error:
            raise InputError(f"{self.file}: the checkpoint is damaged. Remove it to start anew.") from error
        except (KeyError, TypeError) as error:
            raise InputError(
                f"{self.file}: the checkpoint is of another version of this training. Remove it to start anew."
            ) from error

    def remove(self) -> None:
        """The training has ended, and all processes have read the file."""
        if self.place is not None:
            self.place.barrier()
        if self.file is not None and (self.place is None or self.place.is_global_zero):
            self.file.unlink(missing_ok=True)


def _state(part: Any) -> Any:
    return list(part) if isinstance(part, list) else part.state_dict()


def _restore(part: Any, state: Any) -> None:
    if isinstance(part, list):
        part[:] = state
    else:
        part.load_state_dict(state)


def run(
    step: Step,
    batches: Iterable[Any],
    watch: Watch,
    *,
    every: int,
    look: Callable[[int], object] = lambda _: None,
    checkpoint: Checkpoint | None = None,
    what: str = "",
) -> None:
    """Take one step for every batch, from the step on that ``watch`` has come to.

    Args:
        step, batches: see :data:`Step`.
        watch: of the networks; has the losses in the end.
        every: after so many steps, and after the last step of a network, comes a look.
        look: called then with the number of steps that were taken, once ``watch`` has found nothing.
        checkpoint: written after each look, and removed at the end.
        what: the name of the work in the progress bar; without a name there is none.

    Raises:
        Diverged: when a loss or its gradient is not finite, or weights have outgrown float32.
    """
    start = len(watch.losses)

    def steps() -> Iterator[Tensor]:
        for number, batch in enumerate(batches, start):
            losses, taken = step(number, batch)
            watch.add(losses)
            looks = (number + 1) % every == 0 or number in watch.lasts
            if looks or not taken:
                watch.check(taken)
            if looks:
                look(number + 1)
                if checkpoint:
                    checkpoint.write()
            yield losses

    shown = {"total": watch.steps - start, "unit": "steps", "note": lambda losses: f"loss {losses.mean():.3f}"}
    with _tiny_is_zero():
        for _ in track(steps(), what=what, **shown) if what else steps():
            pass
    if checkpoint:
        checkpoint.remove()


@contextmanager
def _tiny_is_zero() -> Iterator[None]:
    """Inside of this, numbers below 1e-38 are zero in this thread.

    Gradients of a loss that has come to zero are such numbers, and a processor takes many times as long over them.
    """
    before = (torch.tensor(1e-38) / 10).item() == 0
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def descend(
    optimiser: Optimizer, value: Tensor, rate: float = 1.0, clipped: Iterable[Tensor] = (), longest: float = math.inf
) -> bool:
    """One step down the gradient of ``value``; whether it was taken.

    rate: the share of every learning rate that the optimiser was made with. clipped: weights whose gradient is clipped
    to the norm ``longest``; the step is not taken where that norm is not finite, or the value.
    """
    optimiser.zero_grad()
    value.backward()
    if weights := list(clipped):
        norm = nn.utils.clip_grad_norm_(weights, longest)
        if not (value.isfinite() and norm.isfinite()):
            return False
    set_rates(optimiser, rate)
    optimiser.step()
    return True


def set_rates(optimiser: Optimizer, rate: float) -> None:
    """A share ``rate`` of every learning rate that the optimiser was made with."""
    for group in optimiser.param_groups:
        group["lr"] = rate * group.setdefault("initial_lr", group["lr"])


def train(
    loss: Callable[[Any], Tensor],
    batches: Iterable[Sequence],
    optimiser: Optimizer,
    watch: Watch,
    epochs: int,
    *,
    rate: Callable[[int, int], float] = lambda step, steps: 1.0,
    pixels: int = 0,
    what: str = "",
) -> list[float]:
    """Train one network by :func:`descend`; the mean loss over the images of every epoch.

    loss: of a batch, a scalar. batches: of all epochs, rows (b,) of images, which count by their length. rate: the
    share of the learning rate in a step, of so many. pixels: the side of images; where memory is too small for a batch
    of them, an error names one that fits. what: as in :func:`run`.
    """
    sizes = []

    def step(number: int, batch: Sequence) -> tuple[Tensor, bool]:
        value = loss(batch)
        sizes.append(len(batch))
        return value.detach()[None], descend(optimiser, value, rate(number, watch.steps))

    run(fitting(step, loss, pixels) if pixels else step, batches, watch, every=watch.steps // epochs, what=what)
    return epoch_means(watch.history()[0], np.array(sizes), epochs)


def epoch_means(losses: np.ndarray, sizes: np.ndarray, epochs: int) -> list[float]:
    """Mean loss over the images of every epoch, from the ``losses`` and ``sizes`` of all batches."""
    losses, sizes = losses.reshape(epochs, -1), sizes.reshape(epochs, -1)
    return ((losses * sizes).sum(1) / sizes.sum(1)).tolist()


def warmed_cosine(step: int, steps: int, warm_up: float = 0.1) -> float:
    """The share of the learning rate in one of so many steps: it rises in the first ones, then falls along a cosine.

    warm_up: the share of the steps in which it rises.

    >>> [round(warmed_cosine(step, 100), 2) for step in (0, 9, 54, 99)]
    [0.1, 1.0, 0.52, 0.0]
    """
    warm = max(1, round(warm_up * steps))
    if step < warm:
        return (step + 1) / warm
    return (1 + math.cos(math.pi * (step - warm) / max(1, steps - warm))) / 2


def fitting(step: Step, loss: Callable[[Tensor], Tensor], pixels: int) -> Step:
    """``step`` on a batch of rows of images; where memory is too small for it, an InputError names a batch that fits.

    loss: of rows; tells what fits, by halves. pixels: the side of an image.
    """

    def tried(number: int, rows: Tensor) -> tuple[Tensor, bool]:
        try:
            return step(number, rows)
        except torch.OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)  # they hold what the step had in memory
            raise too_large(len(rows), pixels, _fits(loss, rows)) from error

    return tried


def _fits(loss: Callable[[Tensor], Tensor], rows: Tensor) -> int:
    """How many of the rows memory is large enough for: a half, a quarter and so on; 0 if it is for none."""
    while len(rows := rows[: len(rows) // 2]):
        try:
            loss(rows).backward()
            return len(rows)
        except torch.OutOfMemoryError as error:
            traceback.clear_frames(error.__traceback__)
    return 0


def too_large(n: int, pixels: int, fits: int = 0) -> InputError:
    """Memory is too small for ``n`` images of ``pixels``, and large enough for ``fits`` of them, if that is known."""
    way_out = f"{fits} at a time fit. Choose batch_size = {fits}" if fits else "choose a smaller batch_size"
    return InputError(f"memory is too small for a batch of {n} images of {pixels} pixels: {way_out}, or smaller images")
