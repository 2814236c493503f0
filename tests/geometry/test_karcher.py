"""A step towards a mean of the ball."""

import pytest
import torch

from lib.geometry import PoincareBall, Sphere, karcher


@pytest.mark.parametrize("length", [0.05, 1.0])
def test_a_karcher_step_in_float32_is_that_of_float64_near_the_rim(length):
    ball = PoincareBall(1.0)
    start, *points = 0.999 * Sphere().project(torch.randn(9, 5, generator=torch.Generator().manual_seed(1)))
    points = torch.stack(points)
    rounded = karcher.step(ball, start, points, length)
    exact = karcher.step(ball, start.double(), points.double(), length)
    assert rounded.dtype == torch.float32 and torch.equal(rounded, exact.float())
