"""Gromov's δ against its definition over all quadruples, on trees, on rings and on the disk."""

import itertools
import math

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall
from lib.geometry.hyperbolicity import hyperbolicity, max_min_product, sampled


def four_points(d: np.ndarray) -> float:
    """δ by the four-point condition: half the gap between the two largest of the three sums of opposite sides."""
    worst = 0.0
    for w, x, y, z in itertools.combinations(range(len(d)), 4):
        sums = sorted([d[w, x] + d[y, z], d[w, y] + d[x, z], d[w, z] + d[x, y]])
        worst = max(worst, (sums[2] - sums[1]) / 2)
    return worst


def cloud(n: int, d: int, seed: int) -> torch.Tensor:
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("seed", range(3))
def test_all_base_points_give_the_four_point_condition(seed):
    points = cloud(14, 3, seed)
    distances = Euclidean().pairwise(points, points)
    found = hyperbolicity(distances)
    assert found.delta == pytest.approx(four_points(distances.numpy()), rel=1e-12)
    assert found.relative == pytest.approx(2 * found.delta / distances.max().item(), rel=1e-12)
    assert found.low == found.high == found.relative


@pytest.mark.parametrize("base", [0, 5])
def test_one_base_point_bounds_the_whole_within_a_factor_of_two(base):
    points = cloud(20, 4, 7)
    distances = Euclidean().pairwise(points, points)
    one, whole = hyperbolicity(distances, base=base), hyperbolicity(distances)
    assert one.low <= whole.relative <= one.high
    assert one.high == min(1.0, 2 * one.relative)


def test_a_tree_has_no_delta_and_infinite_curvature():
    random = np.random.default_rng(0)
    n = 30
    d = np.zeros((n, n))
    for node in range(1, n):  # hang each node on an earlier one
        parent, length = random.integers(node), random.uniform(0.5, 2)
        d[node, :node] = d[:node, node] = d[parent, :node] + length
    found = hyperbolicity(torch.from_numpy(d))
    assert found.delta == pytest.approx(0, abs=1e-12)
    exact = hyperbolicity(torch.tensor([[0.0, 1, 2], [1, 0, 1], [2, 1, 0]]))
    assert exact.relative == 0 and exact.curvature == math.inf


def test_far_out_the_ball_has_the_known_delta_and_looks_ever_more_like_a_tree():
    angle = torch.linspace(0, 2 * math.pi, 81, dtype=torch.float64)[:80]
    rim = torch.stack([angle.cos(), angle.sin()], dim=1)
    ball = PoincareBall(1.0)
    deltas, relatives = [], []
    for way in (1.0, 3.0, 6.0):
        found = hyperbolicity(ball.pairwise(*(2 * [ball.exp0(rim * way / 2)])), base=0)
        deltas.append(found.delta)
        relatives.append(found.relative)
    assert relatives[0] > relatives[1] > relatives[2]
    # By the four-point definition the hyperbolic plane of curvature -1 is ln 2-hyperbolic, and no less.
    assert all(delta <= math.log(2) for delta in deltas) and deltas[-1] > 0.6


@pytest.mark.parametrize("n", [1, 2, 37, 300])
def test_max_min_product_is_the_one_of_all_triples(n):
    a = cloud(n, n, n)
    a = a + a.T
    assert torch.equal(max_min_product(a), torch.minimum(a[:, :, None], a.T[None]).amax(1))


def test_float32_and_float64_agree():
    points = cloud(60, 8, 1)
    wide = hyperbolicity(Euclidean().pairwise(points, points), base=0)
    narrow = hyperbolicity(Euclidean().pairwise(points.float(), points.float()), base=0)
    assert narrow.relative == pytest.approx(wide.relative, rel=1e-5)


def test_sampling_states_an_interval_and_follows_the_seed():
    points = cloud(400, 4, 2)
    one, again, other = (sampled(points, Euclidean(), size=60, repeats=5, seed=seed) for seed in (0, 0, 1))
    assert one == again and one != other
    assert one.low < one.relative < one.high and one.n == 60
    everything = sampled(points, Euclidean(), size=400)
    assert everything == hyperbolicity(Euclidean().pairwise(points, points), base=0)
    assert one.relative <= everything.high  # a subset of the triples


def test_the_interval_is_students():
    points = cloud(200, 3, 3)
    random = np.random.default_rng(5)
    values = []
    for _ in range(4):
        subset = points[random.choice(200, 50, replace=False)]
        values.append(hyperbolicity(Euclidean().pairwise(subset, subset), base=0).relative)
    half = 3.182446305 * np.std(values, ddof=1) / 2  # t of 3 degrees of freedom at 97.5 percent
    found = sampled(points, Euclidean(), size=50, repeats=4, seed=5)
    assert (found.low, found.high) == pytest.approx((np.mean(values) - half, np.mean(values) + half), rel=1e-6)


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        (torch.zeros(3, 2), "expected"),
        (torch.zeros(3, 3), "all points are equal"),
        (torch.tensor([[0.0, 1.0], [2.0, 0.0]]), "symmetric"),
        (torch.tensor([[1.0, 1.0], [1.0, 1.0]]), "zeros on the diagonal"),
        (torch.tensor([[0.0, float("nan")], [float("nan"), 0.0]]), "point 0 hold NaN"),
    ],
)
def test_what_is_no_distance_matrix_is_refused(distances, message):
    with pytest.raises(InputError, match=message):
        hyperbolicity(distances)


def test_one_subset_has_no_interval():
    with pytest.raises(InputError, match="at least 2"):
        sampled(cloud(20, 2, 0), Euclidean(), size=5, repeats=1)
