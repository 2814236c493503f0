"""The plane of notebook 40: placed, divided, and drawn."""

import re

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.losses.linear_prototypes import NAMES
from lib.papers.linear_prototypes import plane
from lib.training.episodes import Episodes
from lib.widgets.board import Board

RANDOM = torch.Generator().manual_seed(0)
LABELS = torch.arange(24) % 3
CENTRES = torch.tensor([[0.6, 0.0], [-0.4, 0.5], [-0.3, -0.6]])
V = CENTRES[LABELS] + 0.2 * torch.randn(24, 2, generator=RANDOM)
CODES = torch.arange(48) % 4
W = 0.7 * torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[CODES]
W = W + 0.25 * torch.randn(48, 2, generator=torch.Generator().manual_seed(0))
CROWDED = torch.arange(30) % 3
ROW = torch.tensor([[0.2, 0.0], [0.8, 0.0], [0.0, 0.6]])[CROWDED]
ROW = ROW + 0.02 * torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
CLASSES = ["fat", "gland", "muscle", "stroma"]
QUERY = 6


@pytest.mark.parametrize("c", [0.0, 1.0, 2.0])
def test_chances_are_those_of_a_loop_over_the_prototypes(c):
    order = plane.entrance(24, query=4, seed=1)
    assert sorted([*order.tolist(), 4]) == list(range(24))  # the query is not among them
    found = plane.place(V, LABELS, order, 3, 0.5, c)
    ball = PoincareBall(c)
    h = ball.exp0(V)
    torch.testing.assert_close(found.h, h)
    for code in range(3):
        mine = [i for i in order.tolist() if LABELS[i] == code][:3]
        torch.testing.assert_close(found.prototypes[code], ball.mean(h[mine]))
    for i in (0, 7):
        weights = [torch.exp(-(ball.between(h[i], p) ** 2) / 0.5) for p in found.prototypes]
        assert found.chances[i].tolist() == pytest.approx([float(w / sum(weights)) for w in weights], rel=1e-4)
    axis = torch.linspace(-plane.LIMIT, plane.LIMIT, plane.GRID)
    point = ball.project(torch.stack([axis[40], axis[50]]))  # row 50 is the height, column 40 the first coordinate
    weights = (-ball.between(point, found.prototypes).square() / 0.5).softmax(-1)
    torch.testing.assert_close(found.regions[50, 40], weights, atol=1e-5, rtol=1e-4)
    if c == 0:  # at temperature four it is the paper's loss
        squared = (V[4] - found.prototypes).square().sum(-1)
        paper = plane.place(V, LABELS, order, 3, 4.0, 0.0).chances[4]
        torch.testing.assert_close(paper, (-squared).softmax(-1))


def test_the_hardest_image_is_right_by_the_smallest_margin():
    v = torch.tensor([[0.0, 0.0], [0.0, 2.0], [0.0, 1.4], [5.0, 0.0], [5.0, 2.0], [2.9, 1.0]])
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    assert plane.hardest(v, labels) == 5


def test_two_outputs_are_trained_and_fit_into_the_picture():
    x = np.random.default_rng(0).normal(size=(24, 5)) + 3 * np.eye(3, 5)[LABELS.numpy()]
    v, history = plane.flat_embedding(x.astype(np.float32), LABELS.numpy(), Episodes(epochs=10, batch_size=12, k=3), 0)
    assert v.shape == (24, 2)
    assert v.square().sum(-1).mean().sqrt().item() == pytest.approx(0.65, rel=1e-5)
    assert v.mean(dim=0).abs().max() < 1e-5
    assert history[-1] < history[0]


@pytest.fixture
def board() -> Board:
    return plane.explore(W, CODES, CLASSES, QUERY, seed=2)


def chances(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"p\(.*?\)\s+([\d.]+) %", text)]


@pytest.mark.parametrize(("k", "temperature", "c"), [(5, 1.0, 0.0), (1, 0.1, 1.0), (11, 10.0, 2.0)])
def test_the_readout_is_the_plane_at_these_values(board, k, temperature, c):
    assert board.sliders["k"].values == tuple(range(1, 12))  # the query is never in the support
    for name, value in (("k", k), ("temperature", temperature), ("c", c)):
        before, same = board.picture.value, board.sliders[name].value == value
        board.sliders[name].value = value
        assert (board.picture.value == before) == same
    expected = plane.place(W, CODES, plane.entrance(48, QUERY, 2), k, temperature, c)
    assert chances(board.text) == pytest.approx((100 * expected.chances[QUERY]).tolist(), abs=0.006)
    assert f"query: {CLASSES[CODES[QUERY]]}" in board.text
    loss = -expected.chances[QUERY, CODES[QUERY]].log().item()
    assert float(re.search(r"loss of the query\s+([\d.]+)", board.text)[1]) == pytest.approx(loss, abs=6e-5)
    rest = sorted(set(range(48)) - set(expected.support.tolist()))
    right = sum(int(expected.chances[i].argmax()) == int(CODES[i]) for i in rest)
    assert f"right outside the support: {right} of {48 - 4 * k}" in board.text


def test_cosine_cannot_tell_two_classes_in_one_direction():
    rows = plane.agreement(ROW, CROWDED, k=3, seed=0, times=10).set_index("comparison")
    assert list(rows.index) == list(NAMES)
    assert rows.loc["squared euclidean", "changed"] == rows.loc["euclidean", "changed"] == 0
    assert rows.loc[["squared euclidean", "poincare"], "right"].min() > 95
    assert rows.loc["cosine", "right"] < 85 and rows.loc["cosine", "changed"] > 15
