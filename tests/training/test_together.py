"""Processes that share a training: how many they are, what they compute in, and what is said where one is killed.

That they train what one process does is tested with the trainings: :mod:`test_two_views`, :mod:`test_finetune`.
"""

import os
import signal
import time

import pytest
import torch

from lib.errors import InputError
from lib.training import together
from lib.training.together import fabric, launched, processes


def test_on_a_processor_nothing_is_rounded_to_bfloat16_unless_asked():
    x = torch.full((1, 1), 1 + 2**-12)
    for asked, exact in ((None, True), (False, True), (True, False)):
        place = fabric("cpu", asked)
        layer = place.setup_module(torch.nn.Linear(1, 1, bias=False).requires_grad_(False))
        torch.nn.init.ones_(layer.weight)
        assert torch.equal(layer(x), x) == exact


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_number_of_processes_without_meaning_is_refused(monkeypatch, text):
    monkeypatch.setenv("PROCESSES", text)
    with pytest.raises(InputError, match=f"PROCESSES={text}: it has to be a number of processes"):
        processes()


def killed_in(rank: str, waiting: bool, given: torch.Tensor) -> None:
    """One process is killed, as the kernel does where memory ends; the other one waits for it, or just works on."""
    place = fabric("cpu")
    given += 1
    if os.environ["RANK"] == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    place.barrier() if waiting else time.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "waiting"), [("0", False), ("1", True)])
def test_a_killed_process_is_named_with_its_likely_cause(monkeypatch, rank, waiting):
    monkeypatch.setenv("PROCESSES", "2")
    given = torch.zeros(1)
    with pytest.raises(InputError, match=r"was ended (by signal 9|from outside), most likely for want of memory"):
        launched(killed_in, rank, waiting, given)
    assert given == 0  # what was handed in is not shared by the processes


@pytest.mark.parametrize(
    ("exitcode", "first", "kind", "message"),
    [
        (-9, None, InputError, r"by signal 9, most likely for want of memory: take fewer processes \(PROCESSES\)"),
        (1, RuntimeError("gloo: Connection closed by peer"), InputError, "ended from outside, most likely for want of"),
        (-15, ValueError("labels"), ValueError, "labels"),
        (3, None, InputError, "ended with status 3 and without a word"),
    ],
)
def test_the_cause_is_named_and_not_what_followed_from_it(exitcode, first, kind, message):
    with pytest.raises(kind, match=message):
        raise together._cause(exitcode, first)
