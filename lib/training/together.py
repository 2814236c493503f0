"""One training on the CPU, on a GPU, or shared by several processes, through Lightning Fabric.

``PROCESSES=4 make reproduce`` starts four for every training that can share its batches: one for each GPU of a machine,
or on the CPU, where it is for trying out. torch starts them, as torchrun does, since Fabric itself starts none from
within a notebook but by forking, which a kernel that has used its GPU does not survive.

Every process embeds its part of the batch, gathers the parts of all and computes the loss of the whole (:func:`step`).
Backwards, a part gets the sum of what all processes say of it: as many times the gradient of the single-process loss.
Fabric's data parallelism then takes the mean over the processes. So every weight has the gradient that one process
would have, and the step and its clipping are the same.
"""

import logging
import math
import os
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, distributed, nn
from torch.utils.checkpoint import checkpoint

from lib import devices
from lib.errors import InputError
from lib.processes import end_with
from lib.training.loop import too_large

if TYPE_CHECKING:
    from lightning_fabric import Fabric

log = logging.getLogger(__name__)

VARIABLE = "PROCESSES"

LOST = ("Connection closed by peer", "Connection reset by peer")
"""What a process says, in torch's words, of another one that was killed."""

Result = TypeVar("Result")


def fabric(device: str = "auto", bf16: bool | None = None) -> "Fabric":
    """What a training runs on; among the processes of :func:`launched` it is shared by all of them.

    device: see :func:`lib.devices.pick`. bf16: bfloat16 autocast, on a GPU alone by default.
    """
    from lightning_fabric import Fabric  # two seconds, which no notebook pays that trains nothing

    graphics = devices.pick(device).type == "cuda"
    n = int(os.environ["WORLD_SIZE"]) if distributed.is_torchelastic_launched() else 1
    made = Fabric(
        accelerator="cuda" if graphics else "cpu",
        devices=n,
        strategy="ddp" if n > 1 else "auto",
        precision="bf16-mixed" if (graphics if bf16 is None else bf16) else "32-true",
    )
    made.launch()
    return made


def part(place: "Fabric", batch_size: int) -> slice:
    """The places of a batch that this process embeds; InputError if not all processes have as many."""
    share, rest = divmod(batch_size, place.world_size)
    if rest:
        raise InputError(
            f"batches of {batch_size} images cannot be shared by {place.world_size} processes alike: "
            "choose another batch_size"
        )
    return slice(place.global_rank * share, (place.global_rank + 1) * share)


class InParts(nn.Module):
    """A network that embeds a batch in :attr:`parts`, one after the other, where memory is too small for all of it.

    With more than one, a part is embedded again on the way back, and no more than one is in memory at a time. Embedding
    and gradient are those of the whole batch, for a network in which images know nothing of each other.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network, self.parts = network, 1

    def forward(self, pixels: Tensor) -> Tensor:
        if self.parts == 1:
            return self.network(pixels)
        parts = pixels.chunk(self.parts)
        return torch.cat([checkpoint(self.network, part, use_reentrant=False) for part in parts])


def setup(
    place: "Fabric", network: nn.Module, optimiser: torch.optim.Optimizer
) -> tuple[nn.Module, torch.optim.Optimizer]:
    """Network, as :class:`InParts`, and optimiser for :func:`step` on ``place``.

    Channels of a pixel lie side by side, which GPUs convolve faster, and CPUs too.
    """
    return place.setup(InParts(network.to(memory_format=torch.channels_last)), optimiser)


def step(
    place: "Fabric",
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    pixels: Tensor,
    loss: Callable[[Tensor], Tensor],
    *,
    longest: float = math.inf,
    others: Iterable[nn.Module] = (),
) -> tuple[Tensor, bool]:
    """One step down the gradient of the loss of a batch, as a :data:`lib.training.loop.Step` returns it.

    It is not taken where the loss or its gradient is not finite. Where memory is too small for the batch, it is
    embedded in twice as many parts, with a warning, to the same loss.

    Args:
        place, network, optimiser: as :func:`setup` made them.
        pixels: the own part of the batch, (b, 3, size, size).
        loss: of what the network makes of all parts, (B, d) float32, those of all processes in order; a scalar.
        longest: the norm that the gradient is clipped to.
        others: modules that ``loss`` computes with and learns, which every process has to itself.

    Raises:
        InputError: where several processes share a batch that is too large, or a single image is.
    """
    modules, pixels = list(others), pixels.to(place.device, memory_format=torch.channels_last)
    before = [(buffer, buffer.clone()) for module in modules for buffer in module.buffers()]
    inner = network.module
    while True:
        try:
            return _step(place, network, optimiser, pixels, loss, longest, modules)
        except torch.OutOfMemoryError as error:
            if place.world_size > 1 or inner.parts >= len(pixels):
                raise too_large(len(pixels), pixels.shape[-1]) from error
            inner.parts *= 2
            fits = -(-len(pixels) // inner.parts)
            log.warning("Memory is too small for %d images at once: embedding %d at a time.", len(pixels), fits)
        # The error held what the step had in memory, so the next attempt is made outside of its handling.
        optimiser.zero_grad()
        for buffer, value in before:
            buffer.copy_(value)
        torch.cuda.empty_cache()


def _step(
    place: "Fabric",
    network: nn.Module,
    optimiser: torch.optim.Optimizer,
    pixels: Tensor,
    loss: Callable[[Tensor], Tensor],
    longest: float,
    others: Iterable[nn.Module],
) -> tuple[Tensor, bool]:
    """As :func:`step`, if memory is large enough.

    Every process has the whole gradient of the ``others``; its mean is the same on all to the last bit, which it is not
    by itself where a GPU adds in any order.
    """
    value = loss(place.all_gather(network(pixels).float(), sync_grads=True).flatten(end_dim=-2))
    optimiser.zero_grad()
    place.backward(value)
    weights = [weight for module in others for weight in module.parameters()]
    place.all_reduce([weight.grad for weight in weights if weight.grad is not None])
    length = place.clip_gradients(network, optimiser, max_norm=longest, error_if_nonfinite=False)
    sound = bool(value.isfinite() and length.isfinite())
    if sound:
        optimiser.step()
    return value.detach()[None], sound


def processes() -> int:
    """How many processes share a training: :data:`VARIABLE` of the environment, 1 if it says nothing.

    Raises InputError for what is no number of processes, or more than there are GPUs, where they are taken.
    """
    text = os.environ.get(VARIABLE, "1")
    if not (text.isdecimal() and int(text) > 0):
        raise InputError(f"{VARIABLE}={text}: it has to be a number of processes, 1 or more")
    if devices.pick().type == "cuda" and torch.cuda.device_count() < int(text):
        raise InputError(f"{VARIABLE}={text}, but this machine has {torch.cuda.device_count()} GPUs: one process each")
    return int(text)


def launched(work: Callable[..., Result], *arguments: object, **options: object) -> Result:
    """What ``work(*arguments, **options)`` returns, done by as many processes as :func:`processes` says.

    Each does the same work and finds the others through :func:`fabric`; returned is what the first has. All of it has
    to be picklable, and with several processes the caller's own objects stay as they are. An error of any of them is
    raised here; InputError, with the likely cause, where one was killed.
    """
    n = processes()
    if n == 1:
        return work(*arguments, **options)
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    config = LaunchConfig(1, 1, n, rdzv_backend="c10d", rdzv_endpoint="localhost:0", max_restarts=0)
    with tempfile.TemporaryDirectory() as folder:
        done = Path(folder)
        torch.save(partial(work, *arguments, **options), done / "work")  # as arguments, tensors would be shared memory
        try:
            elastic_launch(config, _member)(done, os.getpid())
        except ChildFailedError as failed:
            errors = sorted(done.glob("error-*"), key=lambda file: file.stat().st_mtime_ns)
            first = torch.load(errors[0], weights_only=False) if errors else None
            raise _cause(failed.get_first_failure()[1].exitcode, first) from None
        return torch.load(done / "result", weights_only=False)


def _cause(exitcode: int, first: Exception | None) -> Exception:
    """What ended the work: the ``first`` error, if any, or a process that was killed, which writes none.

    The others notice a killed process by a lost connection, and may be seen to end before it.
    """
    if first is not None and not any(words in str(first) for words in LOST):
        return first
    if first is None and exitcode >= 0:
        return InputError(f"a process ended with status {exitcode} and without a word: look for its last lines above")
    by = f"by signal {-exitcode}" if exitcode < 0 else "from outside"
    way_out = f"take fewer processes ({VARIABLE}), or a smaller batch"
    return InputError(f"a process was ended {by}, most likely for want of memory: {way_out}")


def _member(folder: Path, parent: int) -> None:
    """One of several processes, which do the work in ``folder``; the first writes there what it returns."""
    end_with(parent)
    rank = os.environ["RANK"]
    try:
        result = torch.load(folder / "work", weights_only=False)()
        if rank == "0":
            torch.save(result, folder / "result")
    except Exception as error:
        torch.save(error, folder / f"error-{rank}")
        raise
    finally:
        if distributed.is_initialized():
            distributed.destroy_process_group()
