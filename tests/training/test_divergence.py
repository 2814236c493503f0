"""A training that runs away ends in words, in every loop, whatever its loss says."""

import numpy as np
import pytest
import torch

from lib.datasets import tissue
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads import HyperbolicMapper, PrototypeEncoder
from lib.losses.hyper_dino import ContrastiveLoss
from lib.papers.hyper_dino.mapper import grid
from lib.training import dino, distillation, hyper_dino, sweep
from lib.training.divergence import GROWTH, Diverged, Watch
from lib.training.episodes import Episodes
from lib.training.fit import Schedule, fit_head
from lib.training.recipes import Recipe
from lib.training.splits import Split

FAR = 1e9
N, DIM = 48, 6
LABELS = np.arange(N) % 3
GROUPS = np.arange(N) % 8
X = (np.random.default_rng(0).normal(size=(N, DIM)) + LABELS[:, None]).astype(np.float32)
ONCE, LONGER = Schedule(epochs=1, batch_size=N, lr=FAR), Schedule(epochs=3, batch_size=16, lr=FAR)
EPISODES = Episodes(epochs=2, batch_size=16, lr=FAR, k=2)
SPACES = (Euclidean(), Sphere(), PoincareBall(1.0))
SPLIT = Split(0, np.arange(32), np.arange(32, N), seed=0)
SCALED = Recipe("scaled", DIM, 4)
every_space = pytest.mark.parametrize("space", SPACES, ids=lambda space: space.name)


def settings(space) -> hyper_dino.Settings:
    return hyper_dino.Settings(hidden=16, geometry=space)


def loss(space) -> ContrastiveLoss:
    return settings(space).loss


def story(caught) -> None:
    """Step, norms, and a last good state that is one."""
    assert "at step" in str(caught.value) and "norms of the last good state: " in str(caught.value)
    state = caught.value.last_good
    assert state and all(value.isfinite().all() and value.norm() < 1e3 for value in state.values())


@every_space
@pytest.mark.parametrize("schedule", [ONCE, LONGER], ids=["one step", "more"])
def test_one_head_and_a_stack(space, schedule, tmp_path):
    tasks = [sweep.Task(f"h{i}", settings(space).make(Recipe("PCA", DIM, 2), i), X, LABELS, i) for i in range(3)]
    with pytest.raises(Diverged, match="the loss of h0 is") as caught:
        sweep.fit(tasks, loss(space), schedule, store=tmp_path / "store", device="cpu", workers=1)
    story(caught)
    assert not list(tmp_path.rglob("*.pt"))
    with pytest.raises(Diverged, match="the loss of the head is") as caught:
        fit_head(tasks[0].head, loss(space), X, LABELS, schedule, seed=0)
    story(caught)


@every_space
def test_the_grid(space):
    head = HyperbolicMapper(DIM, 2, hidden=16, geometry=space, generator=torch.Generator().manual_seed(0))
    with pytest.raises(Diverged, match=r"the head with m0 0\.3, alpha 0, norm_weight 0\.5") as caught:
        grid.fit(head, X, LABELS, (0.3, 0.9), (0.0,), (0.5,), (0, 5), lr=FAR)
    story(caught)


@pytest.mark.parametrize(("bf16", "steps"), [(False, 1), (True, 3)])
def test_self_distillation(bf16, steps):
    rows = tissue.sample(n_tiles=6, n_patients=3, seed=5, n_duplicates=0).to_dict("records")
    pixels = torch.stack([torch.from_numpy(tissue.draw(row)).permute(2, 0, 1) for row in rows])
    chosen = distillation.Settings(steps=steps, batch_size=3, prototypes=16, local_crops=1, lr=(FAR, 1e-6))
    with pytest.raises(Diverged, match="self-distillation") as caught:
        dino.pretrain(pixels, chosen, seed=0, device="cpu", bf16=bf16, store=None)
    story(caught)
    assert caught.value.step <= 1


# What cannot be seen in the loss


@every_space
def test_a_head_whose_output_overflows_answers_nan_and_others_keep_theirs(space):
    x = torch.randn(5, DIM, generator=torch.Generator().manual_seed(0))
    for head in (HyperbolicMapper(DIM, 4, geometry=space), PrototypeEncoder(DIM, 4, geometry=space)):
        before = head(x)
        far = x.clone()
        far[2] *= 1e22
        after = head(far)
        assert after[2].isnan().all() and torch.equal(after[[0, 1, 3, 4]], before[[0, 1, 3, 4]])


@pytest.mark.parametrize("start", [0.0, 0.5, 8.0])
def test_weights_may_grow_until_the_start_is_lost_in_rounding(start):
    weights = {"w": torch.tensor([[1.0], [start]])}
    watch = Watch(weights, ["other", "mine"], [9, 9])
    watch.add(torch.ones(2))
    limit = GROWTH * max(1.0, start)
    weights["w"][1] = 0.9 * limit
    watch.check()
    weights["w"][1] = 1.1 * limit
    with pytest.raises(Diverged, match="loss of mine is 1 at step 0, but its weights") as caught:
        watch.check()
    assert caught.value.last_good["w"].item() == pytest.approx(0.9 * limit)
