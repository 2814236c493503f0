"""Equation 5 against plain loops over pairs of subsets, in every geometry, with both distances."""

import math
import pickle

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall, Sphere
from lib.losses.hyp_vit import PRINTED_SPHERICAL, TEMPERATURE, PairwiseCrossEntropy, cosine_distance, spherical

DIM = 6
LOSSES = {
    "hyp": PairwiseCrossEntropy(),
    "hyp, c = 1": PairwiseCrossEntropy(PoincareBall(1.0), 0.3),
    "flat": PairwiseCrossEntropy(Euclidean(), 0.5),
    "angle": PairwiseCrossEntropy(Sphere(), 0.2),
    "sph": spherical(),
    "D_cos in the ball": PairwiseCrossEntropy(PoincareBall(0.1), 0.1, cosine=True),
}


def batch(n, d, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    h = 0.15 * torch.randn(n * d, DIM, generator=generator, dtype=torch.float64)
    return h.to(dtype), 7 + torch.randperm(n, generator=generator).repeat_interleave(d)


def with_samples(loss, d):
    return PairwiseCrossEntropy(loss.geometry, loss.temperature, d, loss.cosine)


def by_hand(loss, x, y):
    """The distance of two points, from its definition."""
    cosine = x @ y / math.sqrt((x @ x) * (y @ y))
    if loss.cosine:
        return 2 - 2 * cosine
    if isinstance(loss.geometry, Sphere):
        return math.acos(min(1.0, cosine))
    squared = (x - y) @ (x - y)
    if isinstance(loss.geometry, Euclidean):
        return math.sqrt(squared)
    c = loss.geometry.c
    return math.acosh(1 + 2 * c * squared / ((1 - c * (x @ x)) * (1 - c * (y @ y)))) / math.sqrt(c)


def loops(loss, rows, n, d):
    """Equation 5 pair by pair: for two subsets, all 2N images but i are below the line."""
    total = 0.0
    for a in range(d):
        for b in range(d):
            if a == b:
                continue
            both = [m * d + s for s in (a, b) for m in range(n)]
            for m in range(n):
                i, j = m * d + a, m * d + b
                below = [math.exp(-by_hand(loss, rows[i], rows[k]) / loss.temperature) for k in both if k != i]
                above = math.exp(-by_hand(loss, rows[i], rows[j]) / loss.temperature)
                total += -math.log(above / sum(below)) / n
    return total


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("n", "d"), [(2, 2), (5, 2), (4, 3), (3, 4)])
def test_the_loss_is_equation_5(name, n, d):
    loss = with_samples(LOSSES[name], d)
    h, labels = batch(n, d)
    expected = loops(loss, h.numpy(), n, d)
    assert loss(h, labels).item() == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert loss(h.float(), labels).item() == pytest.approx(expected, rel=1e-5)


def test_two_classes_worked_out():
    """On a line at 0, 1 | 3, 5 with τ = 1: D is |x − y|, the denominators hold the three others."""
    h, labels = torch.tensor([[0.0], [1.0], [3.0], [5.0]], dtype=torch.float64), torch.tensor([4, 4, 9, 9])
    e = math.exp
    parts = [
        1 + math.log(e(-1) + e(-3) + e(-5)),
        1 + math.log(e(-1) + e(-2) + e(-4)),
        2 + math.log(e(-2) + e(-3) + e(-2)),
        2 + math.log(e(-2) + e(-5) + e(-4)),
    ]
    ours = PairwiseCrossEntropy(Euclidean(), 1.0)(h, labels).item()
    assert ours == pytest.approx(sum(parts) / 2, rel=1e-12)  # both orders, the mean over the two classes


def test_with_three_samples_the_third_is_no_negative():
    """Where the third image of each class lies changes its own pairs, but not those of the other two."""
    h, labels = batch(4, 3)
    moved = h.clone()
    moved[2::3] += 0.1
    three, two = PairwiseCrossEntropy(samples=3), PairwiseCrossEntropy()

    def pair(points, a, b):
        rows = [m * 3 + s for m in range(4) for s in (a, b)]
        return two(points[rows], labels[rows]).item()

    for points in (h, moved):
        pairs = [pair(points, a, b) for a, b in ((0, 1), (0, 2), (1, 2))]
        assert three(points, labels).item() == pytest.approx(sum(pairs), rel=1e-12)
    assert pair(h, 0, 1) == pair(moved, 0, 1) and pair(h, 0, 2) != pair(moved, 0, 2)


def test_the_spherical_temperature_trap():
    """HV-8: the authors' cos/0.1 is Equation 4 with τ = 0.2; the printed 0.1 is another loss."""
    h, labels = batch(6, 2)
    x, y = normalize(h[0::2]), normalize(h[1::2])

    def code(one, other):
        logits = torch.cat([one @ other.T, (one @ one.T).fill_diagonal_(-torch.inf)], dim=1) / 0.1
        return cross_entropy(logits, torch.arange(6))

    theirs = (code(x, y) + code(y, x)).item()
    assert spherical()(h, labels).item() == pytest.approx(theirs, rel=1e-12)
    assert spherical(PRINTED_SPHERICAL)(h, labels).item() != pytest.approx(theirs, rel=0.05)
    assert pytest.approx(2 * PRINTED_SPHERICAL) == TEMPERATURE


def test_cosine_distance_is_equation_4_and_exact_for_near_duplicates():
    h, _ = batch(4, 2)
    cosine = normalize(h) @ normalize(h).T
    torch.testing.assert_close(cosine_distance(h, h), 2 - 2 * cosine, rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(cosine_distance(h[:3], 5 * h), 2 - 2 * cosine[:3], rtol=1e-12, atol=1e-12)
    near = torch.tensor([[1.0, 0.0], [1.0, 1e-4]])
    assert cosine_distance(near, near)[0, 1].item() == pytest.approx(1e-8, rel=1e-3)
    assert cosine_distance(near, near).diagonal().tolist() == [0, 0]


@pytest.mark.parametrize("name", LOSSES)
def test_a_stack_of_batches_is_one_batch_after_another(name):
    loss = with_samples(LOSSES[name], 3)
    batches = [batch(4, 3, seed) for seed in range(3)]
    stacked = loss(torch.stack([h for h, _ in batches]), torch.stack([labels for _, labels in batches]))
    torch.testing.assert_close(stacked, torch.stack([loss(h, labels) for h, labels in batches]))


@pytest.mark.parametrize("name", LOSSES)
def test_rows_that_only_fill_up_do_not_count(name):
    """As in a stack: a batch of 3 classes beside one of 5, and a head that is through, whose one row is no class."""
    loss = LOSSES[name]
    h, labels = batch(5, 2)
    h.requires_grad_()
    padded = torch.stack([h, torch.cat([h[:6], h[:1].expand(4, -1)]), h[:1].expand(10, -1)])
    classes = torch.stack([labels, torch.cat([labels[:6], labels[:1].expand(4)]), labels[:1].expand(10)])
    valid = torch.arange(10) < torch.tensor([[10], [6], [1]])
    values = loss(padded, classes, valid)
    torch.testing.assert_close(values[0], loss(h, labels))
    torch.testing.assert_close(values[1], loss(h[:6], labels[:6]))
    assert values[2].item() == 0
    (ours,) = torch.autograd.grad(values.sum(), h)
    (wanted,) = torch.autograd.grad(loss(h, labels) + loss(h[:6], labels[:6]), h)
    torch.testing.assert_close(ours, wanted)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_gradients_are_finite_at_zero_at_duplicates_and_at_the_rim(name, dtype):
    loss = with_samples(LOSSES[name], 3)
    usual, labels = batch(3, 3, dtype=dtype)
    doubled = usual.clone()
    doubled[:5] = doubled[0]
    rim = loss.geometry.project(1e3 * usual) if isinstance(loss.geometry, PoincareBall) else 1e3 * usual
    for h in (torch.zeros_like(usual), doubled, rim, torch.ones_like(usual)):
        h = h.clone().requires_grad_()
        value = loss(h, labels)
        value.backward()
        assert value.isfinite() and h.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_the_gradient_is_the_slope(name):
    loss = with_samples(LOSSES[name], 3)
    h, labels = batch(4, 3)
    way = torch.randn(h.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    h.requires_grad_()
    slope = (torch.autograd.grad(loss(h, labels), h)[0] * way).sum().item()
    with torch.no_grad():
        steps = [loss(h + sign * 1e-6 * way, labels).item() for sign in (1, -1)]
    assert slope == pytest.approx((steps[0] - steps[1]) / 2e-6, rel=1e-5)


def test_equal_points_have_the_loss_of_guessing():
    h, labels = torch.zeros(8, 3), torch.arange(4).repeat_interleave(2)
    assert PairwiseCrossEntropy()(h, labels).item() == pytest.approx(2 * math.log(7))


def test_one_class_has_nothing_to_be_told_from():
    h, labels = batch(1, 2)
    h.requires_grad_()
    value = PairwiseCrossEntropy()(h, labels)
    value.backward()
    assert value.item() == 0 and torch.equal(h.grad, torch.zeros_like(h))


def test_a_tiny_temperature_does_not_overflow():
    h, labels = batch(4, 2, dtype=torch.float32)
    h.requires_grad_()
    value = PairwiseCrossEntropy(temperature=1e-4)(h, labels)
    value.backward()
    assert 0 <= value.item() < np.inf and h.grad.isfinite().all()


def test_batches_in_another_order_are_refused():
    h, _ = batch(3, 2)
    with pytest.raises(InputError, match="class number 0 holds images of other classes too"):
        PairwiseCrossEntropy()(h, torch.tensor([0, 1, 2, 2, 1, 1]))
    with pytest.raises(InputError, match="labels run from -1"):
        PairwiseCrossEntropy()(h, torch.tensor([0, 0, 1, 1, -1, -1]))
    with pytest.raises(InputError, match=r"take labels\.long"):
        PairwiseCrossEntropy()(h, torch.tensor([0.0, 0.0, 1.0, 1.0, 2.0, 2.0]))
    with pytest.raises(InputError, match="class number 4 comes twice"):
        PairwiseCrossEntropy()(h, torch.tensor([4, 4, 1, 1, 4, 4]))
    with pytest.raises(InputError, match="multiple of samples = 4"):
        PairwiseCrossEntropy(samples=4)(h, torch.zeros(6, dtype=torch.long))


@pytest.mark.parametrize("name", LOSSES)
def test_on_a_gpu_no_value_is_looked_at(name):
    """A step would wait for it, and could not be recorded. Tensors without values stand for those of a GPU."""
    h = torch.empty(6, 8, device="meta", requires_grad=True)
    LOSSES[name](h, torch.zeros(6, dtype=torch.long, device="meta")).backward()
    assert h.grad.shape == h.shape


@pytest.mark.parametrize("setting", [{"temperature": 1e-30}, {"samples": 1}, {"geometry": PoincareBall}, {"cosine": 1}])
def test_values_without_meaning_are_refused(setting):
    with pytest.raises(InputError, match=f"{next(iter(setting))} = .* cannot be used"):
        PairwiseCrossEntropy(**setting)


def test_it_travels_to_other_processes():
    h, labels = batch(3, 2)
    loss = spherical()
    assert torch.equal(pickle.loads(pickle.dumps(loss))(h, labels), loss(h, labels))
