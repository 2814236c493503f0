"""Geodesics, circles and tilings against geoopt and school geometry; pictures show what they are given."""

import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import torch

from lib.errors import InputError
from lib.papers.hyper_dino.ball import figures as ball

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt

CURVATURES = (0.3, 1.0, 2.0)
X, Y = -0.5 + 0.3j, 0.2 - 0.4j  # inside the ball of all three


def vectors(points) -> torch.Tensor:
    return torch.view_as_real(torch.from_numpy(np.asarray(points, dtype=complex)))


def distance(x, y, c: float) -> np.ndarray:
    """By geoopt in float64."""
    return geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64)).dist(vectors(x), vectors(y)).numpy()


@pytest.mark.parametrize("c", CURVATURES)
def test_the_moebius_sum_is_geoopts(c):
    reference = geoopt.PoincareBall(torch.tensor(c, dtype=torch.float64)).mobius_add(vectors(X), vectors(Y))
    np.testing.assert_allclose(vectors(ball.plus(X, Y, c)), reference, atol=1e-12)


@pytest.mark.parametrize("c", CURVATURES)
def test_a_geodesic_goes_the_shortest_way_in_equal_steps(c):
    way = ball.geodesic(X, Y, c, n=7)
    np.testing.assert_allclose(way[[0, -1]], [X, Y], atol=1e-12)
    np.testing.assert_allclose(distance(way[:-1], way[1:], c), distance(X, Y, c) / 6, rtol=1e-9)


def test_a_geodesic_is_an_arc_that_meets_the_rim_at_right_angles():
    """Its circle has |centre|² = 1 + radius²."""
    a, b, c = ball.geodesic(X, Y, n=3)
    matrix = 2 * np.array([[(b - a).real, (b - a).imag], [(c - a).real, (c - a).imag]])
    centre = complex(*np.linalg.solve(matrix, [abs(b) ** 2 - abs(a) ** 2, abs(c) ** 2 - abs(a) ** 2]))
    assert abs(centre) ** 2 == pytest.approx(1 + abs(centre - a) ** 2)


def test_in_the_flat_limit_a_geodesic_is_straight_and_a_circle_round():
    np.testing.assert_allclose(ball.geodesic(X, Y, c=0, n=3)[1], (X + Y) / 2, atol=1e-12)
    np.testing.assert_allclose(abs(ball.circle(X, 0.8, c=0) - X), 0.4)  # d = 2‖x − y‖


@pytest.mark.parametrize("c", CURVATURES)
def test_every_point_of_a_circle_is_at_its_distance(c):
    around = ball.circle(X, 0.8, c)
    np.testing.assert_allclose(distance(np.full_like(around, X), around, c), 0.8, rtol=1e-9)
    assert around[0] == pytest.approx(around[-1])


def test_reflecting_in_a_diameter_is_the_school_reflection():
    np.testing.assert_allclose(ball.reflect(np.array([Y, 0.3]), 0.1, -0.6), [np.conj(Y), 0.3], atol=1e-12)


def test_reflecting_keeps_distances_and_undoes_itself():
    a, b, points = 0.5 + 0.5j, -0.2 + 0.7j, np.array([X, Y])
    mirrored = ball.reflect(points, a, b)
    np.testing.assert_allclose(distance(mirrored, a, 1.0), distance(points, a, 1.0), rtol=1e-9)
    np.testing.assert_allclose(distance(*mirrored, 1.0), distance(X, Y, 1.0), rtol=1e-9)
    np.testing.assert_allclose(ball.reflect(mirrored, a, b), points, atol=1e-12)
    assert abs(mirrored - points).min() > 0.1


@pytest.mark.parametrize(("p", "q"), [(7, 3), (5, 4), (3, 7)])
def test_tiles_are_equal_and_meet_at_their_corners(p, q):
    tiles = ball.tiling(p, q, generations=4)
    sides = distance(tiles, np.roll(tiles, -1, axis=1), 1.0)
    # Half a side is opposite to π/p in a right-angled triangle with the angles π/p and π/q.
    np.testing.assert_allclose(np.cosh(sides / 2), np.cos(np.pi / p) / np.sin(np.pi / q), rtol=1e-7)
    corners = Counter(np.round(tiles.ravel(), 6))
    assert [corners[corner] for corner in np.round(tiles[0], 6)] == [q] * p


def test_the_rings_of_heptagons_grow_exponentially():
    """1 + 7 + 21 + 56 + 147, as counted from outside in any picture of {7,3}."""
    assert [len(ball.tiling(7, 3, generations)) for generations in range(5)] == [1, 8, 29, 85, 232]


@pytest.mark.parametrize(("p", "q"), [(4, 4), (6, 3), (3, 5)])
def test_flat_and_spherical_tilings_are_refused(p, q):
    with pytest.raises(InputError, match="does not tile the hyperbolic plane"):
        ball.tiling(p, q, 1)


def segments(axis) -> list[int]:
    return [len(collection.get_segments()) for collection in axis.collections]


def test_the_overview_draws_everything_once():
    tiles = ball.tiling(7, 3, 1)
    ways, circles, floor = ball.overview(np.array([[X, Y], [0, X]]), np.array([0, X, Y]), 0.5, tiles).axes
    assert segments(ways) == [2, 2]
    assert segments(circles) == [3]
    assert segments(floor) == [8 * 7 - 7 - 7]  # seven sides shared with the centre, seven between neighbours
    assert "0.5" in circles.get_title()


def lines(axis) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_the_explorer_shows_the_points_and_the_rim():
    (axis,) = ball.explorer(2.0, X, Y, clip_radius=0.3, clipped=0.1 + 0.2j).axes
    drawn = lines(axis)
    assert axis.patches[0].radius == pytest.approx(0.5**0.5)
    np.testing.assert_allclose(drawn["point"], [[-0.5, 0.3]])
    np.testing.assert_allclose(drawn["fixed point"], [[0.2, -0.4]])
    np.testing.assert_allclose(drawn["clipped point"], [[0.1, 0.2]])
    reach = drawn["clip radius"] @ [1, 1j]
    np.testing.assert_allclose(distance(np.zeros_like(reach), reach, 2.0), 0.6, rtol=1e-9)
    assert axis.get_xlabel() and axis.get_ylabel()


def test_a_flat_plane_has_no_rim():
    (axis,) = ball.explorer(0.0, X, Y, clip_radius=0.3, clipped=X).axes
    assert not axis.patches


def test_the_rounding_figure_has_the_rim_on_the_right():
    rows = pd.DataFrame({"radius": [0.5, 0.99], "median": [40, 600], "low": [4, 60], "high": [100, 1500]})
    (axis,) = ball.rounding(rows, resting=0.178).axes
    np.testing.assert_allclose(lines(axis)["median"], [[0.5, 0.004], [0.01, 0.06]])  # percent
    assert axis.get_xlim()[0] > axis.get_xlim()[1]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0.5", "0.99"]
    np.testing.assert_allclose(lines(axis)["classes at rest (0.178)"][:, 0], 0.822)
