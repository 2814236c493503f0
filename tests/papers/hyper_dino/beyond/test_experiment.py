"""Comparisons beyond the paper are like with like: same splits, nested parts, nobody searches who should not."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.losses import hyper_dino as losses
from lib.metrics import retrieval
from lib.papers.hyper_dino.beyond import experiment as controls
from lib.training import hyper_dino
from lib.training.fit import Schedule
from lib.training.recipes import Recipe

SHORT = Schedule(epochs=3, batch_size=32)
RECIPE = Recipe("PCA", 6, 3)


def data(n: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three classes, eight groups that all have every class."""
    rng = np.random.default_rng(0)
    labels, groups = np.arange(n) % 3, np.array([f"p{i}" for i in np.arange(n) // 12])
    return (rng.normal(size=(n, 6)) + 2 * rng.normal(size=(3, 6))[labels]).astype(np.float32), labels, groups


def test_the_flat_control_at_half_the_margin_has_half_the_loss_near_the_centre():
    """In the small the ball's distance is twice the Euclidean one, so every term but the norm's is twice as large."""
    settings = replace(hyper_dino.Settings(), norm_weight=0.0)
    flat = controls.flat(settings, settings.m0 / 2)
    h = 1e-3 * torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(20) % 3
    options = {"alpha": settings.alpha, "norm_weight": 0.0}
    curved = losses.contrastive(h, labels, PoincareBall(), m0=settings.m0, **options).total
    assert flat.loss(h, labels).item() == pytest.approx(curved.item() / 2, rel=1e-4)
    assert isinstance(flat.geometry, Euclidean)


def test_answers_are_those_of_fitting_and_asking_by_hand():
    x, labels, _ = data()
    where = hyper_dino.splits(np.arange(96) % 4, seed=3)[:2]
    arms = controls.curvature_arms(RECIPE, hyper_dino.Settings())
    found = controls.answers(x, labels, arms, where, SHORT, (1, 5), "test")
    assert list(found) == ["no mapper", "ball", "flat, half margin", "flat, same margin"]
    for arm in arms:
        (one,) = hyper_dino.fit(x, labels, [arm.recipe], where[1:], arm.settings, SHORT, workers=1)
        norms, expected = hyper_dino.ask(one, x, labels, where[1].test, where[1].train, (1, 5))
        pd.testing.assert_frame_equal(found[arm.name][1].per_query.values, expected.values, atol=1e-6)
        np.testing.assert_allclose(found[arm.name][1].norms, norms, atol=1e-5)


def test_switches_change_one_thing_at_a_time():
    default, *others = controls.switch_arms(Recipe("PCA", 5, 3), 6, hyper_dino.Settings())
    assert default == controls.Arm("default", Recipe("PCA", 5, 3), hyper_dino.Settings())
    assert all((arm.recipe, arm.settings) != (default.recipe, default.settings) for arm in others)
    assert len({(arm.recipe, arm.settings) for arm in others}) == len(others)
    by_name = {arm.name: arm.recipe for arm in others}
    assert by_name["scaled features, no PCA"] == Recipe("scaled", 6, 3)
    assert by_name["dim_in outputs, whitened"] == Recipe("whitened", 5, 5)


def test_parts_are_nested_and_keep_every_class():
    rows, labels = np.arange(10, 50), np.arange(60) % 4
    parts = [set(controls.part_of_each_class(rows, labels, f, seed=1).tolist()) for f in (0.01, 0.25, 0.5, 1.0)]
    assert [len(part) for part in parts] == [4, 8, 20, 40]
    assert parts[0] < parts[1] < parts[2] < parts[3] == set(rows.tolist())
    assert all({labels[row] for row in part} == {0, 1, 2, 3} for part in parts)


def test_galleries_are_closed_or_open_and_the_query_never_finds_its_own_group():
    x, labels, groups = data()
    settings = hyper_dino.Settings()
    found = controls.galleries(x, labels, groups, 3, settings, SHORT, (1, 3), fractions=(0.5, 1.0), seed=0)
    assert len(found) == 2 * 2 * 3
    closed, opened = (found[1.0, side, "no mapper"] for side in ("closed", "open"))
    for side in (closed, opened):
        asked = np.concatenate([answer.split.test for answer in side])
        assert sorted(asked) == list(range(96))
        assert not any(set(groups[a.split.test]) & set(groups[a.split.train]) for a in side)
    split = opened[0].split
    reduced = torch.from_numpy(hyper_dino.Reduction.fit(x[split.train], labels[split.train], "PCA", 6)(x))
    own = groups[split.test]
    wanted = retrieval.evaluate(
        reduced[split.test], reduced[split.test], labels[split.test], labels[split.test], Euclidean(), (1, 3), own, own
    )
    pd.testing.assert_frame_equal(opened[0].per_query.values, wanted.values)
    assert opened[0].per_query.n_relevant.max() == (48 - 12) // 3
    half = found[0.5, "closed", "ball"][0].split
    assert len(half.train) == 24 and set(half.train) < set(closed[0].split.train)


def test_the_length_is_chosen_without_the_test_images():
    """Scrambling the test images' features changes their values, and no validation value."""
    x, labels, groups = data()
    where = hyper_dino.splits(np.repeat(np.arange(4), 24), seed=0)[:1]
    todo = [Recipe("PCA", 4, 3), Recipe("PCA", 6, 3)]
    call = (labels, groups, where, todo, hyper_dino.Settings(), SHORT, (1, 5))
    table = controls.length_choice(x, *call)
    assert len(table) == 4 and not table.isna().any(axis=None)
    scrambled = x.copy()
    scrambled[where[0].test] = np.random.default_rng(1).normal(size=(24, 6))
    other = controls.length_choice(scrambled, *call)
    np.testing.assert_array_equal(other["validation"], table["validation"])
    assert (other["test"] != table["test"]).any()


def test_a_length_that_the_validated_part_cannot_have_is_cut_to_what_it_can():
    """72 images of six groups are learnt from, 48 when two groups validate: 60 and 70 components become 48."""
    x, labels, groups = data()
    wide = np.random.default_rng(2).normal(size=(len(x), 70)).astype(np.float32)
    where = hyper_dino.splits(np.repeat(np.arange(4), 24), seed=0)[:1]
    todo = [Recipe("PCA", 4, 3), Recipe("PCA", 60, 3), Recipe("PCA", 70, 3)]
    table = controls.length_choice(wide, labels, groups, where, todo, hyper_dino.Settings(), SHORT, (1,))
    assert table["dim_in"].tolist() == [4, 48]
