"""What all heads share: weights from their generator, points inside the space, gradients that are finite anywhere."""

from collections.abc import Callable

import pytest
import torch

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.heads.acir import ConsolidatedHash
from lib.heads.hashing import HashHead
from lib.heads.hyp_vit import ClippedProjection
from lib.heads.label_tree import ProjectionHead
from lib.heads.mapper import HyperbolicMapper
from lib.heads.prototypes import PrototypeEncoder

DIM = 7
HEADS = {
    **{
        f"{kind.__name__}, {space}": lambda kind=kind, space=space, **more: kind(DIM, 4, geometry=space, **more)
        for kind in (ClippedProjection, HyperbolicMapper, PrototypeEncoder, ProjectionHead)
        for space in (PoincareBall(0.1), PoincareBall(1.0), Sphere(), Euclidean())
    },
    "ClippedProjection, no clip": lambda **more: ClippedProjection(
        DIM, 4, geometry=PoincareBall(1.0), clip_radius=None, **more
    ),
    "PrototypeEncoder, linear": lambda **more: PrototypeEncoder(DIM, 4, hidden=0, **more),
    **{f"HashHead, {kind}": lambda kind=kind, **more: HashHead(DIM, 4, kind=kind, **more) for kind in ("mlp", "kan")},
}
every = pytest.mark.parametrize("make", HEADS.values(), ids=HEADS)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    "make", [*HEADS.values(), lambda **more: ConsolidatedHash(8, 12, 3, **more)], ids=[*HEADS, "ACIR"]
)
def test_the_generator_alone_decides_the_weights(make: Callable):
    states = []
    for global_seed, seed in ((1, 3), (2, 3), (2, 4)):
        torch.manual_seed(global_seed)
        states.append(torch.cat([value.flatten() for value in make(generator=seeded(seed)).state_dict().values()]))
    assert torch.equal(states[0], states[1]) and not torch.equal(states[0], states[2])


@every
@pytest.mark.parametrize("scale", [0.0, 1.0, 1e4, 1e15])
def test_points_and_gradients_are_finite_and_inside_the_space(make: Callable, scale):
    head = make(generator=seeded())
    x = (scale * torch.randn(5, DIM, generator=seeded(1))).requires_grad_()
    h = head(x)
    h.sum().backward()
    assert h.isfinite().all() and x.grad.isfinite().all()
    assert all(value.grad is None or value.grad.isfinite().all() for value in head.parameters())
    space = getattr(head, "geometry", None)
    if isinstance(space, PoincareBall):
        assert h.norm(dim=-1).max() < space.c**-0.5


@pytest.mark.parametrize("kind", [ClippedProjection, HyperbolicMapper, PrototypeEncoder])
def test_a_head_that_has_run_away_gives_nan(kind):
    assert kind(2, 2, generator=seeded())(torch.full((1, 2), 1e30)).isnan().all()


@pytest.mark.parametrize(
    ("head", "shapes"),
    [
        (HyperbolicMapper(384), [(256, 384), (256,), (32, 256), (32,)]),
        (ClippedProjection(384), [(128, 384), (128,)]),
        (PrototypeEncoder(384), [(512, 384), (512,), (128, 512), (128,)]),
    ],
)
def test_sizes_are_the_published_ones(head, shapes):
    assert [tuple(value.shape) for value in head.parameters()] == shapes
