"""A head trained in a stack ends as it does alone; killed work goes on where it stopped; a broken loss is named."""

import contextlib
import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from bench.timing import megabytes
from lib.errors import InputError
from lib.geometry import Euclidean
from lib.training import stacks, sweep
from lib.training.fit import Schedule, fit_head
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe

SETTINGS = Settings(hidden=8)
LOSS = SETTINGS.loss
SCHEDULE = Schedule(epochs=4, batch_size=16, lr=1e-2)
# Images, input and output length: 4, 3, 4, 4, 2, 1 batches an epoch, last ones of 2, 11, 16, 1, 1 and 9 images.
SIZES = [(50, 6, 2), (43, 6, 2), (64, 6, 2), (49, 5, 5), (17, 6, 2), (9, 6, 2)]


def tasks(sizes: list[tuple[int, int, int]] = SIZES, dtype: torch.dtype = torch.float32) -> list[sweep.Task]:
    made = []
    for seed, (n, dim_in, dim_out) in enumerate(sizes):
        x = np.random.default_rng(seed).normal(size=(n, dim_in)).astype(str(dtype).removeprefix("torch."))
        head = SETTINGS.make(Recipe("PCA", dim_in, dim_out), seed).to(dtype)
        made.append(sweep.Task(f"head {seed}", head, x, np.arange(n) % 3, seed))
    return made


def weights(task: sweep.Task) -> Tensor:
    return torch.cat([value.flatten() for value in task.head.state_dict().values()])


def alone(todo: list[sweep.Task], schedule: Schedule = SCHEDULE) -> list[list[float]]:
    return [fit_head(task.head, LOSS, task.x, task.labels, schedule, seed=task.seed) for task in todo]


def calls(loss: Callable) -> tuple[Callable, list[Tensor]]:
    """The loss, spied on: the embeddings of every call."""
    seen = []

    def spy(h: Tensor, labels: Tensor, *, valid: Tensor) -> Tensor:
        seen.append(h.detach())
        return loss(len(seen) - 1, LOSS(h, labels, valid=valid))

    return spy, seen


# Together as alone


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-4)], ids=str)
def test_a_head_in_a_stack_ends_as_it_does_alone(dtype, tolerance):
    together, single = tasks(dtype=dtype), tasks(dtype=dtype)
    start = [weights(task).clone() for task in together]
    histories = sweep.fit(together, LOSS, SCHEDULE, device="cpu", workers=1)
    for i, history in enumerate(alone(single)):
        assert histories[i] == pytest.approx(history, rel=tolerance)
        torch.testing.assert_close(weights(together[i]), weights(single[i]), rtol=tolerance, atol=tolerance)
        assert (weights(together[i]) - start[i]).abs().max() > 0.01
        assert weights(together[i]).dtype == dtype


@pytest.mark.gpu
def test_a_gpu_ends_where_the_processor_does():
    on_gpu, on_cpu = tasks(), tasks()
    histories = [sweep.fit(todo, LOSS, SCHEDULE, device=name) for todo, name in ((on_gpu, "cuda"), (on_cpu, "cpu"))]
    for i in range(len(SIZES)):
        assert histories[0][i] == pytest.approx(histories[1][i], rel=1e-3)
        torch.testing.assert_close(weights(on_gpu[i]), weights(on_cpu[i]), rtol=1e-3, atol=1e-3)


# Which heads make a stack


def test_stacks_have_one_shape_and_epochs_of_similar_length():
    """Batches of 10; 8, 6, 5, 4 and 1 of them: 6 is three quarters of 8, 4 of 5 is more, 5 of 8 and 1 of 5 are less."""
    todo = tasks([(40, 6, 2), (80, 6, 2), (60, 3, 2), (10, 6, 2), (60, 6, 2), (50, 6, 2)])
    parts = list(sweep.chunks(todo, Schedule(batch_size=10), size=10))
    assert sorted(parts) == [[1, 4], [2], [3], [5, 0]]


@pytest.mark.parametrize(("n", "dims"), [(600, [(384, 384), (100, 32)]), (100, [(300, 8)])])
def test_the_estimate_of_memory_is_not_far_off(n, dims):
    """At least what is held at a time, and not three times as much."""
    sizes, settings = [(n, *ends) for ends in dims for _ in range(4)], Settings()
    heads = [settings.make(Recipe("PCA", *ends), 0) for _, *ends in sizes]
    todo = [replace(task, head=head) for task, head in zip(tasks(sizes), heads, strict=True)]
    schedule = Schedule(epochs=1)
    held = 2**20 * megabytes(lambda: stacks.train(todo, settings.loss, schedule, "cpu")) / len(todo)
    assert held < sweep.memory(todo, schedule) < 3 * held


def test_what_does_not_fit_into_memory_is_halved_and_ends_the_same(monkeypatch, caplog):
    train, sizes = sweep.train, []

    def small(part: list[sweep.Task], *rest) -> list[sweep.Trained]:
        sizes.append(len(part))
        if len(part) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return train(part, *rest)

    whole, halved = tasks(dtype=torch.float64), tasks(dtype=torch.float64)
    histories = sweep.fit(whole, LOSS, SCHEDULE, device="cpu", workers=1, padded=True)
    monkeypatch.setattr(sweep, "train", small)
    for history, other in zip(sweep.fit(halved, LOSS, SCHEDULE, workers=1, padded=True), histories, strict=True):
        assert history == pytest.approx(other, rel=1e-9)
    for one, other in zip(whole, halved, strict=True):
        torch.testing.assert_close(weights(one), weights(other), rtol=1e-9, atol=1e-9)
    assert sizes == [4, 2, 2, 1, 1] and caplog.messages == [
        "4 heads at once do not fit into the GPU's memory: they are trained in halves."
    ]


# Killed work


def test_on_a_gpu_each_head_is_kept_by_itself(tmp_path, monkeypatch):
    """Free memory decides which heads make a stack, so that another time it is another one."""
    fit, trained = sweep._fit, []
    monkeypatch.setattr(sweep, "_fit", lambda part, *rest: trained.append([t.name for t in part]) or fit(part, *rest))
    monkeypatch.setattr(sweep, "aside", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(sweep, "train", lambda part, loss, schedule, *_: stacks.train(part, loss, schedule, "cpu"))
    todo, code = tasks(), sweep._code(tasks(), LOSS)
    first = sweep._stored(todo[:3], LOSS, SCHEDULE, "cuda", tmp_path, code)
    again = sweep._stored([todo[5], *todo[2::-1]], LOSS, SCHEDULE, "cuda", tmp_path, code)
    assert trained == [["head 0", "head 1", "head 2"], ["head 5"]] and len(list(tmp_path.glob("*.pt"))) == 4
    for (state, history), (other, its) in zip(first, again[:0:-1], strict=True):
        assert history == its and all(torch.equal(state[name], other[name]) for name in state)


def test_work_that_broke_off_goes_on_where_it_stopped(tmp_path, monkeypatch):
    """It ends with the third stack half written; :mod:`tests.test_files` kills what writes a file at every step."""
    fit, trained, written, store = sweep._fit, [], [], tmp_path / "store"
    monkeypatch.setattr(sweep, "_fit", lambda todo, *rest: trained.append(todo[0].name) or fit(todo, *rest))
    uninterrupted, resumed, again = tasks(), tasks(), tasks()
    options = {"device": "cpu", "workers": 1, "chunk": 1}
    histories = sweep.fit(uninterrupted, LOSS, SCHEDULE, **options)
    in_order, write = trained.copy(), Path.write_bytes

    def dies(file: Path, data: bytes) -> None:
        written.append(file)
        write(file, data[:500] if len(written) == 3 else data)
        if len(written) == 3:
            raise KeyboardInterrupt

    with monkeypatch.context() as dying, pytest.raises(KeyboardInterrupt):
        dying.setattr(Path, "write_bytes", dies)
        sweep.fit(tasks(), LOSS, SCHEDULE, store=store, **options)
    assert len(list(store.glob("*.pt"))) == 2
    (store / f".{'0' * 64}.pt.abcdefgh.draft").mkdir()  # as one who was killed leaves it
    for todo, missing in ((resumed, in_order[2:]), (again, [])):
        trained.clear()
        assert sweep.fit(todo, LOSS, SCHEDULE, store=store, **options) == histories
        assert trained == missing and len(list(store.iterdir())) == len(in_order)  # nothing half-written is left
        assert all(torch.equal(weights(a), weights(b)) for a, b in zip(todo, uninterrupted, strict=True))


def test_finished_stacks_are_recognised_by_all_that_decides_them():
    todo = tasks()
    given = {"loss": LOSS, "schedule": SCHEDULE, "device": "cpu", "code": sweep._code(todo, LOSS)}
    others = [copy.deepcopy(todo) for _ in range(6)]
    others[1][-1].x[3, 2] += 1e-3
    others[2][-1].labels[0] += 1
    others[3][-1].head.layers[2].bias.data[1] += 1e-3
    others[4][-1].head.delta = 0.2
    others[5][-1] = replace(others[5][-1], seed=77)
    changes = {
        "loss": Settings(hidden=8, geometry=Euclidean()).loss,
        "schedule": replace(SCHEDULE, weight_decay=0.0),
        "device": "cuda",
        "code": given["code"].replace("lib/losses/hyper_dino.py ", "lib/losses/hyper_dino.py 0"),
    }
    keys = [sweep._key(several, **given) for several in others]
    keys += [sweep._key(todo, **given | {name: other}) for name, other in changes.items()]
    assert keys[0] == sweep._key(todo, **given) and len(set(keys)) == len(keys) == 10


# Losses that are not numbers


def test_a_finished_head_may_lose_its_mind():
    """The second head ends after 12 of 16 steps; what fills its place then may be anything and spoils nothing."""
    together, single = (tasks([(50, 6, 2), (43, 6, 2)], torch.float64) for _ in range(2))
    loss, seen = calls(lambda call, values: values * torch.tensor([1.0, np.nan if call > 11 else 1.0]))
    histories = sweep.fit(together, loss, SCHEDULE, device="cpu", workers=1)
    assert len(seen) == 16 and seen[-1][1].isnan().all() and seen[-1][0].isfinite().all()
    for i, history in enumerate(alone(single)):
        assert histories[i] == pytest.approx(history, rel=1e-10)
        torch.testing.assert_close(weights(together[i]), weights(single[i]), rtol=1e-10, atol=1e-10)


def test_labels_are_checked_before_they_move_to_a_device():
    with pytest.raises(InputError, match="labels run from -1 to 2"):
        sweep.Task("a head", torch.nn.Linear(2, 2), np.zeros((3, 2), np.float32), np.array([0, -1, 2]), 0)
