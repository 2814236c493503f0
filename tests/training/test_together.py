"""Two processes that share a batch have the loss and the gradients of one."""

import os
import signal
import time

import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.training import together
from lib.training.together import fabric, launched, processes

LABELS = torch.arange(6).repeat_interleave(2)


def one_pass(given: torch.Tensor) -> dict[str, torch.Tensor]:
    """The loss of a batch of which the own part is embedded here, the gradients of all weights, and their norm."""
    place = fabric("cpu")
    given += 1
    head = ClippedProjection(5, 4, geometry=PoincareBall(1.0), generator=torch.Generator().manual_seed(0)).double()
    shared, optimiser = place.setup(head, torch.optim.SGD(head.parameters()))
    x = torch.randn(12, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    own = x.chunk(place.world_size)[place.global_rank]
    value = PairwiseCrossEntropy(PoincareBall(1.0))(
        place.all_gather(shared(own), sync_grads=True).flatten(end_dim=-2), LABELS
    )
    place.backward(value)
    found = {name: weight.grad.clone() for name, weight in head.named_parameters()}
    norm = place.clip_gradients(shared, optimiser, max_norm=1.0)
    place.barrier()
    return found | {"loss": value.detach(), "norm": norm, "given": given, "processes": torch.tensor(place.world_size)}


@pytest.mark.slow
def test_two_processes_have_the_loss_and_the_gradients_of_one(monkeypatch):
    monkeypatch.setenv("PROCESSES", "2")
    given = torch.zeros(1)
    shared = launched(one_pass, given)
    assert given == 0  # what was handed in is not shared by the processes
    alone = one_pass(given)
    assert (shared.pop("processes"), alone.pop("processes")) == (2, 1)
    for name, ours in alone.items():
        assert ours.abs().max() > 0
        torch.testing.assert_close(shared[name], ours, rtol=1e-10, atol=1e-12, msg=name)


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


def killed_in(rank: str, waiting: bool) -> None:
    """One process is killed, as the kernel does where memory ends; the other one waits for it, or just works on."""
    place = fabric("cpu")
    if os.environ["RANK"] == rank:
        os.kill(os.getpid(), signal.SIGKILL)
    place.barrier() if waiting else time.sleep(60)


@pytest.mark.slow
@pytest.mark.parametrize(("rank", "waiting"), [("0", False), ("1", True)])
def test_a_killed_process_is_named_with_its_likely_cause(monkeypatch, rank, waiting):
    monkeypatch.setenv("PROCESSES", "2")
    with pytest.raises(InputError, match=r"was ended (by signal 9|from outside), most likely for want of memory"):
        launched(killed_in, rank, waiting)


@pytest.mark.parametrize(
    ("exitcode", "first", "kind", "message"),
    [
        (
            -9,
            None,
            InputError,
            r"by signal 9, most likely for want of memory: take fewer processes \(PROCESSES\)",
        ),
        (1, RuntimeError("gloo: Connection closed by peer"), InputError, "ended from outside, most likely for want of"),
        (-15, ValueError("labels"), ValueError, "labels"),
        (3, None, InputError, "ended with status 3 and without a word"),
    ],
)
def test_the_cause_is_named_and_not_what_followed_from_it(exitcode, first, kind, message):
    with pytest.raises(kind, match=message):
        raise together._cause(exitcode, first)
