"""Formulas in both readings, against plain loops."""

import numpy as np
import pytest

from lib.losses.acir import class_weights
from lib.papers.acir.hashing import formulas

RNG = np.random.default_rng(0)
H, LABELS = RNG.normal(size=(12, 6)), np.arange(12) % 2


def test_over_the_bits_it_is_the_coefficient_of_numpy():
    assert formulas.correlations(H) == pytest.approx(np.corrcoef(H), abs=1e-12)


def test_over_the_batch_each_bit_loses_its_own_mean():
    found, mean = formulas.correlations(H, formulas.BATCH), H.mean(axis=0)
    for i in range(3):
        for j in range(3):
            a, b = H[i] - mean, H[j] - mean
            assert found[i, j] == pytest.approx(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


def test_each_reading_is_blind_to_a_shift_of_its_own():
    by = formulas.readings(H, LABELS).set_index("reading")
    blind = {formulas.BITS: ("one_shifted", "all_shifted"), formulas.BATCH: ("all_shifted", "one_shifted")}
    for reading, (unseen, seen) in blind.items():
        assert by.loc[reading, unseen] < 1e-12 < 0.1 < by.loc[reading, seen]
    assert "over the batch" in formulas.readings_layout(by.reset_index())


def test_pairs_are_counted_by_class():
    codes = np.array([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, 1.0]])
    row = formulas.readings(codes, np.array([0, 0, 1, 1])).iloc[0]
    assert (row["one_class"], row["two_classes"]) == (pytest.approx(1), pytest.approx(-1))


def test_the_minus_sign_decides_which_codes_equation_4_asks_for():
    both, _ = formulas.signs()
    assert "as printed, argmin of log P: S = 0.1," in both and both.endswith("with the minus sign inside: S = 0.9")


def test_a_product_of_matrices_counts_a_pair_by_its_first_image():
    """Three images of one class, one of another: every element of W L against the sum that defines it."""
    labels = np.array([0, 0, 0, 1])
    w = np.array(class_weights(labels))[labels]
    by = formulas.weights(labels).set_index(["first", "second"])
    for i, j in ((0, 1), (0, 3), (3, 0)):
        losses = np.zeros((4, 4))
        losses[i, j] = 1.0
        own = by.loc[(labels[i], labels[j])]
        assert (np.outer(w, w) * losses).sum() == pytest.approx(own["element"])
        assert (np.outer(w, w) @ losses).sum() == pytest.approx(own["product"])
    assert by["pairs"].tolist() == [6, 3, 3]
    assert by.loc[(0, 1), "element"] == by.loc[(1, 0), "element"]
    assert by.loc[(0, 1), "product"] != pytest.approx(by.loc[(1, 0), "product"])
    told = formulas.weights_sentence(labels)
    assert told.startswith(
        "3 images of a frequent class, 1 of a rare one: element by element a pair of both counts 1.33"
    )


def test_pairs_without_a_log_are_counted():
    h = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 4.0], [3.0, 2.0, 1.0], [3.0, 1.0, 1.0]])
    said = formulas.negative_sentence(h, np.array([0, 0, 1, 1]))
    assert said.endswith("0% of one class, 100% of two")
