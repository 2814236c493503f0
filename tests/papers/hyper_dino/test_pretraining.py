"""Encoders side by side: held-out groups search as plain loops do, and nothing of them is fitted on."""

import numpy as np
import pytest
import torch

from lib.datasets import folds
from lib.papers.hyper_dino import pretraining
from lib.papers.hyper_dino.pretraining import BY_COSINE
from lib.study.scores import Scores
from lib.training.splits import Split

LABELS = np.arange(40) % 2
GROUPS = np.array([f"g{i // 4}" for i in range(40)])
TRAIN, TEST = folds.split(folds.by_group(LABELS.astype(str), GROUPS, 5, seed=0), 0)


def search(x: np.ndarray) -> Scores:
    return pretraining.search({"vit": x}, LABELS, GROUPS, Split(0, TRAIN, TEST, 0), [3])


def by_hand(x, gallery_of):
    """Precision@3, a query at a time."""
    precisions = []
    for q in TEST:
        nearest = sorted(gallery_of(q), key=lambda g: np.linalg.norm(x[q] - x[g]))[:3]
        precisions.append(np.mean([LABELS[g] == LABELS[q] for g in nearest]))
    return precisions


def test_both_galleries_and_both_distances_equal_plain_loops():
    x = (np.random.default_rng(0).normal(size=(40, 3)) * [1, 10, 0.1]).astype(np.float32)
    scores = search(x)
    scaled = (x - x[TRAIN].mean(axis=0)) / x[TRAIN].std(axis=0)
    for name, z in {"vit": scaled, f"vit{BY_COSINE}": x / np.linalg.norm(x, axis=1, keepdims=True)}.items():
        closed = by_hand(z, lambda q: TRAIN)
        opened = by_hand(z, lambda q: [g for g in TEST if GROUPS[g] != GROUPS[q]])
        assert scores.of(("closed", name), "precision", 3).tolist() == pytest.approx(closed)
        assert scores.of(("open", name), "precision", 3).tolist() == pytest.approx(opened)
    rows = pretraining.values(scores, {"vit": x})
    assert set(rows["dim"]) == {3} and set(rows["n_queries"]) == {len(TEST)} and len(rows["encoder"].unique()) == 2


def test_the_scaler_knows_only_the_training_images():
    """A held-out image far out must not change how the others are compared with the training images."""
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    x[:, 2] = 1  # a constant number is no obstacle
    far = x.copy()
    far[TEST[0], 0] = 1000
    first, second = (
        search(values).values.xs("closed", level="gallery").xs("vit", level="method") for values in (x, far)
    )
    assert first.iloc[1:].equals(second.iloc[1:]) and first.notna().all(axis=None)


def test_directions_are_counted_until_they_hold_enough():
    """Squares 99, 0.5, 0.5 of 100: one direction holds 98 %; three equal ones are all needed."""
    ends = {"thin": torch.diag(torch.tensor([99.0, 0.5, 0.5]).sqrt()), "round": torch.eye(3)}
    curves, ranks = pretraining.spectra({name: torch.cat([axes, -axes]) for name, axes in ends.items()})
    assert curves["held"].tolist() == pytest.approx([99, 99.5, 100, 100 / 3, 200 / 3, 100])
    assert ranks["directions"].tolist() == [1, 3]
    assert ranks["rank"].iloc[1] == pytest.approx(3) and 1 < ranks["rank"].iloc[0] < 1.2
