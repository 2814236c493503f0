"""Training every combination side by side ends where training one head alone ends."""

import copy

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.heads import HyperbolicMapper
from lib.losses import hyper_dino
from lib.papers.hyper_dino.mapper import grid
from lib.training.fit import Schedule, fit_head

N, DIM = 24, 6
RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 6)
X = (RNG.normal(size=(N, DIM)) + RNG.normal(size=(4, DIM))[LABELS]).astype(np.float32)
M0, ALPHA, NORM_WEIGHT, STEPS = (0.3, 0.9), (0.0, 0.4), (1e-3, 0.5), (0, 4, 12)


def untrained() -> HyperbolicMapper:
    return HyperbolicMapper(DIM, 2, hidden=16, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def trained() -> grid.Grid:
    return grid.fit(untrained(), X, LABELS, M0, ALPHA, NORM_WEIGHT, STEPS, lr=0.02)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("values", [(0.3, 0.4, 1e-3), (0.9, 0.0, 0.5), (0.9, 0.4, 1e-3)])
def test_every_combination_ends_as_one_head_alone(trained, values, step):
    head = untrained()
    names = dict(zip(("m0", "alpha", "norm_weight"), values, strict=True))

    def loss(h, y):
        return hyper_dino.contrastive(h, y, PoincareBall(), **names).total

    if step:  # 0 is before training
        fit_head(head, loss, X, LABELS, Schedule(step, batch_size=N, lr=0.02), seed=5)
    expected = head(torch.from_numpy(X)).detach()
    torch.testing.assert_close(trained.at(*values, step), expected, atol=2e-4, rtol=0)


def test_combinations_differ_after_training_and_not_before(trained):
    first, last = trained.at(0.3, 0.0, 1e-3, 12), trained.at(0.9, 0.4, 1e-3, 12)
    assert (first - last).abs().max() > 0.01
    assert torch.equal(trained.at(0.3, 0.0, 1e-3, 0), trained.at(0.9, 0.4, 0.5, 0))


def test_the_head_and_the_threads_are_left_as_they_were():
    head, threads = untrained(), torch.get_num_threads()
    before = copy.deepcopy(head.state_dict())
    grid.fit(head, X, LABELS, M0, ALPHA, NORM_WEIGHT, STEPS)
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())
    assert torch.get_num_threads() == threads


def test_two_runs_are_equal(trained):
    again = grid.fit(untrained(), X, LABELS, M0, ALPHA, NORM_WEIGHT, STEPS, lr=0.02)
    assert torch.equal(again.embeddings, trained.embeddings)


def test_a_value_that_adds_up_with_rounding_is_found(trained):
    assert torch.equal(trained.at(0.1 + 0.2, 0.4, 1e-3, 4), trained.at(0.3, 0.4, 1e-3, 4))


def test_a_value_that_was_not_trained_is_refused(trained):
    with pytest.raises(InputError, match=r"alpha = 0\.2 was not trained: choose one of 0, 0\.4"):
        trained.at(0.3, 0.2, 1e-3, 4)
