"""Two processes that share a batch have the loss and the gradients of one."""

import pytest
import torch
from torch import distributed, multiprocessing

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.heads.hyp_vit import ClippedProjection
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.training.together import add_gradients, gathered, launched, place, processes

LABELS = torch.arange(6).repeat_interleave(2)


def one_pass(part: slice) -> tuple[torch.Tensor, list[torch.Tensor]]:
    """The loss of a batch of which ``part`` is embedded here, and the gradients of all weights."""
    head = ClippedProjection(5, 4, geometry=PoincareBall(1.0), generator=torch.Generator().manual_seed(0)).double()
    x = torch.randn(12, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    value = PairwiseCrossEntropy(PoincareBall(1.0))(gathered(head(x[part])), LABELS)
    value.backward()
    add_gradients(head.parameters())
    return value.detach(), [weight.grad for weight in head.parameters()]


def process(rank: int, meeting: str, results: str) -> None:
    distributed.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    assert place() == (rank, 2)
    torch.save(one_pass(slice(6 * rank, 6 * rank + 6)), f"{results}/{rank}.pt")
    distributed.destroy_process_group()


def test_two_processes_have_the_loss_and_the_gradients_of_one(tmp_path):
    arguments = str(tmp_path / "meeting"), str(tmp_path)
    multiprocessing.start_processes(process, arguments, nprocs=2, start_method="spawn")  # a fork may wait for threads
    value, gradients = one_pass(slice(None))
    for rank in range(2):
        theirs, shared = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(theirs, value, rtol=1e-12, atol=0)
        for ours, other in zip(gradients, shared, strict=True):
            assert ours.abs().max() > 0
            torch.testing.assert_close(other, ours, rtol=1e-10, atol=1e-12)


def test_alone_nothing_changes():
    z = torch.randn(3, 2)
    assert place() == (0, 1) and gathered(z) is z


def test_alone_the_work_is_done_here(monkeypatch):
    monkeypatch.delenv("PROCESSES", raising=False)
    mine = []
    assert launched(lambda value: mine.append(value) or len(mine), value=1) == 1 and mine == [1]


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", ""])
def test_a_number_of_processes_without_meaning_is_refused(monkeypatch, text):
    monkeypatch.setenv("PROCESSES", text)
    with pytest.raises(InputError, match=f"PROCESSES={text}: it has to be a number of processes"):
        processes()
