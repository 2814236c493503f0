"""The numbers about the ball against closed forms, geoopt, and the errata, where they were computed before."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.optimize import brentq

from lib.geometry import Euclidean, PoincareBall
from lib.losses import hyper_dino
from lib.papers.hyper_dino.ball import tables as ball
from lib.papers.hyper_dino.ball.figures import circle, tiling

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    import geoopt


def test_reach_by_hand():
    """artanh(1/2) = ln(3)/2."""
    row = ball.reach([0.5]).iloc[0]
    assert row.tolist() == pytest.approx([0.5, math.log(3), math.log(3), math.log(3) / 2])


def test_reach_is_that_of_the_errata():
    rows = ball.reach([1e-3, 1e-5, 1e-7])
    np.testing.assert_allclose(rows["farthest"], [7.60, 12.21, 16.81], atol=0.005)
    np.testing.assert_allclose(rows["to_itself"], 2 * rows["epsilon"], rtol=1e-5)


def test_the_margin_at_rest_is_where_the_recursion_ends():
    margin = 0.0
    for _ in range(100):
        margin = 0.5 + 0.1 * 7 / 8 * margin
    assert ball.margin_at_rest(classes=8, m0=0.5, alpha=0.1) == pytest.approx(margin)


@pytest.mark.parametrize(("classes", "distance"), [(2, 3.0), (8, 0.548), (8, 6.0), (40, 0.1)])
def test_all_pairs_of_a_simplex_are_equally_far_apart(classes, distance):
    points = ball.simplex(classes, distance)
    reference = geoopt.PoincareBall(torch.ones((), dtype=torch.float64))
    apart = reference.dist(points[:, None], points[None])[~torch.eye(classes, dtype=bool)]
    np.testing.assert_allclose(apart, distance, rtol=1e-9)
    np.testing.assert_allclose(points.sum(0), 0, atol=1e-12)


@pytest.mark.parametrize("geometry", [Euclidean(), PoincareBall(1.0), PoincareBall(0.3), PoincareBall(1e-9)], ids=str)
@pytest.mark.parametrize("classes", [2, 8, 40])
def test_the_radius_at_rest_is_where_a_search_finds_the_margin(geometry, classes):
    margin = ball.margin_at_rest(classes, 0.5, 0.1)
    corners = ball.simplex(classes, 1.0)
    corners = corners / corners[0].norm()
    found = brentq(lambda r: float(geometry.between(r * corners[0], r * corners[1])) - margin, 1e-6, 0.99, xtol=1e-13)
    assert ball.radius_at_rest(classes, 0.5, 0.1, geometry) == pytest.approx(found, abs=1e-9)


def test_flat_space_is_the_limit_of_a_ball_without_curvature():
    """There the ball's distance is twice the Euclidean one; c = 0 divides by nothing."""
    flat = ball.radius_at_rest(8, 0.25, 0.1, Euclidean())
    assert ball.radius_at_rest(8, 0.5, 0.1, PoincareBall(0.0)) == pytest.approx(flat, abs=1e-9)
    assert flat == pytest.approx(0.25 / (1 - 0.1 * 7 / 8) / np.sqrt(16 / 7))


def test_collapsed_classes_at_rest_have_no_loss_and_keep_their_margin():
    """With the printed masks (self pairs), as erratum HD-8 counts; at radius 0.178, where it says they are."""
    margin = ball.margin_at_rest(classes=8, m0=0.5, alpha=0.1)
    points = ball.simplex(8, margin)
    h, labels = points.repeat(4, 1), torch.arange(8).repeat(4)
    loss = hyper_dino.contrastive(h, labels, PoincareBall(), m0=0.5, alpha=0.1, norm_weight=0.0, self_pairs=True)
    assert loss.margin.item() == pytest.approx(margin)
    assert loss.total.item() == pytest.approx(0, abs=1e-9)
    assert points.norm(dim=-1).tolist() == pytest.approx([0.178] * 8, abs=5e-4)


def test_rounding_is_that_of_the_errata():
    rows = ball.rounding([0.18, 0.99, 0.999, 0.9999]).set_index("radius")
    np.testing.assert_allclose(rows["median"], [40, 600, 4000, 30000], rtol=0.15)
    assert rows["lost"].tolist() == pytest.approx([0, 0, 0, 5], abs=0.5)
    assert (rows["low"] < rows["median"]).all() and (rows["median"] < rows["high"]).all()


def test_rounding_costs_nothing_where_float16_is_exact():
    """One number, norm 1/2: the points are ±0.5; pairs of equal points are left out."""
    rows = ball.rounding([0.5], dim=1)
    assert rows["median"].iloc[0] == 0


def test_what_was_drawn_is_measured():
    ways, centres, tiles = np.array([[0.5, -0.5], [0, 0.5j]]), np.array([0, 0.6 - 0.3j]), tiling(7, 3, 2)
    rows = ball.drawn(ways, centres, 0.8, tiles)
    by_panel = dict(list(rows.groupby("panel")))
    np.testing.assert_allclose(by_panel["shortest ways"]["hyperbolic"], [2 * math.log(3), math.log(3)])
    np.testing.assert_allclose(by_panel["shortest ways"]["euclidean"], [1, 0.5])
    extents = [np.ptp(circle(z, 0.8, n=1001).real) / 2 for z in centres]
    np.testing.assert_allclose(by_panel["circles"]["euclidean"], extents, rtol=1e-5)
    assert by_panel["circles"][["x", "y"]].values.tolist() == [[0, 0], [0.6, -0.3]]
    assert len(by_panel["tiles"]) == 29 and np.ptp(by_panel["tiles"]["hyperbolic"]) < 1e-9
