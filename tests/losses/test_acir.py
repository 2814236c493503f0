"""Equations 12 to 17 of ACIR against plain loops over pairs, NumPy's correlation, and what the errata say of them."""

import itertools
import math
import pickle

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.losses import acir
from lib.losses.acir import FLOOR, StructureAware

B, BITS, PIXELS = 8, 16, 25
WEIGHTS = (0.5, 1.0, 3.0)
LOSSES = {
    "labels alone": StructureAware(),
    "class weights": StructureAware(class_weights=WEIGHTS),
    "clamped": StructureAware(clamped=True, alpha=0.25),
    "fingerprints": StructureAware(fingerprint=PIXELS, class_weights=WEIGHTS),
    "neutral": StructureAware(fingerprint=PIXELS, neutral=0.5),
    "the authors' code": StructureAware(fingerprint=PIXELS, likeness="cosine", quantisation="code"),
    "as printed": StructureAware(fingerprint=PIXELS, quantisation="printed"),
    "even": StructureAware(fingerprint=PIXELS, class_weights=WEIGHTS, even=True),
}


def batch(seed=0, b=B, fingerprint=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(b, BITS, generator=generator, dtype=torch.float64).tanh()
    look = torch.rand(b, fingerprint, generator=generator, dtype=torch.float64)
    return torch.cat([h, look], dim=1).to(dtype), torch.randint(3, (b,), generator=generator)


def cosine(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True)) / math.sqrt(sum(a * a for a in x) * sum(b * b for b in y))


def correlation(x, y):
    return float(np.corrcoef(x, y)[0, 1])


def one_quantisation(loss, h):
    if loss.quantisation == "printed":
        return math.log(2)
    if loss.quantisation == "code":
        return math.log(1.5)
    sizes = [abs(u) for u in h]
    return math.log(2 - cosine(sizes, [1.0] * BITS)) + sum(abs(u - 1) for u in sizes) / BITS


def loops(loss, rows, labels):
    total, shared = [], {}
    if loss.even:
        for one in (True, False):
            several = [
                (
                    loss.class_weights[labels[i]] * loss.class_weights[labels[j]],
                    (1 + correlation(x[BITS:], y[BITS:])) / 2,
                )
                for (i, x), (j, y) in itertools.permutations(enumerate(rows), 2)
                if (labels[i] == labels[j]) == one
            ]
            shared[one] = sum(w * (h if one else math.exp(h)) for w, h in several) / sum(w for w, _ in several)
    for i, j in itertools.permutations(range(len(rows)), 2):
        r = correlation(rows[i][:BITS], rows[j][:BITS])
        s = min(max(r if loss.clamped else (1 + r) / 2, FLOOR), 1 - FLOOR)
        alike, apart = 1.0, 1.0
        if loss.fingerprint:
            x, y = rows[i][BITS:], rows[j][BITS:]
            h = cosine(x, y) if loss.likeness == "cosine" else (1 + correlation(x, y)) / 2
            alike, apart = (h if loss.neutral is None else float(h >= loss.neutral)), math.exp(h)
        alike, apart = shared.get(True, alike), shared.get(False, apart)
        each = -alike * math.log(s) if labels[i] == labels[j] else -apart * math.log(1 - s)
        w = loss.class_weights or (1.0, 1.0, 1.0)
        total.append(w[labels[i]] * w[labels[j]] * each)
    bits_off = [one_quantisation(loss, row[:BITS]) for row in rows]
    return sum(total) / len(total) + loss.alpha * sum(bits_off) / len(rows)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_equation_17(name, seed):
    loss = LOSSES[name]
    h, labels = batch(seed, fingerprint=loss.fingerprint)
    expected = loops(loss, h.tolist(), labels.tolist())
    assert loss(h, labels).item() == pytest.approx(expected, rel=1e-9)
    assert loss(h.float(), labels).item() == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", LOSSES)
def test_a_stack_is_its_batches_and_rows_that_do_not_count_change_nothing(name):
    loss = LOSSES[name]
    (h, labels), (shorter, its_labels) = (batch(seed, b, loss.fingerprint) for seed, b in ((0, B), (1, 5)))
    filled = torch.cat([shorter, torch.full((3, h.shape[1]), 0.7, dtype=h.dtype)])
    valid = torch.ones(2, B, dtype=torch.bool)
    valid[1, 5:] = False
    filled_labels = torch.cat([its_labels, torch.zeros(3, dtype=torch.long)])
    found = loss(torch.stack([h, filled]), torch.stack([labels, filled_labels]), valid)
    assert found.tolist() == pytest.approx([loss(h, labels).item(), loss(shorter, its_labels).item()], rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["zero", "duplicates", "opposites", "bits", "equal bits", "tiny", "one class"])
def test_value_and_gradient_are_finite_where_codes_meet(name, kind):
    loss = LOSSES[name]
    h, labels = batch(fingerprint=loss.fingerprint, dtype=torch.float32)
    if kind == "zero":
        h[2:5] = 0
    elif kind == "duplicates":
        h[:] = h[0].clone()
    elif kind == "opposites":
        h[1], labels[1] = -h[0], labels[0]
    elif kind == "bits":
        h[:, :BITS] = torch.where(h[:, :BITS] >= 0, 1.0, -1.0)
        h[1] = h[0]
    elif kind == "equal bits":
        h[:, :BITS] = 0.7
    elif kind == "tiny":
        h *= 1e-20
    else:
        labels[:] = 1
    h.requires_grad_()
    value = loss(h, labels)
    value.backward()
    assert value.isfinite()
    assert h.grad.isfinite().all()


@pytest.mark.parametrize("name", ["labels alone", "fingerprints"])
def test_the_gradient_is_that_of_the_value_and_fingerprints_get_none(name):
    loss = LOSSES[name]
    rows, labels = batch(fingerprint=loss.fingerprint)
    h, look = rows[:, :BITS].requires_grad_(), rows[:, BITS:].requires_grad_()
    assert torch.autograd.gradcheck(lambda x: loss(torch.cat([x, look.detach()], dim=1), labels), h)
    loss(torch.cat([h, look], dim=1), labels).backward()
    assert look.grad is None or not look.grad.any()


def test_pearson_is_numpys_and_needs_no_variance():
    x = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert acir.pearson(x).numpy() == pytest.approx(np.corrcoef(x.numpy()), abs=1e-12)
    constant = torch.cat([x.float(), torch.full((1, 7), 0.7)])
    assert acir.pearson(constant)[-1].eq(0).all()
    assert acir.pearson(constant)[:, -1].eq(0).all()


def test_half_of_all_coefficients_have_no_log():
    """AC-3: of random codes of 16 bits 53 percent are not positive."""
    codes = torch.randint(2, (2000, 16), generator=torch.Generator().manual_seed(0)).double() * 2 - 1
    r = acir.pearson(codes)[~torch.eye(2000, dtype=torch.bool)]
    assert (r <= 1e-9).double().mean().item() == pytest.approx(0.53, abs=0.02)


def test_a_pearson_coefficient_does_not_see_the_magnitude():
    """AC-5: h and 0.01 h + 3 are the same to it."""
    x, y = torch.randn(2, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    plain, moved = (acir.pearson(torch.stack([one, y]))[0, 1].item() for one in (x, 0.01 * x + 3))
    assert plain == pytest.approx(moved, abs=1e-9)


def test_the_contrast_does_not_see_where_the_sign_is_taken():
    """AC-5 again: with all bits moved beyond 0 every code is the same, and the contrastive term has not changed."""
    h, labels = batch()
    moved = 0.3 * h + torch.linspace(0.35, 0.6, B, dtype=h.dtype)[:, None]
    assert (moved > 0).all()
    loss = StructureAware()
    assert loss.parts(moved, labels).contrast.item() == pytest.approx(loss.parts(h, labels).contrast.item(), rel=1e-9)


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


def test_a_fingerprint_is_a_mean_of_pixels():
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    small = acir.fingerprints(images, side=4).reshape(2, 3, 4, 4)
    for i, c, y, x in itertools.product(range(2), range(3), range(4), range(4)):
        square = images[i, c, 8 * y : 8 * y + 8, 8 * x : 8 * x + 8]
        assert small[i, c, y, x].item() == pytest.approx(square.mean().item())


@pytest.mark.parametrize(("height", "width"), [(96, 64), (50, 40), (16, 8), (20, 45)])
def test_fingerprints_of_the_authors_side_are_made_of_images_of_any_size(height, width):
    """32 pixels (AC-23): of images that it does not divide, too, and of smaller ones, whose pixels are repeated."""
    images = torch.rand(2, 3, height, width, generator=torch.Generator().manual_seed(0))
    small = acir.fingerprints(images, side=32).reshape(2, 3, 32, 32)
    for y, x in itertools.product(range(32), range(32)):
        own = [
            slice(math.floor(at * length / 32), math.ceil((at + 1) * length / 32))
            for at, length in ((y, height), (x, width))
        ]
        assert torch.allclose(small[:, :, y, x], images[:, :, own[0], own[1]].mean((2, 3)), atol=1e-6)
    if 32 % height == 32 % width == 0:
        assert torch.allclose(acir.likeness(small.flatten(1)), acir.likeness(images.flatten(1)), atol=1e-6)


@pytest.mark.parametrize("kind", acir.LIKENESSES)
def test_a_likeness_lies_between_0_and_1(kind):
    look = torch.cat([torch.rand(20, 12, generator=torch.Generator().manual_seed(0)), torch.zeros(1, 12)])
    h = acir.likeness(look, kind)
    opposite = acir.likeness(torch.cat([look[:1], look[:1].mean() * 2 - look[:1]]), "pearson")
    assert h[:-1].diagonal().numpy() == pytest.approx(1, abs=1e-6) and h.min() < 0.6
    assert opposite[0, 1].item() == pytest.approx(0, abs=1e-6)


def test_even_weights_pull_and_push_as_hard_as_looks_do_and_tell_no_pair_apart():
    """At S = 1/2 everywhere the loss is log 2 times the mean of the weights: both forms must agree there."""
    _, labels = batch(b=6)
    look = batch(1, b=6, fingerprint=PIXELS)[0][:, BITS:]
    rows = torch.cat([torch.full((6, BITS), 0.5, dtype=look.dtype), look], dim=1)
    looks = StructureAware(fingerprint=PIXELS, class_weights=WEIGHTS, alpha=0.0)
    even = StructureAware(fingerprint=PIXELS, class_weights=WEIGHTS, alpha=0.0, even=True)
    assert even(rows, labels).item() == pytest.approx(looks(rows, labels).item(), rel=1e-12)
    turned = torch.cat([rows[:, :BITS], look.flip(0)], dim=1)
    alone = torch.zeros(6, dtype=torch.long)
    assert even(turned, alone).item() == pytest.approx(even(rows, alone).item(), rel=1e-12)


def test_brightness_changes_the_cosine_of_fingerprints_and_not_our_likeness():
    look = torch.rand(6, 12, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert acir.likeness(look).numpy() == pytest.approx(acir.likeness(0.3 * look + 0.6).numpy(), abs=1e-9)
    assert (acir.likeness(0.3 * look + 0.6, "cosine") > 0.95).all()
    assert (acir.likeness(look, "cosine") < 0.95).any()


def test_a_pair_that_looks_different_pulls_less_and_one_that_looks_alike_pushes_more():
    """Two codes, their weight from -H s log S - e^H (1 - s) log(1 - S)."""
    h, loss = batch(b=2)[0], StructureAware(fingerprint=2, alpha=0.0)
    looks = {name: torch.tensor(rows, dtype=h.dtype) for name, rows in LOOKS.items()}
    value = {
        (name, c): loss(torch.cat([h, look], dim=1), torch.tensor([0, c])).item()
        for name, look in looks.items()
        for c in (0, 1)
    }
    assert value["different", 0] == pytest.approx(0, abs=1e-9)
    assert value["alike", 0] > 0
    assert value["alike", 1] == pytest.approx(math.e * value["different", 1])


LOOKS = {"alike": [[0.0, 1.0], [0.0, 2.0]], "different": [[0.0, 1.0], [1.0, 0.0]]}


def test_reconstruction_is_the_mean_absolute_difference():
    x, y = torch.rand(2, 3, 1, 4, 4, generator=torch.Generator().manual_seed(0))
    assert acir.reconstruction(x, y).item() == pytest.approx(np.abs(x.numpy() - y.numpy()).mean())


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_goes_to_another_process_and_is_a_key(name):
    assert pickle.loads(pickle.dumps(LOSSES[name])) == LOSSES[name]
    assert {LOSSES[name]: 1}[LOSSES[name]] == 1


WITHOUT_MEANING = ([], ["a"], [0.0, 1.0], [-1, 0], [[0, 1]], 3)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: StructureAware(quantisation="none"), "ours, printed, code"),
        (lambda: StructureAware(likeness="l2"), "choose one of pearson, cosine$"),
        (lambda: StructureAware(neutral=1.5), "neutral"),
        (lambda: StructureAware(alpha=-1.0), "alpha"),
        (lambda: StructureAware(class_weights=(1.0, 0.0)), "class_weights"),
        (lambda: StructureAware(fingerprint=4)(torch.zeros(2, 5), torch.tensor([0, 1])), "no 2 left"),
        (
            lambda: StructureAware(class_weights=(1.0,))(torch.zeros(2, 5), torch.tensor([0, 1])),
            "there are weights of 1 classes",
        ),
        *(
            (lambda name=name, labels=labels: LOSSES[name](torch.ones(len(labels), BITS + PIXELS), labels), words)
            for name in LOSSES
            for labels, words in ((torch.tensor([0, -1]), "labels run from -1"), (torch.tensor([]).long(), "no images"))
        ),
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
