"""Two ways to do one thing, measured side by side."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

Work = Callable[[], object]
REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One line of the table: what was measured, with which values, and what shows that both compute the same.

    A ceiling of the device has no peer, and no ratio.
    """

    what: str
    unit: str
    ours: str
    peer: str
    our_value: float
    peer_value: float
    aim: str = ""
    check: str = ""

    @property
    def ratio(self) -> float:
        """How many times less we need than the peer, or how many times more we do in a second."""
        more = self.unit.endswith("/s")
        return self.our_value / self.peer_value if more else self.peer_value / self.our_value

    def cells(self) -> dict[str, object]:
        """The row as it is printed: numbers with four digits."""
        cells = asdict(self) | {"ratio": self.ratio}
        return {name: float(f"{cell:.4g}") if isinstance(cell, float) else cell for name, cell in cells.items()}


def milliseconds(ours: Work, peer: Work, repeats: int = REPEATS, warm: bool = True) -> tuple[float, float]:
    """Median wall times. The two take turns, so that a busy moment of the machine meets both.

    A first turn does not count, unless ``warm`` is false: for work that takes minutes.
    """
    times: list[tuple[float, ...]] = []
    for _ in range(repeats + warm):
        times.append(tuple(_seconds(work) for work in (ours, peer)))
    medians = 1000 * np.median(times[int(warm) :], axis=0)
    return float(medians[0]), float(medians[1])


def _seconds(work: Work) -> float:
    settle()
    start = time.perf_counter()
    work()
    settle()
    return time.perf_counter() - start


def settle() -> None:
    """Wait for a GPU that works behind the back of Python, if there is one at work."""
    if torch.cuda.is_initialized():
        torch.cuda.synchronize()


def megabytes(work: Work) -> float:
    """The most memory that torch holds at a time during ``work()``, beyond what it held before."""
    if torch.cuda.is_initialized():
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        work()
        return (torch.cuda.max_memory_allocated() - before) / 2**20
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as watched:
        work()
    events = watched.profiler.kineto_results.events()
    steps = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == "[memory]")
    return float(np.cumsum([size for _, size in steps]).max() / 2**20)


def relative_error(value: torch.Tensor, truth: torch.Tensor) -> float:
    """The largest |value − truth|/truth, where the truth is not 0."""
    value, truth = value.double(), truth.double()
    return ((value - truth).abs() / truth)[truth > 0].max().item()
