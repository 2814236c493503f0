"""The head equals Equations 3 and 7, starts orthogonal, and its points stay where clipping puts them."""

import math

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads.hyp_vit import ClippedProjection


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(("dim_in", "dim_out"), [(12, 5), (5, 12)])
def test_the_start_is_semi_orthogonal_without_a_bias(dim_in, dim_out):
    head = ClippedProjection(dim_in, dim_out, generator=seeded()).double()
    weight = head.linear.weight.detach()
    product = weight @ weight.T if dim_out < dim_in else weight.T @ weight
    torch.testing.assert_close(product, torch.eye(5, dtype=torch.float64), atol=1e-6, rtol=0)
    assert not head.linear.bias.any()


@pytest.mark.parametrize("c", [0.1, 1.0])
def test_in_the_ball_it_is_equations_7_and_3(c):
    head = ClippedProjection(7, 4, geometry=PoincareBall(c), clip_radius=1.5, generator=seeded()).double()
    x = torch.randn(6, 7, generator=seeded(1), dtype=torch.float64)
    x[3:] *= 10
    for row, z in zip(x, head(x), strict=True):
        e = head.linear.weight @ row
        e = min(1.0, 1.5 / e.norm().item()) * e
        expected = torch.tanh(math.sqrt(c) * e.norm()) * e / (math.sqrt(c) * e.norm())
        torch.testing.assert_close(z, expected, rtol=1e-12, atol=1e-12)


def test_on_the_sphere_it_is_a_direction_and_clipping_does_nothing():
    x = torch.randn(6, 7, generator=seeded(1), dtype=torch.float64) * torch.logspace(-2, 2, 6)[:, None]
    heads = [ClippedProjection(7, 4, geometry=Sphere(), clip_radius=r, generator=seeded()) for r in (2.3, None)]
    clipped, plain = (head.double()(x) for head in heads)
    e = x @ heads[0].linear.weight.T
    torch.testing.assert_close(clipped, e / e.norm(dim=1, keepdim=True))
    torch.testing.assert_close(clipped, plain)


def test_the_flat_control_is_clipped_and_nothing_else():
    head = ClippedProjection(7, 4, geometry=Euclidean(), clip_radius=2.0, generator=seeded())
    x = torch.randn(6, 7, generator=seeded(1)) * torch.tensor([0.1] * 3 + [100.0] * 3)[:, None]
    torch.testing.assert_close(head(x)[:3], head.linear(x)[:3])
    torch.testing.assert_close(head(x)[3:].norm(dim=1), torch.full((3,), 2.0))


@pytest.mark.parametrize(
    "setting", [{"clip_radius": 0.0}, {"clip_radius": math.nan}, {"dim_out": 0}, {"geometry": "poincare"}]
)
def test_values_without_meaning_are_refused(setting):
    with pytest.raises(InputError, match=f"{next(iter(setting))} = .* cannot be used"):
        ClippedProjection(4, **setting)


def test_what_has_no_curvature_learns_none():
    with pytest.raises(InputError, match="no curvature to learn"):
        ClippedProjection(4, 2, geometry=Sphere(), learn_c=True)
