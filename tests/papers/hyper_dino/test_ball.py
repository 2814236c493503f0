"""Geodesics, tilings and the numbers about the ball against geoopt, closed forms and the errata."""

import re
import warnings
from collections import Counter

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.losses import hyper_dino
from lib.papers.hyper_dino import ball

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

CURVATURES = (0.3, 1.0, 2.0)
X, Y = -0.5 + 0.3j, 0.2 - 0.4j  # inside the ball of all three
START = {"c": 1.0, "clip_radius": 0.6, "x": 0.6, "y": 0.3}
MOVES = [{}, {"c": 0.35}, {"c": 0.0}, {"clip_radius": 0.3}, {"x": -0.75}, {"y": 0.5}]


def vectors(points) -> torch.Tensor:
    return torch.view_as_real(torch.from_numpy(np.asarray(points, dtype=complex)))


def distance(x, y, c: float) -> np.ndarray:
    """By geoopt in float64."""
    return geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64)).dist(vectors(x), vectors(y)).numpy()


@pytest.mark.parametrize("c", CURVATURES)
def test_a_geodesic_goes_the_shortest_way_and_a_circle_keeps_its_distance(c):
    way, around = ball.geodesic(X, Y, c, n=7), ball.circle(X, 0.8, c)
    np.testing.assert_allclose(way[[0, -1]], [X, Y], atol=1e-12)
    np.testing.assert_allclose(distance(way[:-1], way[1:], c), distance(X, Y, c) / 6, rtol=1e-9)
    np.testing.assert_allclose(distance(np.full_like(around, X), around, c), 0.8, rtol=1e-9)
    np.testing.assert_allclose(ball.geodesic(X, Y, c=0, n=3)[1], (X + Y) / 2, atol=1e-12)  # in the flat limit
    np.testing.assert_allclose(abs(ball.circle(X, 0.8, c=0) - X), 0.4)  # d = 2‖x − y‖


@pytest.mark.parametrize(("p", "q"), [(7, 3), (5, 4), (3, 7)])
def test_tiles_are_equal_and_meet_at_their_corners(p, q):
    tiles = ball.tiling(p, q, generations=4)
    sides = distance(tiles, np.roll(tiles, -1, axis=1), 1.0)
    # Half a side is opposite to π/p in a right-angled triangle with the angles π/p and π/q.
    np.testing.assert_allclose(np.cosh(sides / 2), np.cos(np.pi / p) / np.sin(np.pi / q), rtol=1e-7)
    corners = Counter(np.round(tiles.ravel(), 6))
    assert [corners[corner] for corner in np.round(tiles[0], 6)] == [q] * p
    with pytest.raises(InputError, match="does not tile the hyperbolic plane"):
        ball.tiling(4, 4, 1)


@pytest.mark.parametrize("classes", [2, 8, 40])
def test_the_radius_at_rest_is_where_a_search_finds_the_margin(classes):
    margin, unit = ball.margin_at_rest(classes, 0.5, 0.1), PoincareBall(1.0)
    points = ball.simplex(classes, margin)
    apart = unit.pairwise(points, points)[~torch.eye(classes, dtype=bool)]
    np.testing.assert_allclose(apart, margin, rtol=1e-9)
    a, b, *_ = points / points[0].norm()
    rest = brentq(lambda r: float(unit.between(r * a, r * b)) - margin, 1e-6, 0.99, xtol=1e-13)
    assert ball.radius_at_rest(classes, 0.5, 0.1) == pytest.approx(rest, abs=1e-9)


def test_collapsed_classes_at_rest_have_no_loss_and_keep_their_margin():
    """With the printed masks (self pairs), as erratum HD-8 counts; at radius 0.178, where it says they are."""
    margin = ball.margin_at_rest(classes=8, m0=0.5, alpha=0.1)
    points = ball.simplex(8, margin)
    h, labels = points.repeat(4, 1), torch.arange(8).repeat(4)
    loss = hyper_dino.ContrastiveLoss(PoincareBall(), 0.5, 0.1, norm_weight=0.0, self_pairs=True).parts(h, labels)
    assert loss.margin.item() == pytest.approx(margin)
    assert loss.total.item() == pytest.approx(0, abs=1e-9)
    assert points.norm(dim=-1).tolist() == pytest.approx([0.178] * 8, abs=5e-4)


def test_rounding_is_that_of_the_errata():
    rows = ball.rounding([0.18, 0.99, 0.999, 0.9999]).set_index("radius")
    np.testing.assert_allclose(rows["median"], [40, 600, 4000, 30000], rtol=0.15)
    assert rows["lost"].tolist() == pytest.approx([0, 0, 0, 5], abs=0.5)
    assert (rows["low"] < rows["median"]).all() and (rows["median"] < rows["high"]).all()


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
    board.sliders["x"].value = 1.0  # beyond the rim, if there is one
    assert ("put back" in board.text) == (move.get("c", 1.0) == 1.0)
