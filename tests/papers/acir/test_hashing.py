"""Bits and votes of trained codes, and variants that must be one training."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from lib.geometry import Euclidean
from lib.losses.acir import likeness
from lib.metrics.hashing import evaluate
from lib.papers.acir import hashing, heads
from lib.training.experiment import fit
from lib.training.splits import Split
from tests.papers.acir.conftest import BITS, LABELS, PLAN, PRINTS, SPLIT, X


def test_the_variants_without_a_gradient_are_one_training():
    methods = hashing.variants(PLAN, BITS, 1e-2, 0.5)
    same = [method for method in methods if "L_Q" in method.name or "α = 0-" in method.name]
    fitted = fit(X, LABELS, same, [SPLIT], workers=1)
    first, *others = (torch.cat([p.flatten() for p in several[0].network.parameters()]) for several in fitted.values())
    assert len(others) == 2 and all(torch.equal(first, other) for other in others)


def test_half_of_the_pairs_of_one_class_are_neutral():
    limit = hashing.neutral_limit(PRINTS, LABELS, SPLIT)
    near = (likeness(torch.from_numpy(PRINTS[SPLIT.train])) >= limit).numpy()
    same = np.triu(LABELS[SPLIT.train][:, None] == LABELS[SPLIT.train], k=1)
    assert abs(int((same & near).sum()) - int((same & ~near).sum())) <= 1
    (three,) = [one for one in hashing.variants(PLAN, BITS, 1e-2, limit) if hashing.THREE in one.name]
    assert three.head.loss.neutral == limit


def test_what_becomes_of_the_bits_is_counted_and_classes_count_alike():
    fitted = fit(X, LABELS, [PLAN.method("CSQ", heads.losses(PLAN, BITS)["CSQ"], BITS)], [SPLIT], workers=1)
    (head,) = hashing.of_length(fitted, BITS)["CSQ"]
    labels = np.where(LABELS == 2, 2, 0)  # one class twice as large as the other
    row = hashing.bits_used({"CSQ": [head]}, X, labels).iloc[0]
    sides = SPLIT.test, SPLIT.train
    values = evaluate(*(head.embed(X[s]) for s in sides), *(labels[s] for s in sides)).values["ap_min", 100]
    by_class = values.groupby(labels[SPLIT.test]).mean().mean()
    assert row["codes_class"] == pytest.approx(100 * by_class) and by_class != pytest.approx(values.mean())
    assert row["codes"] == pytest.approx(100 * values.mean())
    assert row["distinct"] == len(head.embed(X[SPLIT.train]).unique(dim=0))
    assert 0 <= row["off"] <= 1 and row["loss_last"] == head.history[-1]


def test_votes_leave_out_unknown_classes_and_ties_are_not_decided_by_the_order_of_the_gallery():
    labels = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 2])
    split, embed = Split(0, np.arange(8), np.arange(8, 11), 0), torch.from_numpy
    by_class = SimpleNamespace(split=split, embed=embed, space=Euclidean())
    rows = hashing.first_answers({"a": [by_class]}, np.where(labels == 1, 1.0, 0.0)[:, None], labels)
    assert rows["macro_f1"].tolist() == [100] * 3 and rows["n_without_relevant"].tolist() == [1] * 3
    equal = [
        SimpleNamespace(split=Split(0, split.train, split.test, seed, repeat=seed), embed=embed, space=Euclidean())
        for seed in range(12)
    ]
    assert hashing.first_answers({"a": equal}, np.zeros((11, 1)), labels)["seeds_spread"].iloc[0] > 0
