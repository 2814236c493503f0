"""The mapper equals sections 2.2's formulas, stays inside the ball, and depends on its generator alone."""

import pytest
import torch

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall
from lib.heads import HyperbolicMapper


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_equals_the_formulas_of_section_2_2():
    mapper = HyperbolicMapper(7, 3, hidden=11, generator=seeded()).double()
    x = torch.randn(5, 7, generator=seeded(1), dtype=torch.float64)
    first, second = mapper.layers[0], mapper.layers[2]
    for row, h in zip(x, mapper(x), strict=True):
        e = second.weight @ (first.weight @ row + first.bias).clamp(min=0) + second.bias
        expected = torch.tanh(e.norm()) * e / e.norm()
        torch.testing.assert_close(h, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("c", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-3, 0.2])
def test_long_features_stop_short_of_the_rim(c, delta):
    mapper = HyperbolicMapper(4, 2, geometry=PoincareBall(c), delta=delta, generator=seeded())
    h = mapper(1e4 * torch.randn(50, 4, generator=seeded(1)))
    reached = h.norm(dim=-1).max().item() * c**0.5
    assert reached == pytest.approx(1 - delta, rel=1e-5)
    assert reached < 1


def features(n: int, dim: int) -> torch.Tensor:
    return 3 * torch.randn(n, dim, generator=seeded(1))


@pytest.mark.parametrize("geometry", [PoincareBall(1.0), PoincareBall(0.1), Euclidean()], ids=str)
@pytest.mark.parametrize("norm", [0.1, 0.3])
def test_images_begin_at_the_stated_median_norm(geometry, norm):
    mapper = HyperbolicMapper(300, 40, geometry=geometry, generator=seeded())
    x = features(61, 300)
    directions = torch.nn.functional.normalize(mapper.layers(x).detach(), dim=-1)
    mapper.start(x, norm)
    h = mapper(x).detach()
    assert h.norm(dim=-1).median().item() == pytest.approx(norm, rel=1e-5)
    torch.testing.assert_close(torch.nn.functional.normalize(h, dim=-1), directions)


@pytest.mark.parametrize("norm", [0.0, 2.0, 2.5, float("nan")])
def test_a_start_on_the_rim_or_beyond_is_refused(norm):
    mapper = HyperbolicMapper(6, 3, geometry=PoincareBall(0.25), generator=seeded())
    with pytest.raises(InputError, match=f"start_norm = {norm:g} is not inside the ball of radius 2"):
        mapper.start(features(5, 6), norm)


def test_a_mapper_that_sends_all_to_the_centre_has_no_start():
    mapper = HyperbolicMapper(6, 3, generator=seeded())
    torch.nn.init.zeros_(mapper.layers[-1].weight)
    torch.nn.init.zeros_(mapper.layers[-1].bias)
    with pytest.raises(InputError, match="sends half of the images to the centre"):
        mapper.start(features(5, 6), 0.3)
