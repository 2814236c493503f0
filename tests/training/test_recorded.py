"""Recorded steps: warmed up, one recording for each shape, and a way on where none can be made."""

from unittest import mock

import pytest
import torch
from torch import Tensor

from lib.training import recorded
from lib.training.recorded import WARM, Recorded


class Counter:
    """A step that changes what stays at its place: the sum of all that came in."""

    def __init__(self, device: str = "cpu") -> None:
        self.total = torch.zeros(1, device=device)

    def __call__(self, x: Tensor) -> Tensor:
        self.total += x.sum()
        return self.total.detach()


def imitated(step, inputs):
    result = torch.zeros(1)
    return lambda: result.copy_(step(*inputs)), result


def test_what_is_recorded_is_repeated_with_new_numbers():
    step, record = Counter(), mock.Mock(side_effect=imitated)
    run = Recorded(step, record)
    results = []
    for i in range(8):
        results.append(run(torch.full((2,), float(i))))
        assert record.call_count == (i >= WARM)
    assert [value.item() for value in results[WARM:]] == [12, 20, 30, 42, 56]  # a later one changes none of them


def test_another_shape_is_recorded_anew():
    run = Recorded(Counter(), record := mock.Mock(side_effect=imitated))
    for n in (2,) * 5 + (3,) * 5:
        run(torch.ones(n))
    assert record.call_count == 2
    assert run(torch.ones(3)).item() == 2 * 5 + 3 * 6


def test_what_cannot_be_recorded_goes_on_step_by_step(caplog):
    def fails(step, inputs):
        raise RuntimeError("operation not permitted when stream is capturing")

    run = Recorded(Counter(), fails)
    assert [run(torch.ones(2)).item() for _ in range(6)] == [2, 4, 6, 8, 10, 12]
    assert [record.message for record in caplog.records] == [
        "Steps cannot be recorded as a CUDA graph and are taken one by one: "
        "operation not permitted when stream is capturing"
    ]


def test_too_little_memory_is_not_a_reason_to_go_on():
    def fails(step, inputs):
        raise torch.OutOfMemoryError("CUDA out of memory")

    run = Recorded(Counter(), fails)
    with pytest.raises(torch.OutOfMemoryError):
        [run(torch.ones(2)) for _ in range(WARM + 1)]


@pytest.mark.gpu
def test_a_graph_is_repeated_with_new_numbers():
    step = Counter("cuda")
    with recorded.aside("cuda"):
        run = Recorded(step)
        results = [run(torch.full((2,), float(i), device="cuda")) for i in range(8)]
        assert [value.item() for value in results[WARM:]] == [12, 20, 30, 42, 56] and run.replay is not None


@pytest.mark.gpu
def test_a_step_that_reads_a_number_is_taken_as_it_is(caplog):
    with recorded.aside("cuda"):
        run = Recorded(lambda x: x * x.sum().item())
        assert all(run(torch.ones(1, device="cuda")).item() == 1 for _ in range(6))
    assert "cannot be recorded" in caplog.text
