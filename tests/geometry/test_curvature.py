"""A learnt curvature: positive, bounded, never decayed, never stuck."""

import pytest
import torch

from lib.errors import InputError
from lib.geometry.curvature import Curvature, parameter_groups


def descend(target: float, initial: float = 1.0, steps: int = 400, start: float | None = None) -> float:
    """Fit c so that a point at distance 1 along the axis of the flat space lies at distance ``target``."""
    curvature = Curvature(initial)
    if start is not None:
        curvature.log_c.data.fill_(start)
    optimiser = torch.optim.Adam(curvature.parameters(), lr=0.05)
    x = torch.tensor([[0.25, 0.0]])
    for _ in range(steps):
        optimiser.zero_grad()
        (curvature().between(torch.zeros(1, 2), x) - target).square().sum().backward()
        optimiser.step()
    return curvature().c.item()


def test_it_learns_the_curvature_that_explains_a_distance():
    # d = 2/sqrt(c) artanh(0.25 sqrt(c)) is 0.5 (1 + c/48 + ...): solved for c = 4 below.
    c = 4.0
    target = (2 / c**0.5 * torch.atanh(torch.tensor(0.25 * c**0.5))).item()
    assert descend(target) == pytest.approx(c, rel=1e-2)


@pytest.mark.parametrize(("target", "bound"), [(5.0, 10.0), (0.1, 0.1)])
def test_it_stays_within_its_factor(target, bound):
    assert descend(target) == pytest.approx(bound, rel=1e-5)


def test_beyond_its_range_it_still_comes_back():
    target = (2 * torch.atanh(torch.tensor(0.25))).item()  # c = 1
    assert descend(target, start=4.0) < 5 and descend(target, start=-4.0) > 0.2  # at the bounds they are 10 and 0.1


def test_weight_decay_touches_the_weights_and_not_the_curvature():
    head = torch.nn.Sequential(torch.nn.Linear(3, 2), Curvature(0.1))
    weights, curvatures = parameter_groups([head], weight_decay=0.5)
    assert weights["weight_decay"] == 0.5 and len(weights["params"]) == 2
    assert curvatures["weight_decay"] == 0.0 and curvatures["params"][0] is head[1].log_c
    optimiser = torch.optim.SGD([weights, curvatures], lr=0.1)
    before = head[0].weight.detach().clone()
    for parameter in head.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step()
    assert not torch.equal(head[0].weight, before) and head[1]().c.item() == pytest.approx(0.1)


@pytest.mark.parametrize(("initial", "factor"), [(0.0, 10), (-1.0, 10), (float("nan"), 10), (1.0, 0.5)])
def test_what_is_no_curvature_is_refused(initial, factor):
    with pytest.raises(InputError, match="expected a finite c > 0"):
        Curvature(initial, factor)
