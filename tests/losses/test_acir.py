"""What the errata say of Equations 12 to 16, and fingerprints; Equation 17 is in test_every_loss.py."""

import itertools
import math

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.losses import acir
from lib.losses.acir import StructureAware

B, BITS, PIXELS = 8, 16, 25


def batch(b=B):
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(b, BITS, generator=generator, dtype=torch.float64).tanh()
    prints = torch.rand(b, PIXELS, generator=generator, dtype=torch.float64)
    return h, torch.randint(3, (b,), generator=generator), prints


def test_fingerprints_get_no_gradient():
    h, labels, prints = batch()
    StructureAware(looks=True)(h.requires_grad_(), labels, prints=prints.requires_grad_()).backward()
    assert h.grad.any() and prints.grad is None


def test_pearson_is_numpys_and_needs_no_variance():
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert acir.pearson(x).numpy() == pytest.approx(np.corrcoef(x.numpy()), abs=1e-12)
    constant = torch.cat([x.float(), torch.full((1, 7), 0.7)])
    assert acir.pearson(constant)[-1].eq(0).all() and acir.pearson(constant)[:, -1].eq(0).all()


def test_half_of_all_coefficients_have_no_log():
    """AC-3: of random codes of 16 bits 53 percent are not positive."""
    codes = torch.randint(2, (2000, 16), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    r = acir.pearson(codes)[~torch.eye(2000, dtype=torch.bool)]
    assert (r <= 1e-9).double().mean().item() == pytest.approx(0.53, abs=0.02)


def test_the_contrast_sees_neither_the_magnitude_nor_where_the_sign_is_taken():
    """AC-5: with all bits moved beyond 0 every code is the same, and the contrastive term has not changed."""
    h, labels, _ = batch()
    moved = 0.3 * h + torch.linspace(0.35, 0.6, B, dtype=h.dtype)[:, None]
    assert (moved > 0).all()
    values = [StructureAware().parts(x, labels).contrast.item() for x in (h, moved, 0.01 * h)]
    assert values[1:] == pytest.approx([values[0]] * 2, rel=1e-9)


@pytest.mark.parametrize("form", acir.QUANTISATIONS)
def test_only_our_quantisation_has_a_gradient_and_its_minimum_at_bits(form):
    h = batch()[0].requires_grad_()
    value = acir.quantisation(h, form)
    value.sum().backward()
    bits, small = torch.where(h >= 0, 1.0, -1.0), torch.full_like(h, 0.01)
    assert bool(h.grad.any()) == (form == "ours")
    if form == "ours":
        assert acir.quantisation(bits, form).abs().max() < 1e-12
        assert acir.quantisation(small, form).min() > 0.9
    else:
        assert value.detach() == pytest.approx(acir.quantisation(bits, form))


def test_class_weights_are_equation_16():
    labels = [0] * 6 + [1] * 3 + [2]
    assert acir.class_weights(labels) == pytest.approx([10 / (n * 3) for n in (6, 3, 1)])


@pytest.mark.parametrize(("height", "width", "side"), [(32, 32, 4), (96, 64, 32), (50, 40, 32), (16, 8, 32)])
def test_a_fingerprint_is_a_mean_of_pixels(height, width, side):
    """Of images that the side does not divide, too, and of smaller ones, whose pixels are repeated (AC-23)."""
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    small = acir.fingerprints(images, side).reshape(2, 3, side, side)
    for y, x in itertools.product(range(side), range(side)):
        rows, columns = (
            slice(math.floor(at * length / side), math.ceil((at + 1) * length / side))
            for at, length in ((y, height), (x, width))
        )
        assert torch.allclose(small[:, :, y, x], images[:, :, rows, columns].mean((2, 3)), atol=1e-6)


@pytest.mark.parametrize("kind", acir.LIKENESSES)
def test_a_likeness_lies_between_0_and_1(kind):
    look = torch.cat([torch.rand(20, 12, generator=torch.Generator().manual_seed(0)), torch.zeros(1, 12)])
    h = acir.likeness(look, kind)
    opposite = acir.likeness(torch.cat([look[:1], look[:1].mean() * 2 - look[:1]]), "pearson")
    assert h[:-1].diagonal().numpy() == pytest.approx(1, abs=1e-6) and h.min() < 0.6
    assert opposite[0, 1].item() == pytest.approx(0, abs=1e-6)


def test_reconstruction_is_the_mean_absolute_difference():
    x, y = torch.rand(2, 3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    assert acir.reconstruction(x, y).item() == pytest.approx(np.abs(x.numpy() - y.numpy()).mean())


PAIR, WITHOUT_MEANING = (torch.zeros(2, 5), torch.tensor([0, 1])), ([], ["a"], [0.0, 1.0], [-1, 0], [[0, 1]], 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: StructureAware(quantisation="none"), "ours, printed, code"),
        (lambda: StructureAware(likeness="l2"), "choose one of pearson, cosine$"),
        (lambda: StructureAware(neutral=1.5), "neutral"),
        (lambda: StructureAware(alpha=-1.0), "alpha"),
        (lambda: StructureAware(class_weights=(1.0, 0.0)), "class_weights"),
        (lambda: StructureAware(looks=True)(*PAIR), "looks = True, but gets no prints"),
        (lambda: StructureAware()(*PAIR, prints=PAIR[0]), "looks = False, but gets prints"),
        (lambda: StructureAware()(torch.zeros(2, 1), PAIR[1]), "one bit"),
        (lambda: StructureAware(class_weights=(1.0,))(*PAIR), "there are weights of 1 classes"),
        (lambda: acir.class_weights([0, 2]), "class 1"),
        *((lambda labels=labels: acir.class_weights(labels), "whole number") for labels in WITHOUT_MEANING),
        (lambda: acir.fingerprints(torch.zeros(3, 8, 8), side=16), "height"),
        (lambda: acir.fingerprints(torch.zeros(1, 3, 0, 8), side=16), "height"),
        (lambda: acir.reconstruction(torch.zeros(1), torch.zeros(2)), "rebuilt"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
