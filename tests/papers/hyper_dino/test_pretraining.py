"""Encoders side by side: held-out groups search as plain loops do, and nothing of them is fitted on."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets import folds
from lib.metrics.retrieval import PerQuery
from lib.papers.hyper_dino import pretraining
from lib.papers.hyper_dino.pretraining import search

LABELS = np.array(["a", "b"] * 20)
GROUPS = np.array([f"g{i // 4}" for i in range(40)])
TRAIN, TEST = folds.split(folds.by_group(LABELS, GROUPS, 5, seed=0), 0)


def by_hand(x, queries, gallery_of, k):
    """Precision@k, a query at a time."""
    found = []
    for q in queries:
        nearest = sorted(gallery_of(q), key=lambda g: np.linalg.norm(x[q] - x[g]))[:k]
        found.append(np.mean([LABELS[g] == LABELS[q] for g in nearest]))
    return found


@pytest.mark.parametrize("cosine", [False, True])
def test_both_galleries_equal_plain_loops(cosine):
    x = (np.random.default_rng(0).normal(size=(40, 3)) * [1, 10, 0.1]).astype(np.float32)
    answers = search(x, LABELS, GROUPS, TRAIN, TEST, [3], cosine=cosine)
    scaled = (x - x[TRAIN].mean(axis=0)) / x[TRAIN].std(axis=0)
    shown = x / np.linalg.norm(x, axis=1, keepdims=True) if cosine else scaled
    closed = by_hand(shown, TEST, lambda q: TRAIN, 3)
    opened = by_hand(shown, TEST, lambda q: [g for g in TEST if GROUPS[g] != GROUPS[q]], 3)
    assert answers["closed"].values["precision", 3].tolist() == pytest.approx(closed)
    assert answers["open"].values["precision", 3].tolist() == pytest.approx(opened)
    assert closed != opened


def test_the_scaler_knows_the_training_images_alone():
    """A held-out image far out must not change how the others are compared with the training images."""
    x = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    far = x.copy()
    far[TEST[0], 0] = 1000
    first, second = (search(values, LABELS, GROUPS, TRAIN, TEST, [5])["closed"].values for values in (x, far))
    assert first.iloc[1:].equals(second.iloc[1:])


def test_a_constant_feature_is_no_obstacle():
    x = np.ones((40, 2), dtype=np.float32)
    x[:, 1] = np.arange(40)
    assert search(x, LABELS, GROUPS, TRAIN, TEST, [1])["open"].values.notna().all().all()


def per_query(values: np.ndarray) -> PerQuery:
    columns = pd.MultiIndex.from_product([["ap_min", "hit_rate"], [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame(np.stack([values] * 4, axis=1), columns=columns)
    return PerQuery(frame, np.tile(["x", "x", "x", "y"], 4), np.isfinite(values).astype(int), np.full(16, 4))


@pytest.fixture
def results() -> dict[str, dict[str, PerQuery]]:
    """demo_vit is better than untrained by 0.2 in every group of the closed gallery, and worse in the open one."""
    base = np.linspace(0.2, 0.6, 16)
    base[3] = np.nan
    return {
        "demo_vit": {"closed": per_query(base + 0.2), "open": per_query(base)},
        "demo_vit-untrained": {"closed": per_query(base), "open": per_query(base + 0.2)},
    }


def test_the_table_holds_means_in_percent_and_counts(results):
    rows = pretraining.values(results, dict.fromkeys(results, 384))
    row = rows.query("gallery == 'closed' and encoder == 'demo_vit' and metric == 'ap_min' and k == 20").iloc[0]
    base = np.delete(np.linspace(0.2, 0.6, 16), 3)
    assert row["ours"] == pytest.approx(100 * (base.mean() + 0.2))
    x, y = np.linspace(0.2, 0.6, 16).reshape(4, 4)[:, :3].mean(), np.linspace(0.2, 0.6, 16)[7::4].mean()
    assert row["class_mean"] == pytest.approx(100 * ((x + y) / 2 + 0.2))
    assert row["chance"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 3 + 1 / 4) / 4)
    assert (row["n_queries"], row["n_without_relevant"], row["dim"]) == (16, 1, 384)


def test_tests_are_paired_over_groups(results):
    groups = np.repeat([f"g{i}" for i in range(8)], 2)
    found = pretraining.tests(results, groups, [("demo_vit", "demo_vit-untrained")], [20], seed=0)
    assert found["gallery"].tolist() == ["closed", "open"] and found["n_units"].tolist() == [8, 8]
    assert found["difference"].tolist() == pytest.approx([20, -20], abs=1e-9)
    assert found["p_value"].tolist() == pytest.approx([2 / 2**8] * 2)


def test_directions_are_counted_until_they_hold_enough():
    """Squares 99, 0.5, 0.5 of 100: one direction holds 98 %; three equal ones are all needed."""
    ends = {"thin": torch.diag(torch.tensor([99.0, 0.5, 0.5]).sqrt()), "round": torch.eye(3)}
    curves, ranks = pretraining.spectra({name: torch.cat([axes, -axes]) for name, axes in ends.items()})
    assert curves["held"].tolist() == pytest.approx([99, 99.5, 100, 100 / 3, 200 / 3, 100])
    assert ranks["directions"].tolist() == [1, 3]
    assert ranks["rank"].iloc[1] == pytest.approx(3) and 1 < ranks["rank"].iloc[0] < 1.2
