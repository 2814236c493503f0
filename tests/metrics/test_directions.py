"""Spread, spectrum and effective rank by hand."""

import math

import pytest
import torch

from lib.metrics.directions import effective_rank, spectrum, spread


def test_spread_by_hand():
    """Unit vectors along the axes, both ways: each number is 0 except in one pair of 2d, so its variance is 1/d."""
    axes = torch.cat([torch.eye(5), -torch.eye(5)])
    assert spread(3 * axes).item() == pytest.approx(1)
    assert spread(torch.ones(4, 5) * torch.tensor([[1.0], [2], [3], [4]])).item() == pytest.approx(0, abs=1e-6)


def test_spectrum_and_effective_rank_by_hand():
    """Deviations 3 and 4 along two axes that are turned: shares 9/25 and 16/25. Far apart, and yet of rank 2 of 3."""
    turned = torch.linalg.qr(torch.randn(3, 3, generator=torch.Generator().manual_seed(0)))[0]
    ends = torch.tensor([[3.0, 0, 0], [-3, 0, 0], [0, 4, 0], [0, -4, 0]])
    shares = spectrum(10 + ends @ turned)
    assert shares.tolist() == pytest.approx([16 / 25, 9 / 25, 0], abs=1e-6)
    entropy = -(0.64 * math.log(0.64) + 0.36 * math.log(0.36))
    assert effective_rank(ends @ turned).item() == pytest.approx(math.exp(entropy), abs=1e-4)
    assert effective_rank(torch.cat([torch.eye(5), -torch.eye(5)])).item() == pytest.approx(5)
    assert spread(ends) > 0.5
