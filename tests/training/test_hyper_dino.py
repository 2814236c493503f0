"""The cross-validation fits on training folds alone, is the same at any number of workers, and learns."""

import numpy as np
import pytest
import torch

from lib.datasets import folds
from lib.errors import InputError
from lib.geometry import Euclidean, PoincareBall
from lib.heads import Reduction
from lib.metrics import retrieval
from lib.training.fit import Schedule
from lib.training.hyper_dino import Recipe, Settings, contrasts, crossvalidate, longest_pca, recipes, run

SHORT = Schedule(epochs=8, batch_size=32)


def clusters(n: int = 90, dim: int = 6, classes: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Classes that differ in two of six directions, so that a head has something to find."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % classes
    x = rng.normal(size=(n, dim))
    x[:, :2] += 1.5 * rng.normal(size=(classes, 2))[labels]
    return x.astype(np.float32), labels


def test_recipes_are_the_papers_families():
    todo = recipes(384, [5, 384], dim_out=32)
    assert [(r.name, r.family) for r in todo] == [
        ("384 scaled", "baseline"),
        ("Hyper-DINO(384 scaled, 32)", "32"),
        ("Hyper-DINO(384 scaled, 384)", "dim_in"),
        ("PCA(5)", "baseline"),
        ("Hyper-DINO(PCA(5), 32)", "32"),
        ("Hyper-DINO(PCA(5), 5)", "dim_in"),
        ("PCA(384)", "baseline"),
        ("Hyper-DINO(PCA(384), 32)", "32"),
        ("Hyper-DINO(PCA(384), 384)", "dim_in"),
    ]


def test_full_is_the_feature_length_and_said_once():
    assert [r.dim_in for r in recipes(40, [40, "full"], dim_out=8)] == [40] * 6


def test_few_training_images_limit_the_lengths():
    """Ten images, the largest test fold has four: six are left to train on."""
    longest = longest_pca(40, [np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2]), np.arange(10) % 5])
    assert longest == 6
    assert [r.name for r in recipes(40, [5, 20, "full"], 8, longest) if not r.dim_out] == [
        "40 scaled",
        "PCA(5)",
        "PCA(6)",
    ]


def test_an_input_as_long_as_the_embedding_is_one_recipe():
    assert [r.family for r in recipes(32, [], dim_out=32)] == ["baseline", "dim_in"]


def test_a_length_beyond_the_features_is_refused():
    with pytest.raises(InputError, match="PCA length 50 does not fit features of 40 numbers"):
        recipes(40, [50])


def test_contrasts_are_at_the_longest_pca():
    pairs = contrasts(recipes(40, [5, 20], dim_out=8))
    assert [(a.name, b.name) for a, b in pairs] == [
        ("Hyper-DINO(PCA(20), 8)", "PCA(20)"),
        ("Hyper-DINO(PCA(20), 8)", "Hyper-DINO(PCA(20), 20)"),
    ]


def test_an_input_as_long_as_the_embedding_is_compared_with_the_baseline_alone():
    assert [(a.name, b.name) for a, b in contrasts(recipes(40, [32], dim_out=32))] == [
        ("Hyper-DINO(PCA(32), 32)", "PCA(32)")
    ]


def test_nothing_of_the_test_fold_is_fitted():
    """Change the test images beyond recognition: losses, norms and gallery must not move."""
    x, labels = clusters()
    fold_of = folds.assign(labels.astype(str), np.arange(90).astype(str), 3, "image", 0)
    changed = x.copy()
    changed[fold_of == 1] = 1000 * x[fold_of == 1] + 7
    recipe = Recipe("PCA", 4, 2)
    one, two = (run(recipe, data, labels, fold_of, 1, Settings(), SHORT, (1, 5), 0) for data in (x, changed))
    assert one.history == two.history
    np.testing.assert_array_equal(one.norms, two.norms)


def test_the_baseline_is_euclidean_retrieval_on_scaled_pca():
    x, labels = clusters()
    fold_of = np.arange(90) // 3 % 3
    outcome = run(Recipe("PCA", 3, 0), x, labels, fold_of, 2, Settings(), SHORT, (1, 5), 0)
    train, test = fold_of != 2, fold_of == 2
    reduced = torch.from_numpy(Reduction.fit(x[train])(x, 3))
    by_hand = retrieval.evaluate(reduced[test], reduced[train], labels[test], labels[train], Euclidean(), (1, 5))
    np.testing.assert_array_equal(outcome.per_query.values, by_hand.values)
    assert outcome.history == []


def test_the_gallery_of_a_ball_lies_inside_it():
    x, labels = clusters()
    settings = Settings(geometry=PoincareBall(4.0), m0=3.0)
    outcome = run(Recipe("scaled", 6, 2), x, labels, np.arange(90) % 2, 0, settings, SHORT, (1,), 0)
    assert 0 < outcome.norms.max() <= 0.5 * (1 - 1e-3) * (1 + 1e-6)


def test_workers_do_not_change_the_result():
    x, labels = clusters()
    fold_of = np.arange(90) // 3 % 2
    todo = [Recipe("PCA", 4, 0), Recipe("PCA", 4, 2)]
    one, two = (
        crossvalidate(x, labels, fold_of, todo, Settings(), SHORT, ks=(1, 5), seed=3, workers=workers)
        for workers in (1, 2)
    )
    assert [(o.recipe, o.fold) for o in one] == [(r, f) for f in (0, 1) for r in todo]
    for a, b in zip(one, two, strict=True):
        assert a.history == b.history
        np.testing.assert_array_equal(a.per_query.values, b.per_query.values)


def test_training_with_the_published_schedule_helps_on_separable_classes():
    x, labels = clusters(n=150)
    fold_of = folds.assign(labels.astype(str), np.arange(150).astype(str), 3, "image", 0)
    todo = [Recipe("scaled", 6, 0), Recipe("scaled", 6, 2)]
    outcomes = crossvalidate(x, labels, fold_of, todo, Settings(), Schedule(epochs=40), ks=(20,), workers=1)
    means = {family: [] for family in ("baseline", "2")}
    for outcome in outcomes:
        means[outcome.recipe.family].append(outcome.per_query.values["ap_min"][20].mean())
        if outcome.history:
            assert outcome.history[-1] < 0.7 * outcome.history[0]
    assert np.mean(means["2"]) > np.mean(means["baseline"]) + 0.1
