"""Every slider of the ball changes the readout to what geoopt computes."""

import re
import warnings

import numpy as np
import pytest
import torch

from lib.papers.hyper_dino.ball import sliders as ball

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

START = {"c": 1.0, "clip_radius": 0.6, "x": 0.6, "y": 0.3}


def shown(text: str, line: str) -> list[float]:
    """The numbers in the line that starts with ``line``, behind it."""
    (rest,) = (row.partition(line)[2] for row in text.splitlines() if row.startswith(line))
    return [float(number) for number in re.findall(r"-?\d+\.\d+", rest)]


def by_geoopt(c: float, clip_radius: float, x: float, y: float) -> dict[str, list[float]]:
    space = geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64))
    origin, other, point = (torch.tensor(v, dtype=torch.float64) for v in ([0, 0], ball.OTHER, [x, y]))
    tangent = space.logmap0(point)
    clipped = tangent * min(1, clip_radius / tangent.norm().item())
    return {
        "from the origin": [space.dist(origin, point), 2 * point.norm()],
        "from (-0.3, 0.4)": [space.dist(other, point), 2 * (other - point).norm()],
        "conformal factor": [space.lambda_x(point), 2],
        "norm of tangent vector": [tangent.norm(), point.norm()],
        f"  clipped to {clip_radius:.2f}": [clipped.norm()],
        "  and mapped back": space.expmap0(clipped).tolist(),
    }


MOVES = [
    {},
    {"c": 0.35},
    {"c": 1.35},
    {"clip_radius": 0.3},
    {"clip_radius": 2.5},
    {"x": -0.75},
    {"y": -0.1},
    {"y": 0.5},
]


@pytest.mark.parametrize("move", MOVES, ids=str)
def test_the_readout_is_what_geoopt_computes(move):
    board = ball.explore()
    before, picture = board.readout.value, board.picture.value
    for name, value in move.items():
        board.sliders[name].value = value
    for line, numbers in by_geoopt(**START | move).items():
        expected = np.array([float(n) for n in numbers])
        np.testing.assert_allclose(shown(board.text, line), expected, atol=6e-4 if "mapped" in line else 6e-5)
    assert (board.readout.value != before) == (board.picture.value != picture) == bool(move)


def test_at_c_0_the_ball_is_flat():
    board = ball.explore()
    board.sliders["c"].value = 0.0
    assert "flat plane" in board.text
    for line in ("from the origin", "from (-0.3, 0.4)", "conformal factor", "norm of tangent vector"):
        hyperbolic, flat = shown(board.text, line)
        assert hyperbolic == flat
    board.sliders["c"].value = 0.05
    assert shown(board.text, "from the origin")[0] > shown(board.text, "from the origin")[1]


def test_a_point_beyond_the_rim_is_put_back():
    board = ball.explore()
    assert "put back" not in board.text
    board.sliders["x"].value = 1.0
    assert "put back" in board.text
    assert np.hypot(*shown(board.text, "point")) == pytest.approx(1, abs=1e-3)


def test_the_fixed_point_is_inside_every_ball_of_the_slider():
    assert max(ball.explore().sliders["c"].values) * (ball.OTHER[0] ** 2 + ball.OTHER[1] ** 2) < 1
