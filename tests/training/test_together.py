"""Two processes that share a batch have the loss and the gradients of one."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from lib import paths
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


def test_alone_the_work_is_done_here(monkeypatch):
    monkeypatch.delenv("PROCESSES", raising=False)
    mine = []
    assert launched(lambda value: mine.append(value) or len(mine), value=1) == 1 and mine == [1]


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


def never_done(folder: str) -> None:
    """Wait for the other process again and again, as in a training."""
    place = fabric("cpu")
    Path(folder, str(os.getpid())).touch()
    while True:
        place.barrier()
        time.sleep(0.1)


def started(folder: str) -> None:
    launched(never_done, folder)


@pytest.mark.slow
def test_processes_of_a_killed_run_end_with_it(tmp_path):
    script = "import sys; import test_together; test_together.started(*sys.argv[1:])"
    environment = os.environ | {"PROCESSES": "2", "OMP_NUM_THREADS": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parent), str(paths.ROOT)])
    command = [sys.executable, "-c", script, str(tmp_path)]
    run = subprocess.Popen(command, cwd=paths.ROOT, env=environment, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(begun := [int(file.name) for file in tmp_path.iterdir()]) < 2 and time.monotonic() < deadline:
        time.sleep(0.2)
    run.kill()
    run.wait()
    deadline = time.monotonic() + 20
    while (alive := [pid for pid in begun if Path(f"/proc/{pid}").exists()]) and time.monotonic() < deadline:
        time.sleep(0.2)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    assert len(begun) == 2 and not alive
