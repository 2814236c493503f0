"""What is too long to be squared goes to the rim in its own direction; all else is equal to the plain formulas."""

import math

import pytest
import torch
from torch import Tensor

from lib.geometry import RIM_MARGIN, PoincareBall, Sphere, clip
from lib.geometry.numerics import ARTANH, TANH, chords, over_root, root

DTYPES = (torch.float32, torch.float64)
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)
LENGTHS = {torch.float32: (1e3, 1e13, 2e19, 1e25, 3e38), torch.float64: (1e3, 1e60, 2e154, 1e200, 1e308)}


def directions(dtype: torch.dtype, n: int = 20, d: int = 7) -> Tensor:
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (x / x.norm(dim=-1, keepdim=True)).to(dtype)


def long_rows(dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Directions, and the same rows at every length."""
    unit = directions(dtype).repeat(len(LENGTHS[dtype]), 1)
    lengths = torch.tensor(LENGTHS[dtype], dtype=dtype).repeat_interleave(20)
    return unit, (unit * lengths[:, None]).requires_grad_()


def ends_at(points: Tensor, unit: Tensor, radius: float, source: Tensor) -> None:
    """In the right direction, at the given distance from the origin, and with finite gradients."""
    assert points.dtype == unit.dtype
    tolerance = 1e-5 if unit.dtype == torch.float32 else 1e-11
    torch.testing.assert_close(points / radius, unit, rtol=0, atol=tolerance)
    (gradient,) = torch.autograd.grad(points.sum(), source, retain_graph=True)
    assert gradient.isfinite().all()


@every_dtype
@pytest.mark.parametrize("c", (1e-3, 0.1, 1.0, 5.0, 1e6, 1e10, 1e30))
def test_long_vectors_end_at_the_rim_of_the_ball(c, dtype):
    unit, long = long_rows(dtype)
    ball, rim = PoincareBall(c), 1 / c**0.5
    ends_at(ball.exp0(long), unit, rim, long)
    for margin in (None, 0.1):
        kept = rim * (1 - (RIM_MARGIN[dtype] if margin is None else margin))
        ends_at(ball.project(long, margin), unit, kept, long)
        ends_at(ball.project(ball.exp0(long), margin), unit, kept, long)


@every_dtype
@pytest.mark.parametrize("c", (0.1, 1.0))
def test_far_beyond_the_rim_a_point_counts_as_on_the_boundary_of_project(c, dtype):
    unit, long = long_rows(dtype)
    unit, far = unit[20:], long[20:]
    ball = PoincareBall(c)
    boundary = (1 - RIM_MARGIN[dtype]) / c**0.5
    ends_at(ball.mean(far[:, None]), unit, boundary, long)
    ends_at(ball.exp0(ball.log0(far)), unit, boundary, long)
    assert ball.conformal_factor(far).isfinite().all()


@every_dtype
def test_the_flat_limit_loses_no_direction(dtype):
    unit, long = long_rows(dtype)
    for map_ in (PoincareBall(0.0).exp0, PoincareBall(0.0).log0, PoincareBall(0.0).project):
        there = map_(long)
        assert there.isfinite().all()
        torch.testing.assert_close(there / there.abs().amax(-1, True), unit / unit.abs().amax(-1, True))


@every_dtype
def test_long_vectors_keep_their_direction_on_the_sphere_and_when_clipped(dtype):
    unit, long = long_rows(dtype)
    ends_at(Sphere().project(long), unit, 1.0, long)
    ends_at(clip(long, 2.3), unit, 2.3, long)
    ends_at(Sphere().mean(long[:, None]), unit, 1.0, long)
    right_angle = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=dtype) * LENGTHS[dtype][-1]
    assert Sphere().pairwise(right_angle, right_angle)[0, 1].item() == pytest.approx(math.pi / 2)


# As before, to the bit


def ordinary(dtype: torch.dtype) -> Tensor:
    """Zero, duplicates, subnormal to a million long, across and on the rim."""
    lengths = torch.cat([torch.zeros(3), 10.0 ** torch.linspace(-40, 6, 90), torch.linspace(0.9, 1.1, 41)])
    return (directions(dtype, len(lengths), 33) * lengths[:, None].to(dtype)).repeat(2, 1)


def plain(name: str, c: float, x: Tensor) -> Tensor:
    """The formulas as they stood before anything was shortened."""
    squared = (c * x.square().sum(-1)).unsqueeze(-1)
    if name == "exp0":
        return x * over_root(torch.tanh, TANH, squared)
    if name == "log0":
        return x * over_root(torch.atanh, ARTANH, squared.clamp_max(1 - torch.finfo(x.dtype).eps))
    if name == "project":
        limit = (1 - RIM_MARGIN[x.dtype]) ** 2
        return torch.where(squared > limit, x * (squared.clamp_min(limit) / limit).rsqrt(), x)
    norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
    return x / norm.masked_fill(norm == 0, 1.0) if name == "sphere" else x * (c / norm.clamp_min(c))


@every_dtype
@pytest.mark.parametrize("c", (0.1, 1.0, 2.3))
@pytest.mark.parametrize("name", ("exp0", "log0", "project", "sphere", "clip"))
def test_ordinary_vectors_and_their_gradients_are_those_of_the_plain_formulas_to_the_bit(name, c, dtype):
    x = ordinary(dtype)
    if name == "log0":
        x = x[x.norm(dim=-1) < 100]
    x.requires_grad_()
    ball = PoincareBall(c)
    ours = {"sphere": Sphere().project, "clip": lambda v: clip(v, c)}.get(name) or getattr(ball, name)
    got, expected = ours(x), plain(name, c, x)
    weights = torch.randn(x.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    assert torch.equal(got, expected)
    assert torch.equal(*(torch.autograd.grad((weights * y).sum(), x)[0] for y in (got, expected)))


@every_dtype
@pytest.mark.parametrize("c", (0.0, 0.1, 1.0))
def test_the_mean_of_points_of_the_ball_is_the_plain_formula_to_the_bit(c, dtype):
    x = PoincareBall(1.0).project(ordinary(dtype).unflatten(0, (67, 4))).requires_grad_()
    weights = torch.ones(67, 4, 1, dtype=dtype)
    gap = (1 - c * x.square().sum(-1)).clamp_min(torch.finfo(dtype).eps).unsqueeze(-1)
    p = weights / weights.sum(-2, keepdim=True) / gap
    total_p = p.sum(-2)
    centre = (p * x).sum(-2) / total_p
    spread = (p * (x - centre.unsqueeze(-2)).square()).sum((-2, -1)).unsqueeze(-1)
    expected = 2 * total_p * centre / (2 * total_p - 1 + root(1 + 4 * c * total_p * spread))
    got = PoincareBall(c).mean(x)
    assert torch.equal(got, expected)
    assert torch.equal(*(torch.autograd.grad(y.sum(), x)[0] for y in (got, expected)))


@every_dtype
def test_gradients_of_angles_add_up_in_the_old_order_to_the_bit(dtype):
    """Both sides of a pair project the same points; gradients that were first added up per side would round apart."""
    x = ordinary(dtype)[3:].requires_grad_()
    y = ordinary(dtype)[3:].requires_grad_()
    unit = plain("sphere", 0.0, y), plain("sphere", 0.0, y)
    eps = torch.finfo(dtype).eps
    expected = 2 * torch.atan2(chords(*unit), chords(unit[0], -unit[1]).clamp_min(eps))
    got = Sphere().pairwise(x, x)
    assert torch.equal(got, expected)
    weights = torch.randn(got.shape, generator=torch.Generator().manual_seed(1), dtype=dtype)
    assert torch.equal(*(torch.autograd.grad((weights * angle).sum(), v)[0] for angle, v in ((got, x), (expected, y))))
