"""The two temperatures, D_cos, and batches that are no classes of d images; the rest is in test_every_loss.py."""

import pytest
import torch
from torch.nn.functional import cross_entropy, normalize

from lib.errors import InputError
from lib.losses.hyp_vit import PRINTED_SPHERICAL, TEMPERATURE, PairwiseCrossEntropy, cosine_distance, spherical


def batch(n, d, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    h = 0.15 * torch.randn(n * d, 6, generator=generator, dtype=torch.float64)
    return h.to(dtype), 7 + torch.randperm(n, generator=generator).repeat_interleave(d)


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


def test_one_class_has_nothing_to_be_told_from():
    h, labels = batch(1, 2)
    h.requires_grad_()
    value = PairwiseCrossEntropy()(h, labels)
    value.backward()
    assert value.item() == 0 and torch.equal(h.grad, torch.zeros_like(h))


def test_a_class_of_which_a_row_does_not_count_counts_for_nothing_wherever_it_stands():
    h, labels = batch(4, 3)
    for order in (torch.arange(12), torch.randperm(12, generator=torch.Generator().manual_seed(0))):
        row, rest = 5, labels[order] != labels[order][5]
        x = h[order].requires_grad_()
        value = PairwiseCrossEntropy(samples=3)(x, labels[order], valid=torch.arange(12) != row)
        alone = PairwiseCrossEntropy(samples=3)(x[rest], labels[order][rest])
        assert value.item() == pytest.approx(alone.item(), rel=1e-12)
        (gradient,) = torch.autograd.grad(value, x)
        assert (gradient[~rest] == 0).all() and gradient.isfinite().all()


def test_a_tiny_temperature_does_not_overflow():
    h, labels = batch(4, 2, dtype=torch.float32)
    h.requires_grad_()
    value = PairwiseCrossEntropy(temperature=1e-4)(h, labels)
    value.backward()
    assert value >= 0 and value.isfinite() and h.grad.isfinite().all()


@pytest.mark.parametrize(
    ("samples", "labels", "words"),
    [
        (2, [0, 1, 2, 2, 1, 1], r"class number 0 has not samples = 2 images.*lib\.training\.by_class"),
        (2, [4, 1, 4, 1, 4, 4], "class number 4 has not"),
        (4, [0] * 6, r"6 rows are no classes of samples = 4 images each.*lib\.training\.by_class"),
    ],
)
def test_classes_of_other_sizes_are_refused_with_the_way_out(samples, labels, words):
    with pytest.raises(InputError, match=words):
        PairwiseCrossEntropy(samples=samples)(batch(3, 2)[0], torch.tensor(labels))


def test_the_cosine_is_taken_or_not():
    with pytest.raises(InputError, match="cosine = 1 cannot be used"):
        PairwiseCrossEntropy(cosine=1)
