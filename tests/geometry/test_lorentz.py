"""The hyperboloid against the ball's own distance and geoopt's, whose k is 1/c."""

import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.geometry.lorentz import lift, lower


def points(c: float, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    x = torch.randn(40, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return (x / x.norm(dim=-1, keepdim=True) * torch.linspace(0, 0.999, 40)[:, None] / c**0.5).to(dtype)


def inner(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a[:, 1:] @ b[:, 1:].T - a[:, :1] @ b[:, :1].T


@pytest.mark.parametrize("c", [0.1, 1.0, 3.0])
def test_lifted_points_lie_on_the_hyperboloid_and_keep_their_distances(c):
    x = points(c)
    high = lift(x, c)
    torch.testing.assert_close(
        inner(high, high).diagonal(), torch.full((40,), -1 / c, dtype=x.dtype), rtol=1e-7, atol=0
    )
    there = torch.acosh((-c * inner(high, high)).clamp_min(1)) / c**0.5
    torch.testing.assert_close(there, PoincareBall(c).pairwise(x, x), atol=1e-3, rtol=1e-6)


@pytest.mark.parametrize("c", [0.1, 1.0, 3.0])
def test_there_and_back(c):
    x = points(c)
    torch.testing.assert_close(lower(lift(x, c), c), x, atol=1e-13, rtol=1e-12)
    narrow = points(c, torch.float32)
    torch.testing.assert_close(lower(lift(narrow, c), c), narrow, atol=1e-6, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_it_is_geoopts_hyperboloid_of_k_one_over_c():
    import geoopt

    x, c = points(0.25), 0.25
    high = lift(x, c)
    theirs = geoopt.Lorentz(k=torch.tensor(1 / c, dtype=torch.float64)).dist(high[:1], high[1:])
    torch.testing.assert_close(theirs, PoincareBall(c).pairwise(x[:1], x[1:])[0], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("c", [0.0, -1.0, float("inf"), float("nan")])
def test_only_a_curved_space_has_one(c):
    with pytest.raises(InputError, match="finite c > 0"):
        lift(torch.zeros(1, 2), c)
    with pytest.raises(InputError, match="finite c > 0"):
        lower(torch.zeros(1, 3), c)


def test_the_rim_has_no_place_on_it():
    with pytest.raises(InputError, match="project first"):
        lift(torch.tensor([[1.0, 0.0]]), 1.0)
