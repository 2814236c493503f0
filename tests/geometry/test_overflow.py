"""What is too long to be squared goes to the rim in its own direction."""

import math

import pytest
import torch
from torch import Tensor

from lib.geometry import RIM_MARGIN, PoincareBall, Sphere, clip

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
