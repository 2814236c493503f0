"""Fit many heads at once: weights stacked, products batched, each head with its own images, order and schedule.

A head of Hyper-DINO is so small that alone it keeps a processor waiting. Heads of one shape are therefore stacked and
trained side by side, ``chunk`` of them at a time, and chunks run on all processors. A GPU takes hundreds at once, of
unlike widths (:mod:`lib.training.stacks`). Every head sees exactly the batches that
:func:`lib.training.fit.fit_head` would give it, so that both end with the same weights up to rounding.
"""

import gc
import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

import joblib
import numpy as np
import torch

from lib import devices, files
from lib.errors import InputError
from lib.processes import spread
from lib.progress import track
from lib.training import kept
from lib.training.fit import Schedule
from lib.training.recorded import aside, captured
from lib.training.stacks import Loss, Task, Trained, kind, made, train, widest

log = logging.getLogger(__name__)

CHUNK = 10
"""Heads in a stack on a CPU: their weights and one batch of each still fit into a processor's cache."""


def fit(
    tasks: Sequence[Task],
    loss: Loss,
    schedule: Schedule,
    *,
    store: Path | None = None,
    device: str = "auto",
    workers: int = -1,
    chunk: int = CHUNK,
    padded: bool | None = None,
    what: str = "heads",
) -> list[list[float]]:
    """Train the head of every task in place.

    Args:
        tasks: heads of any shapes, without buffers; those of one shape and stack differ in their weights alone.
        loss: of a stack of batches; picklable, since other processes call it.
        schedule: for all of them.
        store: a folder for finished stacks, on a GPU finished heads, so that nothing is trained twice. They are
            recognised by their images, weights, seeds, schedule, loss, and the code behind all of these; a damaged one
            is reported, set aside and trained anew.
        device: see :func:`lib.devices.pick`.
        workers: processes on a CPU; -1 takes all processors. The result does not depend on it.
        chunk: heads in a stack on a CPU: fewer for larger heads, and to give few heads to several processors.
        padded: stack heads of unlike widths, where that does no harm (:mod:`lib.training.stacks`); if not given, on a
            GPU, which takes as long for a few heads as for hundreds.
        what: the name of the work in the progress bar.

    Returns:
        For every task the mean loss of every epoch.

    Raises:
        Diverged: when a loss is not finite or weights have outgrown float32; names the task and the step.
        InputError: when a single head does not fit into a GPU's memory; larger stacks are halved with a notice.
    """
    device = devices.pick(device).type
    code = ""
    if store is not None:
        files.sweep(store)  # what a killed run left half written
        code = _code(tasks, loss)
    alike = partial(kind, loss=loss, padded=device != "cpu" if padded is None else padded)
    parts = list(chunks(tasks, schedule, chunk_size(tasks, schedule, device, chunk), alike))
    jobs = (joblib.delayed(_stored)([tasks[i] for i in part], loss, schedule, device, store, code) for part in parts)
    results = spread(jobs, workers if device == "cpu" else 1)
    histories: list[list[float]] = [[] for _ in tasks]
    shown = track(
        zip(parts, results, strict=True),
        total=len(tasks),
        what=what,
        unit="heads",
        size=lambda done: len(done[0]),
        note=lambda done: f"loss {np.mean([history[-1] for _, history in done[1]]):.3f}",
    )
    for part, result in shown:
        for index, (state, history) in zip(part, result, strict=True):
            tasks[index].head.load_state_dict(state)
            histories[index] = history
    return histories


def chunks(
    tasks: Sequence[Task], schedule: Schedule, size: int, kind: Callable[[Task], tuple] = kind
) -> Iterable[list[int]]:
    """Indices of tasks that are trained together, ``size`` at most: of one kind, steps within a quarter."""

    def key(index: int) -> tuple:
        return kind(tasks[index]), -schedule.steps(len(tasks[index].x)), index

    part: list[int] = []
    for index in sorted(range(len(tasks)), key=key):
        if part:
            longest, steps = (schedule.steps(len(tasks[i].x)) for i in (part[0], index))
            if len(part) == size or kind(tasks[part[0]]) != kind(tasks[index]) or 4 * steps < 3 * longest:
                yield part
                part = []
        part.append(index)
    if part:
        yield part


def chunk_size(tasks: Sequence[Task], schedule: Schedule, device: str, chunk: int = CHUNK) -> int:
    """How many heads are stacked: ``chunk`` on a CPU, as many as half of the free memory holds on a GPU."""
    if device == "cpu" or not tasks:
        return chunk
    free, _ = torch.cuda.mem_get_info()
    return max(1, free // 2 // memory(tasks, schedule))


def memory(tasks: Sequence[Task], schedule: Schedule) -> int:
    """About the bytes that each head takes in a stack of ``tasks``, as wide as the widest of them."""
    shapes = list(widest(task.head for task in tasks).values())
    weights, ends = sum(map(math.prod, shapes)), sum(map(sum, shapes))
    images = max(len(task.x) for task in tasks) * max(task.x.shape[1] for task in tasks)
    batch = schedule.batch_size
    # Weights, their gradient, Adam's two moments and two copies (Watch); features; what lives until the backward pass:
    # layers' inputs and outputs, and 20 matrices of pairs, twice what five kinds of heads were measured to need.
    return 4 * (6 * weights + images + 5 * batch * ends + 20 * batch**2)


@kept.one_thread()
def _stored(
    tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str, store: Path | None, code: str
) -> list[Trained]:
    """:func:`_fit`, or what it returned before.

    A stack is kept as a whole on a CPU, where the others of a stack decide the last bits. On a GPU free memory decides
    who they are, so that each head is kept by itself.
    """
    if store is None:
        return _fit(tasks, loss, schedule, device)
    units = [tasks] if device == "cpu" else [[task] for task in tasks]
    keys = [_key(unit, loss, schedule, device, code) for unit in units]
    known = {key: kept.known(store, key) for key in keys}
    missing = {key: unit for key, unit in zip(keys, units, strict=True) if known[key] is None}
    if missing:
        trained = iter(_fit(list(chain(*missing.values())), loss, schedule, device))
        known |= {key: kept.keep(store, key, list(islice(trained, len(unit)))) for key, unit in missing.items()}
    return list(chain(*(known[key] for key in keys)))


def _code(tasks: Sequence[Task], loss: Loss) -> str:
    """The fingerprint of the code that trains: this module, the heads, the loss; torch's version, the pins."""
    kinds = {type(task.head).__module__ for task in tasks} | {type(loss).__module__, __name__}
    return kept.code(kinds, "torch")


def _key(tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str, code: str) -> str:
    """A hash of everything that the weights of a stack depend on."""
    heads = [(task.seed, task.x, task.labels, made(task.head), dict(task.head.state_dict())) for task in tasks]
    return kept.key(schedule, loss, device, code, *heads)


def _fit(tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str) -> list[Trained]:
    """Train a stack; one that does not fit into a GPU's memory is halved."""
    record = captured if device != "cpu" and getattr(loss, "recordable", False) else None
    try:
        with aside(device):
            return train(tasks, loss, schedule, device, record)
    except torch.OutOfMemoryError:
        half = len(tasks) // 2  # what the error holds is let go before the halves are trained
    if not half:
        raise InputError(
            f"{tasks[0].name} alone does not fit into the GPU's memory: it takes about "
            f"{memory(tasks, schedule) / 1e9:.1f} GB with batches of {schedule.batch_size}. Take smaller batches, "
            "fewer images, or the CPU (DEVICE=cpu)"
        )
    log.warning("%d heads at once do not fit into the GPU's memory: they are trained in halves.", len(tasks))
    gc.collect()
    torch.cuda.empty_cache()
    return [*_fit(tasks[:half], loss, schedule, device), *_fit(tasks[half:], loss, schedule, device)]
