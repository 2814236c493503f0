"""The stated error of float32 distances, and finite gradients, over 10⁵ random pairs at all radii."""

import pytest
import torch

from lib.geometry import PoincareBall

PAIRS = 100_000
RADII = (0.1, 0.999)  # √c‖x‖


def pairs(d: int, c: float, near: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs of float32 points; ``near``: the second lies 1e-6 to 1e-4 of the radius beside the first."""
    generator = torch.Generator().manual_seed(d)

    def draw() -> torch.Tensor:
        way = torch.nn.functional.normalize(torch.randn(PAIRS, d, generator=generator, dtype=torch.float64), dim=1)
        low, high = RADII
        return way * (low + (high - low) * torch.rand(PAIRS, 1, generator=generator, dtype=torch.float64)) / c**0.5

    x, y = draw(), draw()
    if near:
        step = 10 ** (-4 - 2 * torch.rand(PAIRS, 1, generator=generator, dtype=torch.float64))
        y = x * (1 - step * torch.rand(PAIRS, 1, generator=generator)) + 0.01 * step * y
        y = PoincareBall(c).project(y, margin=1 - RADII[1])
    return x.float(), y.float()


def cost_of_rounding(x: torch.Tensor, c: float) -> torch.Tensor:
    squared = c * x.double().square().sum(-1)
    return (x.shape[-1] + 2) * 2.0**-24 * squared / (1 - squared)


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize(("d", "c"), [(2, 1.0), (32, 1.0), (32, 0.1), (384, 1.0)])
def test_float32_distances_stay_within_the_stated_bound(d, c, near):
    x, y = pairs(d, c, near)
    ball = PoincareBall(c)
    truth = ball.between(x.double(), y.double())
    bound = 1e-6 + (cost_of_rounding(x, c) + cost_of_rounding(y, c)) / 2
    rows = ball.between(x, y)
    assert ((rows - truth).abs() <= bound * truth).all()
    n = 400  # and of all pairs of a few: the matrix product beyond 64 numbers
    few = ball.pairwise(x[:n], y[:n])
    truth = ball.pairwise(x[:n].double(), y[:n].double())
    bound = 1e-6 + (cost_of_rounding(x[:n], c)[:, None] + cost_of_rounding(y[:n], c)) / 2
    assert ((few - truth).abs() <= bound * truth).all()


@pytest.mark.parametrize("near", [False, True])
@pytest.mark.parametrize("d", [2, 32])
def test_gradients_are_finite_in_all_these_cases(d, near):
    x, y = (points.requires_grad_() for points in pairs(d, 1.0, near))
    ball = PoincareBall(1.0)
    ball.between(x, y).sum().backward()
    assert x.grad.isfinite().all() and y.grad.isfinite().all()
    x.grad = y.grad = None
    for start in range(0, PAIRS, 1000):
        block = slice(start, start + 1000)
        ball.pairwise(x[block], y[start : start + 100]).sum().backward()
    assert x.grad.isfinite().all() and y.grad.isfinite().all()
