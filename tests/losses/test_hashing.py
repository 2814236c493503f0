"""Centres, straight-through signs, and what cannot be; the formulas are in test_every_loss.py."""

import numpy as np
import pytest
import torch
from scipy.linalg import hadamard

from lib.errors import InputError
from lib.losses.codes import hash_centres, straight_through
from lib.losses.hashing import CSQ, DBDH, DCH, DPN, DSDH, QSMIH

BITS, CLASSES = 8, 3


def test_the_gradient_of_a_discrete_code_goes_straight_through():
    h = torch.tensor([-2.0, -0.5, 0.0, 0.4, 3.0], requires_grad=True)
    b = straight_through(h)
    (b * torch.arange(1.0, 6.0)).sum().backward()
    assert b.tolist() == [-1, -1, 1, 1, 1]
    assert h.grad.tolist() == [0, 2, 3, 4, 0]


@pytest.mark.parametrize(
    ("n_classes", "bits"),
    [(16, 8), (16, 16), (6, 128), (8, 64), (3, 2**16), (40, 16), (5, 6), (40, 48), (8, 3), (4, 2)],
)
def test_centres_differ_where_there_is_a_hadamard_matrix_in_half_of_their_bits_or_in_all(n_classes, bits):
    """Of 65,536 bits, too, whose matrix would have 2³² numbers."""
    c = hash_centres(n_classes, bits)
    assert c.shape == (n_classes, bits) and c.abs().eq(1).all()
    assert len(c.unique(dim=0)) == n_classes
    if bits & (bits - 1) == 0 and n_classes <= 2 * bits:
        differing = (bits - c @ c.T) / 2
        assert set(differing[~torch.eye(n_classes, dtype=torch.bool)].tolist()) <= {bits / 2, bits}


def test_centres_are_scipys_or_drawn_from_their_seed():
    assert torch.equal(hash_centres(40, 32), torch.tensor(np.concatenate([hadamard(32), -hadamard(32)])[:40]).float())
    assert torch.equal(hash_centres(5, 12, 3), hash_centres(5, 12, 3))
    assert not torch.equal(hash_centres(5, 12, 3), hash_centres(5, 12, 4))


def test_what_cannot_be_factored_is_no_number_in_its_own_batch_only():
    """DSDH: the heads of a stack that are well keep their loss."""
    h, labels = torch.rand(9, BITS, dtype=torch.float64), torch.arange(9) % CLASSES
    values = DSDH()(torch.stack([h, h * torch.nan, 1e200 * h]), labels.expand(3, -1))
    assert values[0].item() == pytest.approx(DSDH()(h, labels).item(), rel=1e-12)
    assert not values[1:].isfinite().any()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: CSQ(9, 3), "8 codes"),
        (lambda: CSQ(3, BITS)(torch.zeros(2, BITS), torch.tensor([0, 3])), "centres of 3 classes"),
        (lambda: CSQ(3, 4)(torch.zeros(2, BITS), torch.tensor([0, 1])), "4 bits"),
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
