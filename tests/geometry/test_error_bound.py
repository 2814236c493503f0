"""The stated error of float32 distances, over 10⁵ random pairs at all radii (10⁴ of 384 numbers)."""

import pytest
import torch

from lib.geometry import PoincareBall

RADII = (0.1, 0.999)  # √c‖x‖


def pairs(d: int, c: float, near: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Pairs of float32 points; ``near``: the second lies 1e-6 to 1e-4 of the radius beside the first."""
    generator, n = torch.Generator().manual_seed(d), 10_000 if d > 100 else 100_000

    def draw() -> torch.Tensor:
        way = torch.nn.functional.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)
        low, high = RADII
        return way * (low + (high - low) * torch.rand(n, 1, generator=generator, dtype=torch.float64)) / c**0.5

    x, y = draw(), draw()
    if near:
        step = 10 ** (-4 - 2 * torch.rand(n, 1, generator=generator, dtype=torch.float64))
        y = x * (1 - step * torch.rand(n, 1, generator=generator)) + 0.01 * step * y
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
