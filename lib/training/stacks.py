"""A stack of heads: their weights joined layer by layer, narrow ones filled up with zeros, one step for all of them.

**Why zeros stay zeros.** A unit whose weights, bias and inputs are 0 gives 0 through a ReLU or a GELU, and nothing
reads it. So its weights have a gradient of 0, Adam's step is 0/(√0 + ε), and weight decay takes a share of 0. A head
that is filled up to the widest of its stack gives its own embeddings with zeros behind them; their distances and norms
are those of the embeddings. So it learns what it learns alone, up to rounding.

**Where they do not.** A layer norm takes means over units, a batch norm keeps statistics, a Kolmogorov-Arnold layer has
splines that are not 0 at 0, and a hash head divides inputs by their deviation: such heads say nothing. Class logits,
whose softmax sees every number, and hash codes, which are compared bit by bit, are no distances: their losses say
nothing. Both are stacked with heads of their own shapes alone.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from lib import checks
from lib.training import loop
from lib.training.divergence import Watch
from lib.training.fit import Schedule
from lib.training.recorded import Record, Recorded

Loss = Callable[..., Tensor]
"""A loss of :mod:`lib.losses` that takes stacks; returns the loss of each of S heads.

A loss may say three things of itself. ``by_distance``: zeros behind all embeddings do not change it. ``recordable``:
what it does depends on shapes alone, and it copies nothing from the CPU, so that it can be part of a CUDA graph.
``looks``: it takes fingerprints as ``prints``, the last numbers of a row of a head that says how many they are.
Likewise a head says ``pads``, where zeros around its weights do not change its embeddings.
"""

Trained = tuple[dict[str, Tensor], list[float]]
"""The weights of a head, and its mean loss of every epoch."""


@dataclass(frozen=True, eq=False)
class Task:
    """A head to train: ``x: (n, dim)`` features (float16 or float32), ``labels: (n,)``, the seed of their order.

    ``stack``: on a CPU, heads are stacked with those of the same stack alone, so that what else is trained does not
    matter: sums are rounded differently in stacks of different size.
    """

    name: str
    head: nn.Module
    x: np.ndarray
    labels: np.ndarray
    seed: int
    stack: int = 0

    def __post_init__(self) -> None:
        checks.codes("labels", self.labels)  # losses do not look at those on a GPU


def kind(task: Task, loss: Loss | None = None, padded: bool = False) -> tuple:
    """What heads must have in common to be stacked.

    padded: whatever they are of, and whatever their widths, where head and loss say that zeros do no harm.
    """
    shapes = tuple(tuple(value.shape) for value in task.head.state_dict().values())
    if not padded:
        return shapes, task.stack
    pads = getattr(task.head, "pads", False) and getattr(loss, "by_distance", False)
    settings = [module for module in made(task.head) if module[""] != "Linear"]
    return str(tuple(map(len, shapes)) if pads else shapes), str(settings)


def made(head: nn.Module) -> list[dict[str, object]]:
    """What a head is beside its weights: its space, how far out it lets a point go, and the like, module by module."""
    hidden = ("_", "training")
    return [
        {"": type(module).__name__}
        | {name: value for name, value in vars(module).items() if not name.startswith(hidden)}
        for module in head.modules()
    ]


def widest(heads: Iterable[nn.Module]) -> dict[str, tuple[int, ...]]:
    """Name → the shape that the weights of all ``heads`` fit into."""
    shapes: dict[str, tuple[int, ...]] = {}
    for head in heads:
        for name, value in head.state_dict().items():
            shapes[name] = tuple(map(max, value.shape, shapes.get(name, value.shape)))
    return shapes


def train(
    tasks: Sequence[Task], loss: Loss, schedule: Schedule, device: str, record: Record | None = None
) -> list[Trained]:
    """Train heads of one :func:`kind` side by side; they stay as they are, the trained ones are returned.

    record: how steps are recorded, which are then filled up to the longest batch; None takes them as they come.
    """
    sizes = [len(task.x) for task in tasks]
    lasts = [schedule.epochs * schedule.steps(n) - 1 for n in sizes]
    x, first, y = _images(tasks, device)
    states = [task.head.state_dict() for task in tasks]
    weights = _joined(states, widest(task.head for task in tasks), device)
    apply = vmap(lambda state, batch: functional_call(tasks[0].head, state, (batch,)))
    settings = {"lr": schedule.lr, "weight_decay": schedule.weight_decay, "capturable": record is not None}
    optimiser = torch.optim.Adam(weights.values(), fused=True, **settings)
    n = tasks[0].head.fingerprint if getattr(loss, "looks", False) else 0

    def step(rows: Tensor, valid: Tensor) -> Tensor:
        batch = x.index_select(0, (first + rows).flatten()).unflatten(0, rows.shape)
        prints = {"prints": batch[..., -n:]} if n else {}
        losses = loss(apply(weights, batch), y.gather(1, rows), valid=valid, **prints)
        optimiser.zero_grad()
        losses.sum().backward()
        optimiser.step()
        return losses.detach()

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        orders, longest = [schedule.batches(torch.tensor(task.labels), task.seed) for task in tasks], 0
        for batch in zip_longest(*orders, fillvalue=torch.zeros(1, dtype=torch.long)):
            rows, valid = _padded(batch, longest)
            longest = rows.shape[1] if record else 0
            counts.append(valid.sum(-1))
            yield _moved(rows, device), _moved(valid, device)

    def look(taken: int) -> None:
        if done := [row for row, last in enumerate(lasts) if last + 1 == taken]:
            finished.update(zip(done, watch.states(done), strict=True))

    take, counts, finished = step if record is None else Recorded(step, record), [], {}
    shapes = [{name: value.shape for name, value in state.items()} for state in states]
    watch = Watch(weights, [task.name for task in tasks], lasts, shapes)
    loop.run(lambda _, batch: (take(*batch), True), batches(), watch, every=schedule.steps(max(sizes)), look=look)
    history, counts = watch.history(), torch.stack(counts).T.numpy()
    parts = [slice(0, last + 1) for last in lasts]
    means = [loop.epoch_means(history[row, part], counts[row, part], schedule.epochs) for row, part in enumerate(parts)]
    return [(finished[row], means[row]) for row in range(len(tasks))]


def _images(tasks: Sequence[Task], device: str) -> tuple[Tensor, Tensor, Tensor]:
    """Features (rows, dim), the first row of each task (S, 1), labels (S, n); zeros behind shorter ones.

    Features that several tasks share are there once.
    """
    inputs = {id(task.x): task.x for task in tasks}
    ends = np.cumsum([0, *map(len, inputs.values())])
    starts = dict(zip(inputs, ends[:-1].tolist(), strict=True))
    dtype = next(tasks[0].head.parameters()).dtype
    x = torch.zeros(int(ends[-1]), max(task.x.shape[1] for task in tasks), dtype=dtype, device=device)
    for key, values in inputs.items():
        x[starts[key] :][: len(values), : values.shape[1]] = torch.tensor(values)
    y = nn.utils.rnn.pad_sequence([torch.tensor(task.labels, dtype=torch.long) for task in tasks], batch_first=True)
    return x, torch.tensor([starts[id(task.x)] for task in tasks], device=device).unsqueeze(-1), y.to(device)


def _joined(states: Sequence[dict[str, Tensor]], shapes: dict[str, tuple[int, ...]], device: str) -> dict[str, Tensor]:
    """Name → the weights (S, ...) of all heads, filled up with zeros to ``shapes``."""
    weights = {name: value.new_zeros(len(states), *shapes[name]) for name, value in states[0].items()}
    for row, state in enumerate(states):
        for name, value in state.items():
            weights[name][(row, *map(slice, value.shape))] = value
    return {name: value.to(device).requires_grad_() for name, value in weights.items()}


def _padded(batches: Sequence[Tensor], least: int) -> tuple[Tensor, Tensor]:
    """Batches of unequal size as rows (S, B), filled up with row 0, and which of them count (S, B); B ≥ ``least``."""
    lengths = torch.tensor([len(batch) for batch in batches])
    rows = nn.utils.rnn.pad_sequence(list(batches), batch_first=True)
    rows = nn.functional.pad(rows, (0, max(0, least - rows.shape[1])))
    return rows, torch.arange(rows.shape[1]) < lengths.unsqueeze(-1)


def _moved(values: Tensor, device: str) -> Tensor:
    """``values`` on the device, without waiting for it."""
    return values if device == "cpu" else values.pin_memory().to(device, non_blocking=True)
