"""The Fréchet mean against scipy's minimiser and finite differences."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.autograd import gradcheck

from lib.errors import InputError
from lib.geometry import PoincareBall
from lib.geometry.means import NotConverged, frechet_mean


def cloud(n: int, d: int, seed: int, reach: float = 0.9, c: float = 1.0, batch: tuple[int, ...] = ()) -> torch.Tensor:
    random = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch, n, d, generator=random, dtype=torch.float64)
    radius = torch.rand(*batch, n, 1, generator=random, dtype=torch.float64) * reach / c**0.5
    return x / x.norm(dim=-1, keepdim=True) * radius


def squares(mean: torch.Tensor, x: torch.Tensor, weights: torch.Tensor, c: float) -> torch.Tensor:
    return (weights * PoincareBall(c).between(mean.unsqueeze(-2), x).square()).sum(-1)


@pytest.mark.parametrize("c", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("reach", [0.3, 0.9, 0.99])
def test_it_minimises_the_sum_of_squares(c, reach):
    x = cloud(9, 3, 1, reach, c)
    weights = torch.rand(9, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    mean = frechet_mean(x, c, weights)
    start = PoincareBall(c).mean(x, weights).numpy()
    found = minimize(
        lambda m: squares(torch.from_numpy(m), x, weights, c).item(), start, method="Nelder-Mead",
        options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000},
    )  # fmt: skip
    np.testing.assert_allclose(mean.numpy(), found.x, atol=1e-6)
    assert squares(mean, x, weights, c) <= squares(torch.from_numpy(start), x, weights, c)


def test_of_two_points_it_is_the_midpoint_and_of_one_the_point():
    x = cloud(2, 5, 3, 0.95)
    torch.testing.assert_close(frechet_mean(x, 1.0), PoincareBall(1.0).mean(x), atol=1e-9, rtol=0)
    torch.testing.assert_close(frechet_mean(x[:1], 1.0), x[0], atol=1e-12, rtol=0)
    torch.testing.assert_close(frechet_mean(x[:1].expand(4, 5), 1.0), x[0], atol=1e-12, rtol=0)


def test_a_batch_of_sets_is_each_set_alone():
    x, weights = cloud(6, 4, 5, batch=(2, 3)), torch.rand(2, 3, 6, generator=torch.Generator().manual_seed(0))
    together = frechet_mean(x, 0.5, weights)
    assert together.shape == (2, 3, 4)
    for i, j in np.ndindex(2, 3):
        torch.testing.assert_close(together[i, j], frechet_mean(x[i, j], 0.5, weights[i, j]), atol=1e-8, rtol=0)


def test_gradients_are_those_of_the_mean():
    x = cloud(5, 2, 8, 0.8).requires_grad_()
    weights = (0.1 + torch.rand(5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)).requires_grad_()
    assert gradcheck(lambda x, w: frechet_mean(x, 1.0, w, tolerance=1e-13), (x, weights), eps=1e-6, atol=1e-5)
    batch = cloud(4, 2, 9, batch=(2,)).requires_grad_()
    assert gradcheck(lambda x: frechet_mean(x, 0.3, tolerance=1e-13), (batch,), eps=1e-6, atol=1e-5)


def test_gradients_are_finite_at_duplicates_and_close_to_the_rim():
    same = cloud(1, 3, 10).expand(4, 3).clone().requires_grad_()
    frechet_mean(same, 1.0).sum().backward()
    torch.testing.assert_close(same.grad, torch.full((4, 3), 0.25, dtype=torch.float64), atol=1e-6, rtol=0)
    rim = (cloud(6, 3, 11, reach=0.5) * 0.999 / cloud(6, 3, 11, reach=0.5).norm(dim=-1, keepdim=True)).requires_grad_()
    frechet_mean(rim, 1.0).sum().backward()
    assert rim.grad.isfinite().all()


def test_float32_goes_in_and_comes_out():
    x = cloud(8, 16, 12, 0.99)
    narrow = frechet_mean(x.float(), 1.0)
    assert narrow.dtype == torch.float32
    torch.testing.assert_close(narrow.double(), frechet_mean(x, 1.0), atol=1e-5, rtol=0)


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="rim"):
        frechet_mean(torch.tensor([[1.0, 0.0], [0.0, 0.0]]), 1.0)
    with pytest.raises(InputError, match="weights"):
        frechet_mean(torch.zeros(2, 2), 1.0, torch.tensor([1.0, -1.0]))
    with pytest.raises(NotConverged, match="after 1 steps"):
        frechet_mean(cloud(9, 3, 1, 0.99), 1.0, max_steps=1)
