"""A batch of six images in two views."""

import pytest
import torch


@pytest.fixture
def batch() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Embeddings (12, 3), classes, of which there are five, and numbers of images."""
    generator = torch.Generator().manual_seed(3)
    leaves = torch.tensor([0, 1, 2, 3, 3, 4]).repeat(2)
    images = torch.arange(6).repeat(2)
    return 0.4 * torch.randn(12, 3, generator=generator, dtype=torch.float64), leaves, images
