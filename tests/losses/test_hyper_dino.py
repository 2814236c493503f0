"""The loss equals its definition written as plain loops over pairs, in every geometry, and its gradients are finite."""

import math

import geoopt
import pytest
import torch

from lib.errors import InputError
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
    for labels, words in (
        ([0, 0, 1, -1], "run from -1"),
        ([0.0, 0.0, 1.0, 1.0], r"take labels\.long"),
        ([], "no images"),
    ):
        with pytest.raises(InputError, match=words):
            contrastive(torch.zeros(len(labels), 2), torch.tensor(labels), Euclidean())
    with pytest.raises(InputError, match=r"labels have shape \(3,\), the embeddings need \(4,\)"):
        contrastive(points(seed=7, n=4), torch.tensor([0, 1, 2]), Euclidean())


# Rows that only fill up


def padded() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Four batches of 9, 5, 2 and 1 images anywhere in it; the rest repeat row 0, in one beyond the rim."""
    h = torch.stack([points(seed, n=9) for seed in (11, 12, 13, 14)])
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3]).repeat(4, 1)
    counted = [range(9), range(5), (3, 4), (5,)]
    valid = torch.tensor([[row in rows for row in range(9)] for rows in counted])
    filling = torch.tensor([1.0, 1.0, 4.0, 1.0]).reshape(4, 1, 1) * h[:, :1]
    return torch.where(valid.unsqueeze(-1), h, filling), labels, valid


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g.name}-{getattr(g, 'c', '')}")
@pytest.mark.parametrize("self_pairs", [False, True])
@pytest.mark.parametrize("detach_mean", [False, True])
def test_only_valid_rows_count(geometry, self_pairs, detach_mean):
    """Values and gradients of a stack are those of each batch's valid rows alone; the others get exactly 0."""
    h, labels, valid = padded()
    options = {"self_pairs": self_pairs, "detach_mean": detach_mean, "norm_weight": 0.1}
    h.requires_grad_()
    parts = contrastive(h, labels, geometry, valid=valid, **options)
    (gradient,) = torch.autograd.grad(parts.total.sum(), h)
    for i in range(4):
        rows = h[i, valid[i]].detach().requires_grad_()
        alone = contrastive(rows, labels[i, valid[i]], geometry, **options)
        for name, value in alone._asdict().items():
            torch.testing.assert_close(getattr(parts, name)[i], value, rtol=1e-12, atol=1e-15)
        (expected,) = torch.autograd.grad(alone.total, rows)
        torch.testing.assert_close(gradient[i, valid[i]], expected, rtol=1e-9, atol=1e-12)
        assert (gradient[i, ~valid[i]] == 0).all()
    assert (gradient[:3][valid[:3]] != 0).any(-1).all()


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=lambda g: f"{g.name}-{getattr(g, 'c', '')}")
@pytest.mark.parametrize("self_pairs", [False, True])
def test_valid_rows_equal_plain_loops(geometry, self_pairs):
    h, labels, valid = padded()
    options = {"m0": 0.5, "alpha": 0.1, "norm_weight": 1e-3, "self_pairs": self_pairs}
    parts = contrastive(h, labels, geometry, valid=valid, **options)
    for i in range(3):  # a single image has no pair to loop over
        expected = by_loops(h[i, valid[i]], labels[i, valid[i]], geometry, **options)
        for name, value in expected.items():
            assert getattr(parts, name)[i].item() == pytest.approx(value, rel=1e-6), name


def test_leading_dimensions_are_independent_batches():
    """Changing a batch moves its own loss alone, whatever the shape of the stack."""
    h, labels, valid = (values.unflatten(0, (2, 2)) for values in padded())
    before = contrastive(h, labels, PoincareBall(1.0), valid=valid).total
    changed = h.clone()
    changed[1, 0] *= 0.5
    after = contrastive(changed, labels, PoincareBall(1.0), valid=valid).total
    assert before.shape == (2, 2)
    assert (before != after).tolist() == [[False, False], [True, False]]


def test_filling_up_changes_nothing_in_float32_with_many_dimensions():
    """As a sweep does it: 384 numbers, the last batch of an epoch filled up with copies of one image."""
    h, labels = points(seed=15, n=40, d=384, scale=0.02).float(), torch.arange(40) % 8
    alone, filled = h.clone().requires_grad_(), torch.cat([h, h[:1].repeat(24, 1)]).requires_grad_()
    expected = contrastive(alone, labels, PoincareBall(1.0)).total
    got = contrastive(
        filled, torch.cat([labels, labels[:1].repeat(24)]), PoincareBall(1.0), valid=torch.arange(64) < 40
    ).total
    assert got.item() == pytest.approx(expected.item(), rel=1e-6)
    (slope,), (slope_filled,) = torch.autograd.grad(expected, alone), torch.autograd.grad(got, filled)
    torch.testing.assert_close(slope_filled[:40], slope, rtol=1e-4, atol=1e-6 * slope.abs().max().item())
    assert (slope_filled[40:] == 0).all()


def test_all_rows_count_if_not_told():
    h, labels = points(seed=16, n=9), torch.tensor([0, 0, 0, 1, 1, 2, 2, 2, 3])
    for detach in (True, False):
        plain = contrastive(h, labels, PoincareBall(1.0), detach_mean=detach)
        told = contrastive(h, labels, PoincareBall(1.0), detach_mean=detach, valid=torch.ones(9, dtype=torch.bool))
        assert plain == told


def test_class_numbers_may_be_large_and_have_gaps():
    h = points(seed=17, n=6).float()
    small, large = torch.tensor([0, 0, 1, 1, 2, 2]), torch.tensor([5, 5, 2**24 - 2, 2**24 - 2, 2**24 - 1, 2**24 - 1])
    assert contrastive(h, small, Euclidean()) == contrastive(h, large, Euclidean())


@pytest.mark.parametrize("geometry", GEOMETRIES, ids=str)
def test_on_a_gpu_no_value_is_looked_at(geometry):
    """A step would wait for it, and could not be recorded. Tensors without values stand for those of a GPU."""
    h = torch.empty(2, 6, 8, device="meta", requires_grad=True)
    contrastive(h, torch.zeros(2, 6, dtype=torch.long, device="meta"), geometry).total.sum().backward()
    assert h.grad.shape == h.shape
