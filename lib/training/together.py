"""One loss over a batch that several processes share (torch.distributed); alone, nothing here changes anything.

``PROCESSES=4 make reproduce`` starts four for every training that can share its batches: one for each GPU of a machine,
or on the CPU, where it is for trying out.

Every process embeds its part of the batch, and the loss looks at all pairs of the whole. Each process computes that
whole loss, but has a gradient for its own part alone, so the gradients of a weight are *added up* over the processes to
the gradient of the single-process loss. (Averaged, as DistributedDataParallel does it, they would be that divided by
the number of processes: a smaller step wherever the optimiser or the clipping sees the size of a gradient.)
"""

import os
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TypeVar

import torch
from torch import Tensor, distributed, multiprocessing

from lib.errors import InputError

VARIABLE = "PROCESSES"

Result = TypeVar("Result")


def place() -> tuple[int, int]:
    """The number of this process and how many there are; 0 of 1 where none was started."""
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def gathered(z: Tensor) -> Tensor:
    """Embeddings ``z: (b, d)`` of all processes in their order, (b · processes, d), with the gradient of the own part.

    Every process hands in the same number of rows.
    """
    rank, size = place()
    if size == 1:
        return z
    parts = [torch.empty_like(z) for _ in range(size)]
    distributed.all_gather(parts, z.detach().contiguous())
    return torch.cat([*parts[:rank], z, *parts[rank + 1 :]])


def add_gradients(parameters: Iterable[torch.nn.Parameter]) -> None:
    """Replace the gradient of each parameter by its sum over all processes; to be called before it is clipped."""
    if place()[1] > 1:
        for parameter in parameters:
            if parameter.grad is not None:
                distributed.all_reduce(parameter.grad)


def processes() -> int:
    """How many processes share a training: :data:`VARIABLE` of the environment, 1 if it says nothing.

    Raises InputError for what is no number of processes, or more than there are GPUs on a machine with any.
    """
    text = os.environ.get(VARIABLE, "1")
    if not (text.isdecimal() and int(text) > 0):
        raise InputError(f"{VARIABLE}={text}: it has to be a number of processes, 1 or more")
    if 0 < torch.cuda.device_count() < int(text):
        raise InputError(f"{VARIABLE}={text}, but this machine has {torch.cuda.device_count()} GPUs: one process each")
    return int(text)


def launched(work: Callable[..., Result], *arguments: object, **options: object) -> Result:
    """What ``work(*arguments, **options)`` returns, done by as many processes as :func:`processes` says.

    Each does the same work and has its :func:`place`; returned is what the first has. All of it has to be picklable,
    and with several processes the caller's own objects stay as they are. An error of any of them is raised here.
    """
    n = processes()
    if n == 1:
        return work(*arguments, **options)
    with tempfile.TemporaryDirectory() as folder:
        given = partial(work, *arguments, **options), n, Path(folder)
        try:
            multiprocessing.start_processes(_member, given, nprocs=n, start_method="spawn")
        except multiprocessing.ProcessRaisedException as error:
            (first, *_) = sorted(Path(folder).glob("error-*"), key=lambda file: file.stat().st_mtime_ns)
            raise torch.load(first, weights_only=False) from error
        return torch.load(Path(folder) / "result", weights_only=False)


def _member(rank: int, work: Callable[[], object], n: int, folder: Path) -> None:
    """One of ``n`` processes; the first writes what ``work`` returns."""
    graphics = torch.cuda.is_available()
    if graphics:
        torch.cuda.set_device(rank)
    distributed.init_process_group(
        "nccl" if graphics else "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=n
    )
    try:
        result = work()
        if rank == 0:
            torch.save(result, folder / "result")
    except Exception as error:
        torch.save(error, folder / f"error-{rank}")
        raise
    distributed.destroy_process_group()
