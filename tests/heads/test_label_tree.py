import pytest
import torch

from lib.errors import InputError
from lib.geometry import PoincareBall, Sphere
from lib.heads.label_tree import ProjectionHead, Wide

X = torch.randn(64, 6, generator=torch.Generator().manual_seed(0))


def head(geometry=None):
    return ProjectionHead(6, 4, hidden=8, geometry=geometry, generator=torch.Generator().manual_seed(0))


def test_it_is_two_layers_with_batch_norm_written_out():
    one = head().train()
    first, norm, _, last = one.layers
    h = X @ first.weight.T
    h = (h - h.mean(0)) / (h.var(0, unbiased=False) + norm.eps).sqrt()
    e = h.relu() @ last.weight.T + last.bias
    assert torch.allclose(one(X), e / e.norm(dim=-1, keepdim=True), atol=1e-6)


def test_a_start_brings_the_ball_to_the_norm_and_leaves_the_sphere_alone():
    one, same = head(PoincareBall(1.0)), head(Sphere())
    before = {name: value.clone() for name, value in same.state_dict().items()}
    one.start(X, 0.3)
    same.start(X, 0.3)
    assert one(X).norm(dim=-1).median().item() == pytest.approx(0.3, rel=1e-4)
    assert all(torch.equal(value, before[name]) for name, value in same.state_dict().items())
    with pytest.raises(InputError, match="not inside the ball"):
        one.start(X, 1.5)


def test_later_statistics_are_those_of_the_training():
    one = head()
    for _ in range(200):
        one(X)
    trained = one(X)
    assert torch.allclose(one.eval()(X), trained, atol=0.02)
    assert torch.allclose(one(X[:1]), one(X)[:1], atol=1e-6)  # alone as in company


def test_the_wide_layer_is_a_linear_layer_with_its_gradient():
    generator = torch.Generator().manual_seed(2)
    layer, plain = Wide(20, 6, bias=False), torch.nn.Linear(20, 6, bias=False)
    plain.load_state_dict(layer.state_dict())
    x, g = torch.randn(9, 20, generator=generator), torch.randn(9, 6, generator=generator)
    for one in (layer, plain):
        (one(x) * g).sum().backward()
    assert torch.allclose(layer(x), plain(x), atol=1e-6)
    assert torch.allclose(layer.weight.grad, plain.weight.grad, atol=1e-5)
