"""Features of any length end inside the ball, in their own order."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import RIM_MARGIN, PoincareBall, Sphere
from lib.geometry.scale import Scale


@pytest.mark.parametrize("length", [1e-25, 1e-3, 30.0, 1e25])
@pytest.mark.parametrize("c", [0.1, 1.0, 4.0])
def test_the_longest_of_the_gallery_ends_at_the_radius_and_directions_stay(c, length):
    x = length * torch.randn(50, 16, generator=torch.Generator().manual_seed(0))
    points = Scale.fit(x, PoincareBall(c), radius=0.3)(x)
    norms = c**0.5 * points.norm(dim=1)
    assert norms.max().item() == pytest.approx(0.3, rel=1e-5)
    assert torch.equal(norms.argsort(), x.double().norm(dim=1).argsort())
    torch.testing.assert_close(
        points / points.norm(dim=1, keepdim=True), x / x.double().norm(dim=1, keepdim=True).float()
    )


def test_a_query_takes_the_factor_of_the_gallery_and_stops_at_the_boundary_of_project():
    gallery = torch.eye(3)
    scale = Scale.fit(gallery, PoincareBall(), radius=0.5)
    assert scale(gallery[:1] / 2).norm().item() == pytest.approx(np.tanh(np.arctanh(0.5) / 2))
    assert scale(1e30 * gallery[:1]).norm().item() == pytest.approx(1 - RIM_MARGIN[torch.float32])


@pytest.mark.parametrize(
    ("gallery", "c", "radius", "message"),
    [
        (torch.ones(2, 3), 1.0, 1.0, "radius = 1 is not within"),
        (torch.ones(2, 3), 1.0, 0.0, "radius = 0 is not within"),
        (torch.ones(2, 3), 0.0, 0.1, "use the features as they are"),
        (torch.ones(3), 1.0, 0.1, r"shape \(3,\)"),
        (torch.ones(0, 3), 1.0, 0.1, "at least one row"),
        (torch.tensor([[1.0], [torch.nan]]), 1.0, 0.1, "gallery row 1 holds NaN"),
        (torch.zeros(2, 3), 1.0, 0.1, "are zero"),
        ([["a"]], 1.0, 0.1, "cannot be read as numbers"),
    ],
)
def test_what_cannot_be_scaled_is_refused(gallery, c, radius, message):
    with pytest.raises(InputError, match=message):
        Scale.fit(gallery, PoincareBall(c), radius)


@pytest.mark.parametrize(
    ("ball", "radius"), [("poincare", 0.1), (Sphere(), 0.1), (PoincareBall(), "0.1"), (PoincareBall(), None)]
)
def test_what_is_no_ball_or_no_number_is_refused_in_words(ball, radius):
    with pytest.raises(InputError):
        Scale.fit([[3.0, 4.0]], ball, radius)
