"""Heads of unlike widths in one stack: each ends as it does alone, and what fills it up stays zero."""

from collections.abc import Callable
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from lib import checks
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads import ClippedProjection, HyperbolicMapper, PrototypeEncoder
from lib.heads.hashing import HashHead
from lib.heads.label_tree import ProjectionHead
from lib.losses import hashing
from lib.losses.acir import StructureAware
from lib.losses.hyp_vit import PairwiseCrossEntropy
from lib.losses.hyper_dino import ContrastiveLoss
from lib.losses.linear_prototypes import NAMES, Comparison, EpisodeLoss
from lib.training import recorded, stacks, sweep
from lib.training.by_class import ByClass
from lib.training.classifier import CrossEntropy
from lib.training.divergence import Diverged
from lib.training.episodes import Episodes
from lib.training.fit import Schedule, fit_head
from lib.training.hashing import Even

PLAIN = Schedule(epochs=4, batch_size=16, lr=1e-2, weight_decay=1e-2)
SPACES = (PoincareBall(1.0), Euclidean(), Sphere())
SIZES = [(50, 6, 2, 8), (43, 9, 5, 5), (64, 70, 66, 8), (49, 4, 4, 11)]
"""Images, lengths of input and embedding, hidden width: 4, 3, 4 and 4 batches an epoch, the last ones unequal."""
ALIKE = [(50, 6, 4, 8)] * 3
"""Of one shape, with a number for each class and each bit."""

Make = Callable[[int, int, int, torch.Generator], nn.Module]


def mapper(space) -> Make:
    return lambda a, b, hidden, random: HyperbolicMapper(a, b, hidden=hidden, geometry=space, generator=random)


def clipped(space) -> Make:
    return lambda a, b, _, random: ClippedProjection(a, b, geometry=space, clip_radius=0.8, generator=random)


def encoder(space, deep: bool) -> Make:
    return lambda a, b, hidden, random: PrototypeEncoder(a, b, hidden=deep * hidden, geometry=space, generator=random)


def hash_head(kind: str = "linear") -> Make:
    return lambda a, b, hidden, random: HashHead(a, b, kind=kind, hidden=hidden, generator=random)


PADDED = {
    **{f"mapper, {s.name}": (mapper(s), ContrastiveLoss(s), PLAIN) for s in SPACES},
    **{
        f"clipped, {s.name}": (
            clipped(s),
            PairwiseCrossEntropy(s, samples=6, cosine=s == Sphere()),
            ByClass(epochs=4, batch_size=18, samples=6, lr=1e-2),
        )
        for s in SPACES
    },
    **{
        f"prototypes, {name}, {'deep' if deep else 'linear'}": (
            encoder(Comparison(name).geometry, deep),
            EpisodeLoss(3, 3, Comparison(name)),
            Episodes(epochs=3, batch_size=16, k=3, lr=1e-2),
        )
        for name in NAMES
        for deep in (True, False)
    },
}
"""Heads and losses that zeros do no harm, and a schedule."""

UNPADDED = {
    "classifier": (encoder(Euclidean(), False), CrossEntropy(), PLAIN),
    **{f"ACIR, {kind}": (hash_head(kind), StructureAware(), Even(3, 16, 1e-2)) for kind in ("linear", "mlp", "kan")},
    **{
        type(loss).__name__: (hash_head(), loss, Even(3, 16, 1e-2))
        for loss in (hashing.DCH(), hashing.DBDH(), hashing.QSMIH(), hashing.Triplet(), hashing.CSQ(3, 4))
    },
}
each_padded = pytest.mark.parametrize("case", PADDED.values(), ids=PADDED)
each = pytest.mark.parametrize("case", (PADDED | UNPADDED).values(), ids=PADDED | UNPADDED)


def tasks(make: Make, sizes=SIZES, dtype: torch.dtype = torch.float64) -> list[stacks.Task]:
    made = []
    for seed, (n, a, b, hidden) in enumerate(sizes):
        x = np.random.default_rng(seed).normal(size=(n, a)).astype(str(dtype).removeprefix("torch."))
        head = make(a, b, hidden, torch.Generator().manual_seed(seed)).to(dtype)
        made.append(stacks.Task(f"head {seed}", head, x, np.arange(n) % 3, seed, stack=seed))
    return made


def same(found: list[stacks.Trained], others: list[stacks.Trained], tolerance: float) -> None:
    for (state, history), (other, its_history) in zip(found, others, strict=True):
        assert history == pytest.approx(its_history, rel=tolerance)
        assert state.keys() == other.keys()
        for name, value in state.items():
            torch.testing.assert_close(value, other[name], rtol=tolerance, atol=tolerance)


def alone(todo: list[stacks.Task], loss: stacks.Loss, schedule: Schedule) -> list[stacks.Trained]:
    histories = [fit_head(task.head, loss, task.x, task.labels, schedule, seed=task.seed) for task in todo]
    return [(dict(task.head.state_dict()), history) for task, history in zip(todo, histories, strict=True)]


# Padded


@each_padded
def test_a_padded_head_ends_as_it_does_alone(case, monkeypatch):
    make, loss, schedule = case
    fit, parts = sweep._fit, []
    monkeypatch.setattr(sweep, "_fit", lambda part, *rest: parts.append(len(part)) or fit(part, *rest))
    together, single = tasks(make), tasks(make)
    histories = sweep.fit(together, loss, schedule, device="cpu", workers=1, padded=True)
    found = [(dict(task.head.state_dict()), history) for task, history in zip(together, histories, strict=True)]
    same(found, alone(single, loss, schedule), 1e-9)
    in_the_ball = isinstance(together[0].head, PrototypeEncoder) and isinstance(together[0].head.geometry, PoincareBall)
    assert parts == ([1] * len(SIZES) if in_the_ball else [len(SIZES)])


@each_padded
def test_zeros_stay_zeros_and_come_out_behind_the_own_embedding(case, monkeypatch):
    make, loss, schedule = case
    seen, watch = [], stacks.Watch
    monkeypatch.setattr(stacks, "Watch", lambda weights, *rest: seen.append(weights) or watch(weights, *rest))
    todo = [task for task in tasks(make) if not isinstance(task.head, PrototypeEncoder)] or tasks(make, SIZES[:1] * 2)
    before = [task.head(torch.from_numpy(task.x)) for task in todo]
    x, first, _ = stacks._images(todo, "cpu")
    found = stacks.train(todo, loss, schedule, "cpu")
    (wide,) = seen
    joined = stacks._joined([task.head.state_dict() for task in todo], stacks.widest(t.head for t in todo), "cpu")
    for row, ((state, _), own) in enumerate(zip(found, before, strict=True)):
        for name, value in state.items():
            padded = wide[name][row].detach().clone()
            padded[tuple(map(slice, value.shape))] = 0
            assert not padded.any(), name
        weights = {name: value[row] for name, value in joined.items()}
        h = torch.func.functional_call(todo[0].head, weights, (x[first[row] :][: len(own)],))
        torch.testing.assert_close(h[:, : own.shape[1]], own)
        assert not h[:, own.shape[1] :].any()


def test_heads_that_share_their_features_have_them_once():
    """Both learn what they learn with features of their own, and so does a third with others."""
    apart, shared = (tasks(mapper(Euclidean()), [(50, 6, 2, 8), (50, 6, 4, 8), (43, 6, 2, 8)]) for _ in range(2))
    apart[1] = replace(apart[1], x=apart[0].x.copy())
    shared[1] = replace(shared[1], x=shared[0].x)
    assert [len(stacks._images(todo, "cpu")[0]) for todo in (apart, shared)] == [50 + 50 + 43, 50 + 43]
    found, others = (stacks.train(todo, ContrastiveLoss(Euclidean()), PLAIN, "cpu") for todo in (apart, shared))
    same(found, others, 0)


def test_a_padded_head_that_runs_away_is_reported_with_its_own_weights():
    todo = tasks(mapper(Euclidean()), SIZES[:2])
    with pytest.raises(Diverged, match="the loss of head 1 is") as caught:
        todo[1].x[3] = np.nan
        stacks.train(todo, ContrastiveLoss(Euclidean()), PLAIN, "cpu")
    assert {n: v.shape for n, v in caught.value.last_good.items()} == {n: v.shape for n, v in widths(todo[1].head)}


def widths(head: nn.Module) -> list[tuple[str, Tensor]]:
    return list(head.state_dict().items())


@pytest.mark.parametrize(
    ("heads", "loss", "together"),
    [
        ([mapper(PoincareBall()), mapper(PoincareBall())], ContrastiveLoss(), True),
        ([mapper(PoincareBall()), mapper(PoincareBall(0.5))], ContrastiveLoss(), False),
        ([mapper(Sphere()), clipped(Sphere())], ContrastiveLoss(), False),
        ([encoder(Euclidean(), True)] * 2, EpisodeLoss(3, 3), True),
        ([encoder(Euclidean(), True), encoder(Euclidean(), False)], EpisodeLoss(3, 3), False),
        ([encoder(PoincareBall(), True)] * 2, EpisodeLoss(3, 3), False),
        ([encoder(Euclidean(), False)] * 2, CrossEntropy(), False),
        ([hash_head()] * 2, StructureAware(), False),
        ([lambda a, b, hidden, random: ProjectionHead(a, b, hidden=hidden)] * 2, ContrastiveLoss(), False),
    ],
    ids=["widths", "c", "class", "prototypes", "depth", "ball, by length", "logits", "codes", "batch norm"],
)
def test_what_may_differ_in_a_padded_stack(heads, loss, together):
    todo = [tasks(make)[i] for i, make in enumerate(heads)]
    kinds = {stacks.kind(task, loss, padded=True) for task in todo}
    assert (len(kinds) == 1) == together
    assert len({stacks.kind(task, loss, padded=False) for task in todo}) == 2


# Recorded


def imitated(step: recorded.Step, inputs: list[Tensor]) -> tuple[Callable[[], None], Tensor]:
    """As a CUDA graph does it: nothing is done at first, and each repetition writes to one place."""
    result = torch.zeros(len(inputs[0]), dtype=torch.float64)
    return lambda: result.copy_(step(*inputs)), result


@each
def test_recorded_steps_of_one_shape_are_those_that_come(case):
    make, loss, schedule = case
    sizes = [(n, 6, 4, 8) for n, *_ in SIZES]
    record = mock.Mock(side_effect=imitated)
    found = stacks.train(tasks(make, sizes), loss, schedule, "cpu", record)
    assert record.call_count == 1
    same(found, stacks.train(tasks(make, sizes), loss, schedule, "cpu"), 1e-9)


class Unread(TorchDispatchMode):
    """Raises where a number is read, or copied from Python's: on a GPU both wait for it, and cannot be recorded."""

    WORDS = ("_local_scalar_dense", "nonzero", "masked_select", "unique", "lift_fresh", "equal.default")

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        masks = (
            [i for i in args[1] if i is not None and i.dtype == torch.bool] if "index.Tensor" in str(operation) else []
        )
        assert not masks and not any(word in str(operation) for word in self.WORDS), f"{operation} reads numbers"
        return operation(*args, **(kwargs or {}))


@each
def test_a_step_that_is_recorded_reads_no_number(case, monkeypatch):
    make, loss, schedule = case
    assert loss.recordable

    def record(step: recorded.Step, inputs: list[Tensor]) -> tuple[Callable[[], None], Tensor]:
        monkeypatch.setattr(checks, "at_hand", lambda numbers: False)
        with Unread():
            step(*inputs)
        monkeypatch.undo()
        return imitated(step, inputs)

    stacks.train(tasks(make, [(n, 6, 4, 8) for n, *_ in SIZES]), loss, schedule, "cpu", record)


@pytest.mark.gpu
@each
def test_a_graph_takes_the_steps_that_are_taken_one_by_one(case, caplog):
    make, loss, schedule = case
    sizes = SIZES if case in PADDED.values() and not isinstance(tasks(make)[0].head, PrototypeEncoder) else ALIKE
    record = mock.Mock(side_effect=recorded.captured)
    with recorded.aside("cuda"):
        found = stacks.train(tasks(make, sizes), loss, schedule, "cuda", record)
        one_by_one = stacks.train(tasks(make, sizes), loss, schedule, "cuda")
    assert record.call_count == 1 and not caplog.records
    same(found, one_by_one, 1e-7)
    same(found, stacks.train(tasks(make, sizes), loss, schedule, "cpu"), 1e-7)
