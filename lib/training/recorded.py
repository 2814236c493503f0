"""Steps of one shape recorded as a CUDA graph: hundreds of small kernels, whose launches take longer than their work.

Where numbers go in and come out, and all that a step changes, has to stay at its place in memory, and a step must not
wait for a number: what it does may not depend on one.
"""

import logging
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache

import torch
from torch import Tensor

log = logging.getLogger(__name__)

WARM = 3
"""Steps that are taken as they come before one is recorded, so that libraries and the optimiser have what they need."""

Step = Callable[..., Tensor]
Record = Callable[[Step, list[Tensor]], tuple[Callable[[], None], Tensor]]
"""Takes a step and its inputs; returns what repeats it with the numbers that are there by then, and its result."""


def captured(step: Step, inputs: list[Tensor]) -> tuple[Callable[[], None], Tensor]:
    """A :data:`Record` on a GPU: ``step(*inputs)`` as a CUDA graph. The step itself is not taken."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        result = step(*inputs)
    return graph.replay, result


def aside(device: str) -> AbstractContextManager:
    """A stream of its own, as recording needs, for all that is done in it; nothing on a CPU."""
    return nullcontext() if device == "cpu" else torch.cuda.stream(_stream())


@cache
def _stream() -> torch.cuda.Stream:
    """One for all stacks: memory that one of them has left is free for the next on the same stream alone."""
    return torch.cuda.Stream()


class Recorded:
    """A ``step`` that is recorded after :data:`WARM` calls, and again where the shapes of its inputs have changed.

    What cannot be recorded is reported, and goes on step by step.
    """

    def __init__(self, step: Step, record: Record = captured) -> None:
        self.step, self.record = step, record
        self.inputs: list[Tensor] = []
        self.calls, self.replay, self.result = 0, None, None

    def __call__(self, *inputs: Tensor) -> Tensor:
        if [x.shape for x in inputs] != [x.shape for x in self.inputs]:
            self.inputs, self.calls, self.replay = [x.clone() for x in inputs], 0, None
        for place, x in zip(self.inputs, inputs, strict=True):
            place.copy_(x)
        self.calls += 1
        if self.calls == WARM + 1:
            self._start()
        if self.replay is None:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
                return self.step(*self.inputs)
        self.replay()
        return self.result.clone()

    def _start(self) -> None:
        try:
            self.replay, self.result = self.record(self.step, self.inputs)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            log.warning("Steps cannot be recorded as a CUDA graph and are taken one by one: %s", error)
