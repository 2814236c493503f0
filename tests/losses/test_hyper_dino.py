"""The loss equals its definition written as plain loops over pairs, in every geometry, and its gradients are finite."""

import math

import geoopt
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.hyper_dino import contrastive

GEOMETRIES = [Euclidean(), Sphere(), PoincareBall(1.0), PoincareBall(0.1), PoincareBall(0.0)]


def distance(x: torch.Tensor, y: torch.Tensor, geometry) -> float:
    """The distance from the textbook or from geoopt, not from lib."""
    if geometry.name == "euclidean":
        return math.dist(x.tolist(), y.tolist())
    if geometry.name == "sphere":
        cosine = float(x @ y / (x.norm() * y.norm()))
        return math.acos(max(-1.0, min(1.0, cosine)))
    if geometry.c == 0:
        return 2 * math.dist(x.tolist(), y.tolist())
    return float(geoopt.PoincareBall(c=geometry.c).dist(x, y))


def by_loops(h, labels, geometry, *, m0, alpha, norm_weight, self_pairs):
    """Hyper-DINO, section 2.3, one pair at a time."""
    n = len(h)
    pairs = [(i, j) for i in range(n) for j in range(n) if self_pairs or i != j]
    d = {(i, j): 0.0 if i == j else distance(h[i], h[j], geometry) for i, j in pairs}
    margin = m0 + alpha * sum(d.values()) / len(pairs)
    positive = [d[i, j] for i, j in pairs if labels[i] == labels[j]]
    negative = [max(0.0, margin - d[i, j]) for i, j in pairs if labels[i] != labels[j]]
    norm = norm_weight * sum(float(x.norm()) for x in h) / n
    mean = [sum(values) / len(values) if values else 0.0 for values in (positive, negative)]
    return {"total": sum(mean) + norm, "positive": mean[0], "negative": mean[1], "norm": norm, "margin": margin}


def points(seed: int, n: int, d: int = 5, scale: float = 0.3) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.rand(n, d, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g.name}-{getattr(g, 'c', '')}")
@pytest.mark.parametrize("self_pairs", [False, True])
def test_equals_plain_loops(geometry, self_pairs):
    h, labels = points(seed=1, n=9), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3])
    options = {"m0": 0.5, "alpha": 0.1, "norm_weight": 1e-3, "self_pairs": self_pairs}
    expected = by_loops(h, labels, geometry, **options)
    parts = contrastive(h, labels, geometry, **options)
    assert parts.total.dtype == torch.float64
    for name, value in expected.items():
        assert getattr(parts, name).item() == pytest.approx(value, rel=1e-6), name
    assert min(expected["positive"], expected["negative"]) > 0  # both terms are at work in this example


def test_a_stack_of_batches_equals_each_alone():
    h = torch.stack([points(seed, n=6) for seed in (1, 2, 3)])
    labels = torch.tensor([[0, 0, 1, 1, 2, 2], [0, 1, 1, 0, 2, 2], [1, 1, 1, 0, 0, 0]])
    stacked = contrastive(h, labels, PoincareBall(1.0))
    for i in range(3):
        alone = contrastive(h[i], labels[i], PoincareBall(1.0))
        torch.testing.assert_close(stacked.total[i], alone.total, rtol=1e-12, atol=0)


def test_self_pairs_dilute_the_positive_term():
    """Two images per class: half of the printed positive pairs are an image with itself (HD-9)."""
    h, labels = points(seed=4, n=4), torch.tensor([0, 0, 1, 1])
    without = contrastive(h, labels, Euclidean())
    with_self = contrastive(h, labels, Euclidean(), self_pairs=True)
    assert with_self.positive.item() == pytest.approx(without.positive.item() / 2, rel=1e-6)
    assert with_self.margin < without.margin


def test_the_mean_distance_passes_a_gradient_only_if_asked():
    """d(loss)/dh of far-apart classes inside the margin: with a live mean the margin itself can shrink."""
    labels = torch.tensor([0, 1])
    gradients = []
    for detach in (True, False):
        h = torch.tensor([[0.0, 0.0], [0.2, 0.0]], dtype=torch.float64, requires_grad=True)
        contrastive(h, labels, Euclidean(), alpha=0.1, norm_weight=0, detach_mean=detach).total.backward()
        gradients.append(h.grad[1, 0].item())
    # L = margin - d with margin = 0.5 + 0.1 d: slope in d is -1 when the mean is detached, -0.9 when it is not.
    assert gradients == pytest.approx([-1.0, -0.9])


def test_the_margin_keeps_the_embedding_nearly_flat():
    """HD-8: eight equally distant classes at zero loss have margin 0.5 + 0.1 (7/8) m in a balanced batch with self
    pairs counted per class, so m = 0.548."""
    side = 0.548 / math.sqrt(2)
    h = side * torch.eye(8, dtype=torch.float64).repeat_interleave(16, 0)
    labels = torch.arange(8).repeat_interleave(16)
    parts = contrastive(h, labels, Euclidean(), self_pairs=True, norm_weight=0)
    assert parts.margin.item() == pytest.approx(0.548, abs=1e-4)
    assert parts.total.item() == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("labels", [[0, 1, 2], [0, 0, 0], [0]], ids=["no positive", "no negative", "one image"])
def test_a_batch_without_pairs_of_a_kind_gives_zero_there(labels):
    h = points(seed=5, n=len(labels)).requires_grad_()
    parts = contrastive(h, torch.tensor(labels), PoincareBall(1.0))
    parts.total.backward()
    assert parts.positive.item() == 0 if labels != [0, 0, 0] else parts.positive.item() > 0
    assert parts.negative.item() == 0 if labels != [0, 1, 2] else parts.negative.item() > 0
    assert h.grad.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g.name}-{getattr(g, 'c', '')}")
def test_gradients_are_finite_at_zero_duplicates_and_the_rim(geometry, dtype):
    rim = geometry.project(torch.tensor([[1.0, 0, 0], [0, 1.0, 0]], dtype=dtype))
    zero = torch.zeros(2, 3, dtype=dtype)
    twins = torch.full((4, 3), 0.1, dtype=dtype)
    h = torch.cat([rim, zero, twins]).requires_grad_()
    parts = contrastive(h, torch.tensor([0, 1, 0, 1, 0, 0, 1, 1]), geometry)
    parts.total.backward()
    assert parts.total.dtype == dtype == h.grad.dtype
    assert parts.total.isfinite() and h.grad.isfinite().all()


def test_float32_agrees_with_float64():
    h, labels = points(seed=6, n=64, d=32, scale=0.1), torch.arange(64) % 8
    exact = contrastive(h, labels, PoincareBall(1.0)).total
    rounded = contrastive(h.float(), labels, PoincareBall(1.0)).total
    assert rounded.dtype == torch.float32
    assert rounded.item() == pytest.approx(exact.item(), rel=1e-5)


def test_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"labels have shape \(3,\), the embeddings need \(4,\)"):
        contrastive(points(seed=7, n=4), torch.tensor([0, 1, 2]), Euclidean())
