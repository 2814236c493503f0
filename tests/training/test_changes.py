"""Each image of a batch changes by its own amounts, as torchvision changes one image by them."""

import pytest
import torch
from torchvision.transforms.v2 import functional

from lib.training.changes import blurred, recoloured


@pytest.fixture
def x() -> torch.Tensor:
    """Noise, and among it images without colour, black, white, and of one colour."""
    x = torch.rand(9, 3, 20, 24, generator=torch.Generator().manual_seed(0))
    x[5], x[6], x[7] = x[5, :1], 0, 1
    x[8] = torch.tensor([0.9, 0.2, 0.2])[:, None, None]
    return x


def amounts(low: float, high: float, seed: int) -> torch.Tensor:
    return low + (high - low) * torch.rand(9, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_colours_are_those_of_torchvision_one_change_after_the_other(x):
    factors, hue = [amounts(0.2, 1.8, seed) for seed in range(3)], amounts(-0.5, 0.5, 3)
    changes = functional.adjust_brightness, functional.adjust_contrast, functional.adjust_saturation
    for row, ours in enumerate(recoloured(x, *factors, hue)):
        one = x[row]
        for change, factor in zip(changes, factors, strict=True):
            one = change(one, factor[row].item())
        torch.testing.assert_close(ours, functional.adjust_hue(one, hue[row].item()), atol=2e-6, rtol=0)


@pytest.mark.parametrize("width", [3, 11])
def test_each_image_is_blurred_by_its_own_deviation_as_torchvision_does(x, width):
    sigma = amounts(0.1, 3.0, 4)
    for row, ours in enumerate(blurred(x, sigma, width)):
        expected = functional.gaussian_blur(x[row], [width, width], [sigma[row].item()] * 2)
        torch.testing.assert_close(ours, expected, atol=2e-6, rtol=0)
