"""Every slider of the loss shows the embedding that was trained with its values."""

import re

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.heads import HyperbolicMapper
from lib.losses import hyper_dino
from lib.papers.hyper_dino.mapper import grid
from lib.papers.hyper_dino.mapper import sliders as contrastive
from lib.widgets.board import Board

LABELS = np.repeat(np.arange(3), 4)
X = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32) + 2 * np.eye(3, 5, dtype=np.float32)[LABELS]
START = {"m0": 0.5, "alpha": 0.1, "norm_weight": 1e-3, "step": 30}


@pytest.fixture(scope="module")
def trained() -> grid.Grid:
    head = HyperbolicMapper(5, 2, hidden=8, generator=torch.Generator().manual_seed(0))
    values = contrastive.M0, contrastive.ALPHA, contrastive.NORM_WEIGHT
    return grid.fit(head, X, LABELS, *values, contrastive.STEPS, lr=0.01)


@pytest.fixture
def board(trained) -> Board:
    return contrastive.explore(trained, ["fat", "gland", "muscle"], step=30)


def shown(text: str) -> dict[str, list[float]]:
    rows = (re.match(r"\s*(.*?)\s{2,}(\d.*)", row) for row in text.splitlines() if row)
    return {row[1]: [float(number) for number in re.findall(r"\d+\.?\d*", row[2])] for row in rows}


def by_loops(h: torch.Tensor, m0: float, alpha: float, norm_weight: float) -> dict[str, list[float]]:
    """The readout's numbers, pair by pair."""
    same, other = [], []
    for i in range(12):
        for j in range(i):
            (same if LABELS[i] == LABELS[j] else other).append(PoincareBall().between(h[i], h[j]).item())
    mean = (sum(same) + sum(other)) / 66
    margin = m0 + alpha * mean
    pull, push = sum(same) / len(same), sum(max(0, margin - d) for d in other) / len(other)
    norms = h.norm(dim=-1).tolist()
    norm = norm_weight * sum(norms) / 12
    return {
        "margin m": [margin],
        "mean distance": [mean],
        "one class": [pull],
        "two classes": [sum(other) / len(other)],
        "still pushed": [sum(d < margin for d in other), len(other)],
        "L_pos  (pull)": [pull],
        "L_neg  (push)": [push],
        "R_norm": [norm],
        "loss": [pull + push + norm],
        "largest norm": [max(norms)],
    }


MOVES = [{}, {"m0": 1.5}, {"alpha": 0.7}, {"norm_weight": 1.0}, {"step": 0}, {"step": 120}, {"m0": 0.0, "alpha": 0.0}]


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_the_readout_belongs_to_the_embedding_of_these_values(trained, board, move):
    before, picture = board.readout.value, board.picture.value
    for name, value in move.items():
        board.sliders[name].value = value
    m0, alpha, norm_weight, step = (START | move).values()
    index = (contrastive.M0.index(m0), contrastive.ALPHA.index(alpha), contrastive.NORM_WEIGHT.index(norm_weight))
    expected = by_loops(trained.embeddings[index][contrastive.STEPS.index(step)], m0, alpha, norm_weight)
    found = shown(board.text)
    assert found.keys() == expected.keys()
    for name, numbers in expected.items():
        assert found[name] == pytest.approx(numbers, abs=6e-5), name
    assert (board.readout.value != before) == (board.picture.value != picture) == bool(move)


def test_every_position_of_every_slider_was_trained(trained, board):
    trained_with = {
        "m0": trained.m0,
        "alpha": trained.alpha,
        "norm_weight": trained.norm_weight,
        "step": trained.steps,
    }
    for name, values in trained_with.items():
        assert board.sliders[name].values == values


def test_the_published_values_are_where_the_sliders_start(board):
    loss = hyper_dino.contrastive.__kwdefaults__
    assert {name: board.values[name] for name in ("m0", "alpha", "norm_weight")} == {
        name: loss[name] for name in ("m0", "alpha", "norm_weight")
    }
