"""Fit many heads at once: weights stacked, products batched, each head with its own images, order and schedule.

A head of Hyper-DINO is so small that alone it keeps a processor waiting. Heads of one shape are therefore stacked and
trained side by side, ``chunk`` of them at a time, and chunks run on all processors. Every head sees exactly the
batches that :func:`lib.training.fit.fit_head` would give it, so that both end with the same weights up to rounding.
"""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import joblib
import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap

from lib import files
from lib.processes import spread
from lib.progress import track
from lib.training import kept
from lib.training.divergence import Watch
from lib.training.fit import Schedule, epoch_means

CHUNK = 10
"""Heads in a stack on a CPU: their weights and one batch of each still fit into a processor's cache."""

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""Takes embeddings (S, B, d), labels (S, B) and which rows count (S, B); returns the loss of each of S heads."""


@dataclass(frozen=True, eq=False)
class Task:
    """A head to train: ``x: (n, dim)`` features (float16 or float32), ``labels: (n,)``, the seed of their order.

    ``stack``: heads are stacked with those of the same stack alone, so that what else is trained does not matter: sums
    are rounded differently in stacks of different size.
    """

    name: str
    head: nn.Module
    x: np.ndarray
    labels: np.ndarray
    seed: int
    stack: int = 0


def fit(
    tasks: Sequence[Task],
    loss: Loss,
    schedule: Schedule,
    *,
    store: Path | None = None,
    device: str = "auto",
    workers: int = -1,
    chunk: int = CHUNK,
    what: str = "heads",
) -> list[list[float]]:
    """Train the head of every task in place.

    Args:
        tasks: heads of any shapes; those of one shape differ in their weights alone, and have no buffers.
        loss: of a stack of batches; picklable, since other processes call it.
        schedule: for all of them.
        store: a folder for finished stacks, so that nothing is trained twice. Stacks are recognised by their images,
            weights, seeds, schedule, loss, and the code behind all of these; a damaged one is reported, set aside and
            trained anew.
        device: "cpu", "cuda", or "auto" for cuda where there is one.
        workers: processes on a CPU; -1 takes all processors. The result does not depend on it.
        chunk: heads in a stack on a CPU: fewer for larger heads, and to give few heads to several processors.
        what: the name of the work in the progress bar.

    Returns:
        For every task the mean loss of every epoch.

    Raises:
        Diverged: when a loss is not finite or weights have outgrown float32; names the task and the step.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    code = ""
    if store is not None:
        files.sweep(store)  # what a killed run left half written
        code = _code(tasks, loss)
    parts = list(chunks(tasks, schedule, chunk_size(tasks, schedule, device, chunk)))
    jobs = (joblib.delayed(_stored)([tasks[i] for i in part], loss, schedule, device, store, code) for part in parts)
    threads = torch.get_num_threads()
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
    try:
        for part, result in shown:
            for index, (state, history) in zip(part, result, strict=True):
                tasks[index].head.load_state_dict(state)
                histories[index] = history
    finally:
        torch.set_num_threads(threads)
    return histories


def chunks(tasks: Sequence[Task], schedule: Schedule, size: int) -> Iterable[list[int]]:
    """Indices of tasks that are trained together, ``size`` at most: equal stacks and shapes, steps within a quarter."""

    def kind(task: Task) -> tuple:
        return tuple(tuple(value.shape) for value in task.head.state_dict().values()), task.stack

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
    weights = max(sum(value.numel() for value in task.head.state_dict().values()) for task in tasks)
    images = max(task.x.size for task in tasks)
    pairs = schedule.batch_size**2
    free, _ = torch.cuda.mem_get_info()
    # Weights, their gradient and Adam's two moments; features; about 40 matrices of pairs live until the backward pass.
    return max(1, int(free / 2 // (4 * (4 * weights + images + 40 * pairs))))


def _stored(
    tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str, store: Path | None, code: str
) -> list[tuple[dict[str, Tensor], list[float]]]:
    """:func:`_fit`, or what it returned before."""
    torch.set_num_threads(1)  # so that the result does not depend on how many processors there are
    if store is None:
        return _fit(tasks, loss, schedule, device)
    return kept.once(store, _key(tasks, loss, schedule, device, code), lambda: _fit(tasks, loss, schedule, device))


def _code(tasks: Sequence[Task], loss: Loss) -> str:
    """The fingerprint of the code that trains: this module, the heads, the loss; torch's version, the pins."""
    kinds = {type(task.head).__module__ for task in tasks} | {type(loss).__module__, __name__}
    return kept.code(kinds, "torch")


def _key(tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str, code: str) -> str:
    """A hash of everything that the weights of a stack depend on."""
    digest = hashlib.sha256(f"{schedule} {kept.digest(loss)} {device} {code}".encode())
    for task in tasks:
        state = dict(task.head.state_dict())
        digest.update(kept.digest(task.seed, task.x, task.labels, _made(task.head), state).encode())
    return digest.hexdigest()


def _made(head: nn.Module) -> list[dict[str, object]]:
    """What a head is beside its weights: its space, how far out it lets a point go, and the like, module by module."""
    hidden = ("_", "training")
    return [
        {"": type(module).__name__}
        | {name: value for name, value in vars(module).items() if not name.startswith(hidden)}
        for module in head.modules()
    ]


def _fit(
    tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str
) -> list[tuple[dict[str, Tensor], list[float]]]:
    """Train a stack of heads of one shape; the weights and the mean loss per epoch of each."""
    sizes = [len(task.x) for task in tasks]
    lasts = [schedule.epochs * schedule.steps(n) - 1 for n in sizes]
    model = tasks[0].head
    dtype = next(model.parameters()).dtype
    x = torch.zeros(len(tasks), max(sizes), tasks[0].x.shape[1], dtype=dtype, device=device)
    y = torch.zeros(len(tasks), max(sizes), dtype=torch.long, device=device)
    for row, task in enumerate(tasks):
        x[row, : sizes[row]] = torch.tensor(task.x)
        y[row, : sizes[row]] = torch.tensor(task.labels)
    weights = {
        name: value.to(device).detach() for name, value in stack_module_state([t.head for t in tasks])[0].items()
    }
    for value in weights.values():
        value.requires_grad_()
    apply = vmap(lambda state, batch: functional_call(model, state, (batch,)))
    optimiser = torch.optim.Adam(weights.values(), lr=schedule.lr, weight_decay=schedule.weight_decay, fused=True)

    finished: dict[int, dict[str, Tensor]] = {}
    watch, counts = Watch(weights, [task.name for task in tasks], lasts), []
    orders = [schedule.batches(torch.tensor(task.labels), task.seed) for task in tasks]
    offset = max(sizes) * torch.arange(len(tasks), device=device).unsqueeze(-1)
    for step, batches in enumerate(zip_longest(*orders, fillvalue=torch.zeros(1, dtype=torch.long))):
        rows, valid = _padded(batches, device)
        counts.append(valid.sum(-1))
        taken = (rows + offset).flatten()
        batch, labels = (values.flatten(0, 1).index_select(0, taken).unflatten(0, rows.shape) for values in (x, y))
        values = loss(apply(weights, batch), labels, valid)
        watch.add(values)
        done = [row for row, last in enumerate(lasts) if last == step]
        if done or (step + 1) % schedule.steps(max(sizes)) == 0:
            watch.check()
        optimiser.zero_grad()
        values.sum().backward()
        optimiser.step()
        if done:
            watch.check()
            states = watch.states()
            finished |= {row: states[row] for row in done}
    history, counts = watch.history(), torch.stack(counts).T.cpu().numpy()
    parts = [slice(0, last + 1) for last in lasts]
    means = [epoch_means(history[row, part], counts[row, part], schedule.epochs) for row, part in enumerate(parts)]
    return [(finished[row], means[row]) for row in range(len(tasks))]


def _padded(batches: Sequence[Tensor], device: str) -> tuple[Tensor, Tensor]:
    """Batches of unequal size as rows (S, B), filled up with row 0, and which of them count (S, B)."""
    lengths = torch.tensor([len(batch) for batch in batches])
    rows = nn.utils.rnn.pad_sequence(list(batches), batch_first=True)
    return rows.to(device), (torch.arange(rows.shape[1]) < lengths.unsqueeze(-1)).to(device)
