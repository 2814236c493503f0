"""The head of the distillation gives cosines with its prototypes."""

import pytest
import torch

from lib.heads.dino import ProjectionHead


def test_logits_are_cosines_with_the_prototypes():
    torch.manual_seed(0)
    head = ProjectionHead(6, 5, hidden=8, bottleneck=4)
    features = torch.randn(3, 2, 6)
    logits = head(features)
    assert logits.shape == (3, 2, 5)
    for i in range(3):
        short = head.layers(features[i, 1])
        for k in range(5):
            cosine = short @ head.prototypes[k] / (short.norm() * head.prototypes[k].norm())
            assert logits[i, 1, k].item() == pytest.approx(cosine.item(), abs=1e-6)
