"""Every slider of the plane shows what its values say."""

import re
import time

import pytest
import torch

from lib.papers.linear_prototypes.plane import experiment as plane
from lib.papers.linear_prototypes.plane import sliders as prototypes
from lib.widgets.board import Board

RANDOM = torch.Generator().manual_seed(0)
LABELS = torch.arange(48) % 4
V = 0.7 * torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])[LABELS]
V = V + 0.25 * torch.randn(48, 2, generator=RANDOM)
CLASSES = ["fat", "gland", "muscle", "stroma"]
QUERY = 6


@pytest.fixture
def board() -> Board:
    return prototypes.explore(V, LABELS, CLASSES, QUERY, seed=2)


def chances(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"p\(.*?\)\s+([\d.]+) %", text)]


@pytest.mark.parametrize(("k", "temperature", "c"), [(5, 1.0, 0.0), (1, 0.1, 1.0), (11, 10.0, 2.0)])
def test_the_readout_is_the_plane_at_these_values(board, k, temperature, c):
    for name, value in (("k", k), ("temperature", temperature), ("c", c)):
        board.sliders[name].value = value
    expected = plane.place(V, LABELS, plane.entrance(48, QUERY, 2), k, temperature, c)
    assert chances(board.text) == pytest.approx((100 * expected.chances[QUERY]).tolist(), abs=0.006)
    assert f"query: {CLASSES[LABELS[QUERY]]}" in board.text
    loss = -expected.chances[QUERY, LABELS[QUERY]].log().item()
    assert float(re.search(r"loss of the query\s+([\d.]+)", board.text)[1]) == pytest.approx(loss, abs=6e-5)
    rest = sorted(set(range(48)) - set(expected.support.tolist()))
    right = sum(int(expected.chances[i].argmax()) == int(LABELS[i]) for i in rest)
    assert f"right outside the support: {right} of {48 - 4 * k}" in board.text


def test_the_largest_support_leaves_the_query_out(board):
    assert board.sliders["k"].values == tuple(range(1, 12))


def test_a_higher_temperature_is_less_sure_but_changes_no_border(board):
    sure = [board.text]
    board.sliders["temperature"].value = 10.0
    sure.append(board.text)
    first, second = (float(re.search(r"mean largest p\s+([\d.]+)", text)[1]) for text in sure)
    assert second < first
    right = [re.search(r"right .*", text)[0] for text in sure]
    assert right[0] == right[1]


def test_every_slider_redraws_the_picture(board):
    for name, value in (("k", 2), ("temperature", 0.1), ("c", 1.5)):
        before = board.picture.value
        board.sliders[name].value = value
        assert board.picture.value != before, name
    assert board.still().data == bytes(board.picture.value)


def test_a_redraw_is_quick_enough_for_a_slider(board):
    """Median of seven; the bound is ten times what it takes, so that it fails on a design fault only."""
    times = []
    for number in range(7):
        start = time.perf_counter()
        board.sliders["c"].value = 0.2 + 0.2 * number
        times.append(time.perf_counter() - start)
    assert sorted(times)[3] < 1.0
