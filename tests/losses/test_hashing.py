"""Every loss of deep hashing against plain loops over images, bits, pairs and triplets."""

import math
import pickle

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard
from sklearn.linear_model import Ridge

from lib.errors import InputError
from lib.losses.codes import hash_centres, straight_through
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH, Triplet

B, BITS, CLASSES = 9, 8, 3
LOSSES = {
    "CSQ": CSQ(CLASSES, BITS, weight=0.3),
    "DPN": DPN(CLASSES, BITS, margin=0.8),
    "DCH": DCH(gamma=5.0, weight=0.2),
    "DBDH": DBDH(weight=0.4),
    "DBDH, soft": DBDH(weight=0.4, discrete=False),
    "DSDH": DSDH(classify=0.7, ridge=0.2, weight=0.05),
    "QSMIH": QSMIH(weight=0.1),
    "Triplet": Triplet(margin=0.5, weight=0.2),
}


def batch(seed=0, b=B, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    h = torch.randn(b, BITS, generator=generator, dtype=torch.float64).tanh()
    return h.to(dtype), torch.randint(CLASSES, (b,), generator=generator)


def norm(x):
    return math.sqrt(sum(a * a for a in x))


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def cosine(x, y):
    return dot(x, y) / (norm(x) * norm(y))


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def all_pairs(labels):
    return [(i, j) for i in range(len(labels)) for j in range(len(labels)) if i != j]


def one_class(labels):
    return [(i, j) for i, j in all_pairs(labels) if labels[i] == labels[j]]


def two_classes(labels):
    return [(i, j) for i, j in all_pairs(labels) if labels[i] != labels[j]]


def csq(loss, h, labels):
    centres = hash_centres(CLASSES, BITS).tolist()
    total = []
    for x, c in zip(h, labels, strict=True):
        for u, t in zip(x, centres[c], strict=True):
            p = (1 + u) / 2
            total.append(-math.log(p if t > 0 else 1 - p) + loss.weight * math.log(math.cosh(abs(u) - 1)))
    return mean(total)


def dpn(loss, h, labels):
    centres = hash_centres(CLASSES, BITS).tolist()
    return mean(
        max(0, loss.margin - u * t) for x, c in zip(h, labels, strict=True) for u, t in zip(x, centres[c], strict=True)
    )


def dch(loss, h, labels):
    def distance(x, y):
        return len(x) / 2 * (1 - cosine(x, y))

    alike = mean(-math.log(loss.gamma / (loss.gamma + distance(h[i], h[j]))) for i, j in one_class(labels))
    apart = mean(-math.log(1 - loss.gamma / (loss.gamma + distance(h[i], h[j]))) for i, j in two_classes(labels))
    bits = mean(math.log(1 + distance([abs(u) for u in x], [1.0] * BITS) / loss.gamma) for x in h)
    return alike + apart + loss.weight * bits


def logistic(h, labels):
    total = []
    for i, j in all_pairs(labels):
        theta = dot(h[i], h[j]) / 2
        total.append(math.log(1 + math.exp(theta)) - (theta if labels[i] == labels[j] else 0))
    return mean(total)


def dbdh(loss, h, labels):
    if loss.discrete:
        h = [[1 if u >= 0 else -1 for u in x] for x in h]
    return logistic(h, labels) + loss.weight * mean(mean(x) ** 2 for x in h)


def dsdh(loss, h, labels):
    x, y = np.array(h), np.eye(CLASSES)[labels]
    w = Ridge(alpha=loss.ridge * len(x), fit_intercept=False).fit(x, y).coef_
    unexplained = ((y - x @ w.T) ** 2).sum() / len(x) + loss.ridge * (w**2).sum()
    to_bits = mean(sum((u - math.copysign(1, u)) ** 2 for u in x) for x in h)
    return logistic(h, labels) + loss.classify * unexplained + loss.weight * to_bits


def qsmih(loss, h, labels):
    m = len(all_pairs(labels)) / len(one_class(labels))
    total = []
    for i, j in all_pairs(labels):
        s = (1 + cosine(h[i], h[j])) / 2
        total.append(((1 - s) ** 2 if labels[i] == labels[j] else 0) + s**2 / m)
    return mean(total) + loss.weight * mean(abs(abs(u) - 1) for x in h for u in x)


def triplet(loss, h, labels):
    total = []
    for i, j in one_class(labels):
        for k in range(len(h)):
            if labels[k] != labels[i]:
                near = sum((a - b) ** 2 for a, b in zip(h[i], h[j], strict=True))
                far = sum((a - b) ** 2 for a, b in zip(h[i], h[k], strict=True))
                total.append(max(0, loss.margin + (near - far) / BITS))
    return mean(total) + loss.weight * mean(abs(abs(u) - 1) for x in h for u in x)


LOOPS = {CSQ: csq, DPN: dpn, DCH: dch, DBDH: dbdh, DSDH: dsdh, QSMIH: qsmih, Triplet: triplet}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("seed", range(3))
def test_the_loss_is_its_formula(name, seed):
    loss = LOSSES[name]
    h, labels = batch(seed)
    expected = LOOPS[type(loss)](loss, h.tolist(), labels.tolist())
    assert loss(h, labels).item() == pytest.approx(expected, rel=1e-10)
    assert loss(h.float(), labels).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_a_stack_is_its_batches_and_rows_that_do_not_count_change_nothing(name):
    loss = LOSSES[name]
    (h, labels), (shorter, its_labels) = batch(0), batch(1, b=6)
    filled = torch.cat([shorter, torch.full((3, BITS), 0.7, dtype=h.dtype)])
    filled_labels = torch.cat([its_labels, torch.zeros(3, dtype=torch.long)])
    valid = torch.ones(2, B, dtype=torch.bool)
    valid[1, 6:] = False
    found = loss(torch.stack([h, filled]), torch.stack([labels, filled_labels]), valid)
    assert found.tolist() == pytest.approx([loss(h, labels).item(), loss(shorter, its_labels).item()], rel=1e-12)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("kind", ["zero", "duplicates", "bits", "tiny", "one class", "every image its own"])
def test_value_and_gradient_are_finite_where_codes_meet(name, kind):
    h, labels = batch(dtype=torch.float32)
    if kind == "zero":
        h[2:5] = 0
    elif kind == "duplicates":
        h[:] = h[0].clone()
    elif kind == "bits":
        h = torch.where(h >= 0, 1.0, -1.0)
        h[1] = h[0]
    elif kind == "tiny":
        h = 1e-20 * h
    elif kind == "one class":
        labels[:] = 1
    else:
        h, labels = h[:CLASSES], torch.arange(CLASSES)
    h.requires_grad_()
    value = LOSSES[name](h, labels)
    value.backward()
    assert value.isfinite()
    assert h.grad.isfinite().all()


@pytest.mark.parametrize("name", [name for name in LOSSES if name != "DBDH"])
def test_the_gradient_is_that_of_the_value(name):
    h, labels = batch()
    h.requires_grad_()
    assert torch.autograd.gradcheck(lambda x: LOSSES[name](x, labels), h)


def test_the_gradient_of_a_discrete_code_goes_straight_through():
    h = torch.tensor([-2.0, -0.5, 0.0, 0.4, 3.0], requires_grad=True)
    b = straight_through(h)
    (b * torch.arange(1.0, 6.0)).sum().backward()
    assert b.tolist() == [-1, -1, 1, 1, 1]
    assert h.grad.tolist() == [0, 2, 3, 4, 0]


@pytest.mark.parametrize("name", LOSSES)
def test_codes_that_tell_classes_apart_cost_less_than_codes_that_do_not(name):
    labels = torch.arange(B) % CLASSES
    good = 0.999 * hash_centres(CLASSES, BITS)[labels]
    mixed = good[torch.randperm(B, generator=torch.Generator().manual_seed(1))]
    assert LOSSES[name](good, labels) < LOSSES[name](mixed, labels) - 0.01


@pytest.mark.parametrize(("n_classes", "bits"), [(16, 8), (16, 16), (6, 128), (8, 64)])
def test_hadamard_centres_differ_in_half_of_their_bits_or_in_all(n_classes, bits):
    c = hash_centres(n_classes, bits)
    differing = (bits - c @ c.T) / 2
    off = differing[~torch.eye(n_classes, dtype=torch.bool)]
    assert set(off.tolist()) <= {bits / 2, bits}
    assert c.abs().eq(1).all()


@pytest.mark.parametrize(("n_classes", "bits"), [(40, 16), (5, 6), (40, 48), (8, 3), (4, 2)])
def test_other_lengths_and_more_classes_get_centres_that_differ(n_classes, bits):
    c = hash_centres(n_classes, bits)
    assert c.shape == (n_classes, bits)
    assert c.abs().eq(1).all()
    assert len(c.unique(dim=0)) == n_classes


def test_drawn_centres_depend_on_their_seed_alone():
    assert (hash_centres(5, 12, 3) == hash_centres(5, 12, 3)).all()
    assert (hash_centres(5, 12, 3) != hash_centres(5, 12, 4)).any()


@pytest.mark.parametrize("name", LOSSES)
def test_a_loss_goes_to_another_process_and_is_a_key(name):
    assert pickle.loads(pickle.dumps(LOSSES[name])) == LOSSES[name]
    assert {LOSSES[name]: 1}[LOSSES[name]] == 1


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize(("labels", "words"), [([0, 1, -1], "labels run from -1"), ([], "no images")])
def test_an_image_without_a_class_and_a_batch_without_images_are_refused(name, labels, words):
    with pytest.raises(InputError, match=words):
        LOSSES[name](torch.ones(len(labels), BITS), torch.tensor(labels, dtype=torch.long))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.int16, torch.bool, torch.complex64])
def test_labels_that_are_no_index_are_refused_with_the_way_out(name, dtype):
    h, labels = batch()
    with pytest.raises(InputError, match=rf"the labels are {dtype}, .* labels\.long\(\)"):
        LOSSES[name](h, labels.to(dtype))
    assert LOSSES[name](h, labels.int()) == LOSSES[name](h, labels)


def test_centres_of_very_long_codes_take_no_more_memory_than_they_have():
    """The rows of scipy's matrix; of 65,536 bits it would have 2³² numbers."""
    assert torch.equal(hash_centres(40, 32), torch.tensor(np.concatenate([hadamard(32), -hadamard(32)])[:40]).float())
    c = hash_centres(3, 2**16)
    assert c.shape == (3, 2**16) and torch.equal(c @ c.T, 2**16 * torch.eye(3))


def test_what_cannot_be_factored_is_no_number_in_its_own_batch_alone():
    """DSDH: the heads of a stack that are well keep their loss."""
    h, labels = batch()
    stack = torch.stack([h, h * torch.nan, 1e200 * h])
    found = LOSSES["DSDH"](stack, labels.expand(3, -1))
    assert found[0].item() == pytest.approx(LOSSES["DSDH"](h, labels).item(), rel=1e-12)
    assert not found[1:].isfinite().any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: CSQ(9, 3), "8 codes"),
        (lambda: CSQ(3, BITS)(torch.zeros(2, BITS), torch.tensor([0, 3])), "centres of 3 classes"),
        (lambda: CSQ(3, 4)(torch.zeros(2, BITS), torch.tensor([0, 1])), "4 bits"),
        (lambda: DCH()(torch.zeros(2, BITS), torch.tensor([0])), "labels"),
        (lambda: DCH(gamma=0), "gamma"),
        (lambda: DPN(3, BITS, margin=-1.0), "margin"),
        (lambda: DSDH(ridge=0), "ridge"),
        (lambda: DBDH(discrete="yes"), "discrete"),
        (lambda: QSMIH(weight=-1), "weight"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
