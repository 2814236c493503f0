"""Training every combination side by side ends where one head alone ends; sliders show what was trained."""

import copy
import re

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
    if step:  # 0 is before training
        loss, schedule = hyper_dino.ContrastiveLoss(PoincareBall(), *values), Schedule(step, batch_size=N, lr=0.02)
        fit_head(head, loss, X, LABELS, schedule, seed=5)
    expected = head(torch.from_numpy(X)).detach()
    torch.testing.assert_close(trained.at(*values, step), expected, atol=2e-4, rtol=0)


def test_the_head_is_left_as_it_was():
    head = untrained()
    before = copy.deepcopy(head.state_dict())
    grid.fit(head, X, LABELS, M0, ALPHA, NORM_WEIGHT, STEPS)
    assert all(torch.equal(value, before[name]) for name, value in head.state_dict().items())


def test_a_value_that_was_not_trained_is_refused(trained):
    assert torch.equal(trained.at(0.1 + 0.2, 0.4, 1e-3, 4), trained.at(0.3, 0.4, 1e-3, 4))  # but for rounding
    with pytest.raises(InputError, match=r"alpha = 0\.2 was not trained: choose one of 0, 0\.4"):
        trained.at(0.3, 0.2, 1e-3, 4)


def test_a_readout_belongs_to_the_embedding_of_its_values():
    """Pair by pair, at a position of the sliders that is not the first."""
    values = grid.M0, grid.ALPHA, grid.NORM_WEIGHT, (0, 30)
    board = grid.explore(grid.fit(untrained(), X, LABELS, *values, lr=0.01), ["a", "b", "c", "d"], step=30)
    before = board.text
    board.sliders["m0"].value = 1.5
    h = grid.fit(untrained(), X, LABELS, (1.5,), (0.1,), (1e-3,), (0, 30), lr=0.01).embeddings[0, 0, 0, 1]
    pairs = [(LABELS[i] == LABELS[j], PoincareBall().between(h[i], h[j]).item()) for i in range(N) for j in range(i)]
    mean = np.mean([distance for _, distance in pairs])
    same, other = ([distance for alike, distance in pairs if alike == wanted] for wanted in (True, False))
    margin = 1.5 + 0.1 * mean
    push = np.mean([max(0, margin - distance) for distance in other])
    norm = 1e-3 * h.norm(dim=-1).mean().item()
    expected = [margin, mean, np.mean(same), np.mean(other), np.mean(same), push, norm, np.mean(same) + push + norm]
    expected += [h.norm(dim=-1).max().item(), sum(distance < margin for distance in other), len(other)]
    assert numbers(board.text) == pytest.approx(expected, abs=2e-3)
    assert board.text != before


def numbers(text: str) -> list[float]:
    """Those that stand alone in a readout."""
    return [float(number) for number in re.findall(r"(?<=\s)\d+\.?\d*", text)]
