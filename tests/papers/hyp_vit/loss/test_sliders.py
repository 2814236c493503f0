"""Every slider of the loss changes picture and readout, and the readout is what geoopt and plain loops compute."""

import math
import re
import warnings

import numpy as np
import pytest
import torch

from lib.papers.hyp_vit.loss import sliders, tables

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

START = {"c": 0.1, "temperature": 0.2, "clip_radius": 2.3}
MOVES = [
    {},
    {"c": 0.05},
    {"c": 2.0},
    {"temperature": 0.05},
    {"temperature": 1.0},
    {"clip_radius": 0.5},
    {"clip_radius": 6.0},
]


IN_PERCENT = ("largest norm", "  share of softmax")


def shown(text: str, line: str) -> float:
    """The first number behind ``line``."""
    (rest,) = (row.partition(line)[2] for row in text.splitlines() if row.startswith(line))
    return float(re.search(r"-?\d+(\.\d+)?", rest)[0])


def by_loops(e: torch.Tensor, c: float, temperature: float, clip_radius: float) -> dict[str, float]:
    space = geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64))
    points = [space.expmap0(row * min(1.0, clip_radius / row.norm().item())) for row in e]
    apart = [[space.dist(x, y).item() for y in points] for x in points]
    total = 0.0
    for i in range(8):
        below = sum(math.exp(-apart[i][k] / temperature) for k in range(8) if k != i)
        total -= math.log(math.exp(-apart[i][i ^ 1] / temperature) / below)
        if i == tables.ANCHOR:
            share = 100 * math.exp(-apart[i][i ^ 1] / temperature) / below
    return {
        "largest norm": 100 * math.sqrt(c) * max(point.norm().item() for point in points),
        "  distance": apart[tables.ANCHOR][tables.ANCHOR ^ 1],
        "  share of softmax": share,
        "loss of the batch": total / 4,
    }


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_the_readout_is_what_loops_and_geoopt_compute(move):
    board = sliders.explore()
    before, picture = board.readout.value, board.picture.value
    for name, value in move.items():
        board.sliders[name].value = value
    expected = by_loops(tables.small_batch()[0], **START | move)
    for line, number in expected.items():
        assert shown(board.text, line) == pytest.approx(number, abs=6e-3 if line in IN_PERCENT else 6e-5), line
    assert (board.readout.value != before) == (board.picture.value != picture) == bool(move)


@pytest.mark.parametrize(
    "values", [START, START | {"c": 1.0}, START | {"clip_radius": 0.5}, START | {"temperature": 1.0}], ids=str
)
def test_the_norm_of_the_gradient_is_that_of_the_slopes(values):
    e, _ = tables.small_batch()
    slopes = []
    for place in np.ndindex(8, 2):
        move = torch.zeros_like(e)
        move[place] = 1e-5
        up, down = (by_loops(e + sign * move, **values)["loss of the batch"] for sign in (1, -1))
        slopes.append((up - down) / 2e-5)
    assert sliders.read(**values).gradient == pytest.approx(np.linalg.norm(slopes), rel=1e-5)


def test_the_board_starts_at_the_published_values_and_every_slider_has_room():
    board = sliders.explore()
    assert board.values == START
    for slider in board.sliders.values():
        assert 0 < slider.index < len(slider.values) - 2, "two steps up, one down"
    assert board.sliders["c"].values[0] == 0 and board.sliders["c"].values[-1] == 2
    temperatures, radii = (board.sliders[name].values for name in ("temperature", "clip_radius"))
    assert (temperatures[0], temperatures[-1], radii[0], radii[-1]) == (0.05, 1, 0.5, 6)


def test_at_c_0_there_is_no_rim_and_distances_are_doubled():
    board = sliders.explore()
    board.sliders["c"].value = 0.0
    board.sliders["clip_radius"].value = 6.0
    e, _ = tables.small_batch()
    assert "no rim" in board.text and "  0 of 8 outputs" in board.text
    assert shown(board.text, "  distance") == pytest.approx(2 * (e[0] - e[1]).norm().item(), abs=6e-5)
