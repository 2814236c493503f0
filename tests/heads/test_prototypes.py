"""The prototype encoder is the printed one, and its weights come from its generator."""

import torch

from lib.geometry import PoincareBall
from lib.heads import PrototypeEncoder


def test_it_is_two_linear_layers_with_a_gelu_between():
    head = PrototypeEncoder(10, generator=torch.Generator().manual_seed(0))
    assert [tuple(p.shape) for p in head.parameters()] == [(512, 10), (512,), (128, 512), (128,)]
    x = torch.randn(3, 10, generator=torch.Generator().manual_seed(1))
    first, _, second = head.layers
    inner = x @ first.weight.T + first.bias
    inner = inner * (1 + torch.erf(inner / 2**0.5)) / 2
    torch.testing.assert_close(head(x), inner @ second.weight.T + second.bias)


def test_in_the_ball_it_ends_inside():
    head = PrototypeEncoder(10, 4, geometry=PoincareBall(1.0), generator=torch.Generator().manual_seed(0))
    flat = PrototypeEncoder(10, 4, generator=torch.Generator().manual_seed(0))
    x = 100 * torch.randn(5, 10, generator=torch.Generator().manual_seed(1))
    assert head(x).norm(dim=1).max() < 1
    torch.testing.assert_close(head(x / 100), PoincareBall(1.0).exp0(flat(x / 100) / 2))


def test_an_untrained_head_starts_in_the_middle_of_the_ball():
    head = PrototypeEncoder(384, geometry=PoincareBall(1.0), generator=torch.Generator().manual_seed(0))
    norms = head(torch.randn(50, 384, generator=torch.Generator().manual_seed(1))).norm(dim=1)
    assert norms.min() > 0.05 and norms.max() < 0.5
