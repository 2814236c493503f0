"""Chords and their gradient against float64 differences, near-duplicates and collapsed points among them."""

import itertools
from collections import Counter

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from lib.geometry import Euclidean, PoincareBall, Sphere, numerics

DIMENSIONS = (65, 128, 384, 1000)
SPACES = (Euclidean(), Sphere(), PoincareBall(1.0), PoincareBall(0.001))
every_space = pytest.mark.parametrize("space", SPACES, ids=str)


def normal(*shape: int, seed: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def by_hand(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """‖x − y‖ of all pairs in float64, all differences at once."""
    return (x.double()[..., :, None, :] - y.double()[..., None, :, :]).square().sum(-1).sqrt()


def near_duplicates(n: int, d: int) -> tuple[torch.Tensor, torch.Tensor, list[float]]:
    """Two sets of unit vectors; the first rows of the second are 1e-2 to 1e-7 from those of the first."""
    x, y = (torch.nn.functional.normalize(normal(n, d, seed=seed), dim=-1) for seed in (d, d + 1))
    apart = [10.0**-k for k in range(2, 8)]
    for row, distance in enumerate(apart):
        y[row] = x[row] + distance * y[row]
    return x, y, apart


# Values


@pytest.mark.parametrize("scale", (1e-3, 1.0, 1e3))
@pytest.mark.parametrize("d", DIMENSIONS)
def test_products_are_as_exact_as_float32_allows(d, scale):
    x, y, apart = near_duplicates(100, d)
    x, y = scale * x, scale * y
    chord, exact = numerics.chords(x, y), by_hand(x, y)
    assert chord.dtype == torch.float32
    assert torch.equal(chord, numerics.root(numerics._by_products(x, y, False)))  # this is how they are computed
    assert ((chord - exact).abs() / exact).max() < 1e-6
    torch.testing.assert_close(exact.diagonal()[: len(apart)] / scale, torch.tensor(apart).double(), rtol=0.2, atol=0)


@pytest.mark.parametrize("d", (3, 64, *DIMENSIONS))
def test_equal_points_are_exactly_zero_apart(d):
    x = normal(90, d, seed=1)
    x[7], x[40:43], x[50:52] = x[3], x[3], 0
    equal = by_hand(x, x) == 0
    assert equal.sum() == 90 + 5 * 4 + 2  # five alike and two at the origin
    for y in (x, x.clone(), x.T.contiguous().T):
        assert torch.equal(numerics.chords(x, y) == 0, equal)


# Gradients


def slopes(chords, x: torch.Tensor, y: torch.Tensor, weights: torch.Tensor) -> list[torch.Tensor]:
    """The gradient of a weighted sum of chords in its arguments."""
    inputs = [x] if x is y else [x, y]
    return list(torch.autograd.grad((weights * chords(x, y)).sum(), inputs))


def relative(got: torch.Tensor, exact: torch.Tensor) -> float:
    """The largest error of a row, as a part of the row's length."""
    return float(((got.double() - exact).norm(dim=-1) / exact.norm(dim=-1)).max())


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
@pytest.mark.parametrize("d", (5, *DIMENSIONS))
def test_gradient_is_that_of_plain_differences(d, dtype):
    """Within 1e-6 of its length in float32, where the chords themselves are within 1e-6."""
    x, y = normal(2, 20, d, seed=6, dtype=dtype).requires_grad_(), normal(25, d, seed=7, dtype=dtype).requires_grad_()
    weights = normal(2, 20, 25, seed=8, dtype=torch.float64)
    wide_x, wide_y = (points.detach().double().requires_grad_() for points in (x, y))
    got, exact = slopes(numerics.chords, x, y, weights), slopes(by_hand, wide_x, wide_y, weights)
    assert [slope.dtype for slope in got] == [dtype, dtype]
    assert [slope.shape for slope in got] == [x.shape, y.shape]
    for one, other in zip(got, exact, strict=True):
        assert relative(one, other) < (1e-6 if dtype == torch.float32 else 1e-12)


@pytest.mark.parametrize("d", (5, 100))
def test_gradient_of_a_set_with_itself(d):
    """Near-duplicates and duplicates in it; equal points pull in no direction, weights need not be symmetric."""
    x = normal(100, d, seed=11)
    x[1], x[2] = x[0] + 1e-4 * x[50], x[3]
    weights = normal(100, 100, seed=12, dtype=torch.float64)
    wide = x.double().requires_grad_()
    apart = (wide[:, None] - wide[None]).square().sum(-1)
    exact = torch.autograd.grad((weights * apart.where(apart > 0, 1.0).sqrt() * (apart > 0)).sum(), wide)[0]
    x.requires_grad_()
    got = slopes(numerics.chords, x, x, weights)[0]
    assert relative(got, exact) < 1e-5


@pytest.mark.parametrize("d", (5, 100))
@every_space
def test_points_held_fixed_take_no_gradient_though_they_are_the_same(space, d):
    x = (normal(20, d, seed=13) / (4 * d**0.5)).requires_grad_()
    fixed, weights = x.detach(), normal(20, 20, seed=14)
    for held in (fixed, fixed.clone()):
        shared = torch.autograd.grad((weights * space.pairwise(x, held)).sum(), x)[0]
        expected = torch.autograd.grad((weights * space.pairwise(x, held.clone())).sum(), x)[0]
        torch.testing.assert_close(shared, expected, rtol=1e-4, atol=1e-6)
    both = torch.autograd.grad((weights * space.pairwise(x, x)).sum(), x)[0]
    turned = torch.autograd.grad((weights * space.pairwise(fixed, x)).sum(), x)[0]
    torch.testing.assert_close(both, shared + turned, rtol=1e-4, atol=1e-5)


def test_a_second_derivative_is_refused_rather_than_wrong():
    x = normal(4, 3, seed=16).requires_grad_()
    (slope,) = torch.autograd.grad(numerics.chords(x, x).square().sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="once_differentiable"):
        slope.sum().backward()


@pytest.mark.parametrize("space", (Euclidean(), PoincareBall(1.0)), ids=str)
@pytest.mark.parametrize("n", (60, 300))
def test_few_near_pairs_are_taken_out_of_products_in_float32(space, n):
    """300 points have few enough of them, 60 do not; from 1e-7 of their norms to where all is in float32."""
    x = 0.5 * torch.nn.functional.normalize(normal(n, 128, seed=19), dim=-1)
    y = 0.5 * torch.nn.functional.normalize(normal(n, 128, seed=20), dim=-1)
    y[:50] = x[:50] + torch.logspace(-7, 0, 50)[:, None] * y[:50]
    y[50] = x[50]
    weights = normal(n, n, seed=21, dtype=torch.float64).abs() * (normal(n, n, seed=22) > 1)
    weights.diagonal().fill_(1.0)
    wide = x.double().requires_grad_(), y.double().requires_grad_()
    exact = slopes(space.pairwise, *wide, weights)
    got = slopes(space.pairwise, x.requires_grad_(), y.requires_grad_(), weights)
    assert max(map(relative, got, exact)) < 2e-6


# As on a GPU


@pytest.mark.parametrize("scale", (1e-3, 1e3))
@pytest.mark.parametrize("d", (2, 32, *DIMENSIONS, 4096))
def test_parts_are_as_exact_as_float32_allows_and_equal_points_equal(d, scale):
    x, y, _ = near_duplicates(20, d)
    x = scale * torch.cat([x, y, x[:5], torch.zeros(2, d), 1e-4 * x[:3], 30 * x[:3]])
    exact = by_hand(x, x)
    for chord in (numerics.root(numerics._by_parts(*sets)) for sets in ((x, x, True), (x, x.clone(), False))):
        assert chord.dtype == torch.float32
        assert torch.equal(chord == 0, exact == 0)
        assert ((chord - exact).abs() / exact.where(exact > 0, 1.0)).max() < 1e-6
    batch = numerics._by_parts(torch.stack([x, 2 * x]), torch.stack([x, 2 * x]), False)
    torch.testing.assert_close(batch, torch.stack([exact, 2 * exact]).square().float(), rtol=1e-6, atol=0)


@every_space
@pytest.mark.parametrize("d", (5, 128))
def test_the_way_of_a_gpu_has_the_values_and_the_gradient_of_that_of_a_cpu(space, d, monkeypatch):
    x, y = (0.9 * points for points in near_duplicates(80, d)[:2])
    x[70:] *= torch.linspace(0, 1.1 / 0.9, 10)[:, None]  # from the centre to beyond the rim
    weights = normal(80, 80, seed=23, dtype=torch.float64)
    x.requires_grad_(), y.requires_grad_()
    here = [(space.pairwise(*sets), slopes(space.pairwise, *sets, weights)) for sets in ((x, x), (x, y))]
    monkeypatch.setattr(numerics, "_plainly", lambda x: x.dtype == torch.float64)
    monkeypatch.setattr(numerics, "_squared", numerics._by_parts)
    monkeypatch.setattr(numerics, "_taken_out", lambda *_: None)
    there = [(space.pairwise(*sets), slopes(space.pairwise, *sets, weights)) for sets in ((x, x), (x, y))]
    for (value, gradients), (wanted, expected) in zip(there, here, strict=True):
        torch.testing.assert_close(value, wanted, rtol=1e-6, atol=0)
        for one, other in zip(gradients, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5 * float(other.abs().max()))


class Kernels(TorchDispatchMode):
    """Counts what a GPU would start: every operation that is more than another view of a tensor."""

    free = ("view", "expand", "unsqueeze", "transpose", "split", "diagonal", "detach", "empty", "types", "ones_like")

    def __init__(self):
        super().__init__()
        self.names = Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if not any(word in function.__name__ for word in self.free):
            self.names[function.__name__] += 1
        return function(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    ("one_set", "space", "most"),
    [
        (True, PoincareBall(1.0), (38, 14)),
        (False, PoincareBall(1.0), (46, 20)),
        (True, Euclidean(), (24, 13)),
        (False, Euclidean(), (24, 17)),
    ],
    ids=str,
)
def test_few_kernels_and_none_is_waited_for(one_set, space, most):
    """Every kernel costs a GPU some 10 μs, looking at a value more. Tensors without values stand for those of a GPU."""
    x, y = (torch.empty(90, 128, device="meta", requires_grad=True) for _ in range(2))
    inputs = (x,) if one_set else (x, y)
    with Kernels() as forward:
        distance = space.pairwise(x, x if one_set else y)
    with Kernels() as backward:
        torch.autograd.grad(distance, inputs, torch.ones_like(distance))
    counts = forward.names.total(), backward.names.total()
    assert all(count <= limit for count, limit in zip(counts, most, strict=True)), (forward.names, backward.names)


# asinh


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64), ids=str)
def test_asinh_and_its_slope_are_those_of_numpy(dtype):
    u = torch.cat([torch.zeros(1), torch.logspace(-30, 15, 400)]).to(dtype).requires_grad_()
    value = numerics.Asinh.apply(u)
    (slope,) = torch.autograd.grad(value.sum(), u)
    assert value.dtype == slope.dtype == dtype
    wide, eps = u.detach().double().numpy(), torch.finfo(dtype).eps
    np.testing.assert_allclose(value.detach(), np.arcsinh(wide), rtol=4 * eps, atol=0)
    np.testing.assert_allclose(slope, 1 / np.hypot(1, wide), rtol=4 * eps, atol=0)


def test_the_two_ways_to_a_distance_in_the_ball_meet():
    """Curvatures below 0.01 take the series, above it ``Asinh``."""
    x, y = (0.2 * normal(20, 5, seed=seed, dtype=torch.float64) for seed in (17, 18))
    below, above = (PoincareBall(0.01 * (1 + sign * 1e-13)).pairwise(x, y) for sign in (-1, 1))
    torch.testing.assert_close(below, above, rtol=1e-12, atol=0)
    for i, j in itertools.product(range(3), range(3)):
        norms = [float(1 - 0.01 * points.square().sum()) for points in (x[i], y[j])]
        root = 0.1 * float((x[i] - y[j]).norm())
        assert float(above[i, j]) == pytest.approx(20 * np.arcsinh(root / (norms[0] * norms[1]) ** 0.5), rel=1e-12)
