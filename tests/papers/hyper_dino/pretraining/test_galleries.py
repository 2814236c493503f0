"""Held-out groups ask the training images and each other, and nothing of them is fitted on."""

import numpy as np
import pytest

from lib.datasets import folds
from lib.papers.hyper_dino.pretraining.galleries import search

LABELS = np.array(["a", "b"] * 20)
GROUPS = np.array([f"g{i // 4}" for i in range(40)])


def by_hand(x, queries, gallery_of, k):
    """Precision@k, one query at a time."""
    found = []
    for q in queries:
        gallery = gallery_of(q)
        nearest = sorted(gallery, key=lambda g: np.linalg.norm(x[q] - x[g]))[:k]
        found.append(np.mean([LABELS[g] == LABELS[q] for g in nearest]))
    return found


def test_equals_plain_loops():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3)).astype(np.float32) * [1, 10, 0.1]
    train, test = folds.split(folds.by_group(LABELS, GROUPS, 5, seed=0), 0)
    answers = search(x, LABELS, GROUPS, train, test, [1, 3])
    scaled = (x - x[train].mean(axis=0)) / x[train].std(axis=0)
    closed = by_hand(scaled, test, lambda q: train, 3)
    opened = by_hand(scaled, test, lambda q: [g for g in test if GROUPS[g] != GROUPS[q]], 3)
    assert answers["closed"].values["precision", 3].tolist() == pytest.approx(closed)
    assert answers["open"].values["precision", 3].tolist() == pytest.approx(opened)
    assert closed != opened


def test_by_cosine_features_are_as_they_are():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=(40, 3)) * [1, 10, 0.1]).astype(np.float32)
    train, test = folds.split(folds.by_group(LABELS, GROUPS, 5, seed=0), 0)
    answers = search(x, LABELS, GROUPS, train, test, [3], cosine=True)
    unit = x / np.linalg.norm(x, axis=1, keepdims=True)
    closed = by_hand(unit, test, lambda q: train, 3)
    opened = by_hand(unit, test, lambda q: [g for g in test if GROUPS[g] != GROUPS[q]], 3)
    assert answers["closed"].values["precision", 3].tolist() == pytest.approx(closed)
    assert answers["open"].values["precision", 3].tolist() == pytest.approx(opened)


def test_the_scaler_knows_the_training_images_alone():
    """One held-out image far out must not change how the others are compared with the training images."""
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    train, test = folds.split(folds.by_group(LABELS, GROUPS, 5, seed=0), 0)
    far = x.copy()
    far[test[0], 0] = 1000
    one, two = (search(values, LABELS, GROUPS, train, test, [5])["closed"].values for values in (x, far))
    assert one.iloc[1:].equals(two.iloc[1:])


def test_a_constant_feature_is_no_obstacle():
    x = np.ones((40, 2), dtype=np.float32)
    x[:, 1] = np.arange(40)
    train, test = folds.split(folds.by_group(LABELS, GROUPS, 5, seed=0), 0)
    assert search(x, LABELS, GROUPS, train, test, [1])["open"].values.notna().all().all()
