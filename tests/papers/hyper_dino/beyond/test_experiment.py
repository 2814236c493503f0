"""Comparisons beyond the paper are like with like: same splits, nested parts, nobody searches who should not."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.heads import Reduction
from lib.losses import hyper_dino as losses
from lib.metrics import retrieval
from lib.papers.hyper_dino.beyond import experiment as controls
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe
from lib.training.splits import splits

SHORT = Schedule(epochs=3, batch_size=32)
RECIPE = Recipe("PCA", 6, 3)


def data(n: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three classes, eight groups that all have every class."""
    rng = np.random.default_rng(0)
    labels, groups = np.arange(n) % 3, np.array([f"p{i}" for i in np.arange(n) // 12])
    return (rng.normal(size=(n, 6)) + 2 * rng.normal(size=(3, 6))[labels]).astype(np.float32), labels, groups


def test_the_flat_control_at_half_the_margin_has_half_the_loss_near_the_centre():
    """In the small the ball's distance is twice the Euclidean one, so every term but the norm's is twice as large."""
    settings = replace(Settings(), norm_weight=0.0)
    flat = controls.flat(settings, settings.m0 / 2)
    h = 1e-3 * torch.randn(20, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    labels = torch.arange(20) % 3
    options = {"alpha": settings.alpha, "norm_weight": 0.0}
    curved = losses.contrastive(h, labels, PoincareBall(), m0=settings.m0, **options).total
    assert flat.loss(h, labels).item() == pytest.approx(curved.item() / 2, rel=1e-4)
    assert isinstance(flat.geometry, Euclidean)


def test_every_opponent_lacks_something():
    settings = Settings(m0=0.6, alpha=0.2, half=False)
    found = controls.curvature_methods(9, RECIPE, settings, SHORT, classes=4, classifier_lr=0.03)
    plain, bare, nca, linear, fair, half, ball = found
    assert (plain.name, plain.recipe, plain.search) == ("raw features, cosine", Recipe("raw", 9, 0), "cosine")
    assert (bare.name, bare.recipe) == ("no mapper", Recipe("PCA", 6, 0))
    assert (nca.name, nca.recipe) == ("NCA", Recipe("NCA", 3, 0))
    assert (linear.recipe, linear.head.ranking, linear.head.half) == (Recipe("PCA", 6, 4), "logits", False)
    assert (fair.name, fair.head.ranking) == ("linear classifier, probability", "probability")
    assert fair.training == linear.training  # one network, searched in two ways
    assert (ball.name, ball.head) == ("ball", settings)
    assert half.head == replace(settings, geometry=Euclidean(), m0=0.3)
    assert all(one.recipe == RECIPE and one.schedule == SHORT for one in (ball, half))
    assert linear.schedule == replace(SHORT, lr=0.03)


def test_switches_change_one_thing_at_a_time():
    default, *others = controls.switch_methods(Recipe("PCA", 5, 3), 6, Settings(), SHORT)
    assert (default.name, default.recipe, default.head) == ("default", Recipe("PCA", 5, 3), Settings())
    assert len({one.training for one in (default, *others)}) == 1 + len(others)
    assert {(one.schedule, one.search, one.augmented) for one in (default, *others)} == {(SHORT, "own", True)}
    by_name = {one.name: one.recipe for one in others}
    assert by_name["scaled features, no PCA"] == Recipe("scaled", 6, 3)
    assert by_name["dim_in outputs, PCA"] == Recipe("PCA", 5, 5)
    assert [one.name for one in others if one.head.start_norm == 0] == [
        "as printed, not scaled",
        "dim_in outputs, PCA, as printed",
    ]


@pytest.fixture(scope="module")
def asked() -> controls.Found:
    recipe, schedule = Recipe("PCA", 5, 3), Schedule(epochs=3, batch_size=8)
    options = {"classifier_lr": 0.03, "fractions": (0.5, 1.0), "n_seeds": 2, "seed": 0}
    return controls.galleries(*data(), recipe, Settings(), schedule, (1, 3), **options)


def test_galleries_are_closed_or_open_and_the_query_never_finds_its_own_group(asked):
    x, labels, groups = data()
    assert len(asked) == 2 * 2 * 2 * 6
    closed, opened = (asked[1.0, controls.EQUAL, side, "no mapper"] for side in ("closed", "open"))
    for side in (closed, opened):
        for repeat in (0, 1):
            queries = np.concatenate([answer.split.test for answer in side if answer.split.repeat == repeat])
            assert sorted(queries) == list(range(96))
        assert not any(set(groups[a.split.test]) & set(groups[a.split.train]) for a in side)
    split = opened[0].split
    reduced = torch.from_numpy(Reduction.fit(x[split.train], labels[split.train], "PCA", 5)(x))
    own = groups[split.test]
    wanted = retrieval.evaluate(
        reduced[split.test], reduced[split.test], labels[split.test], labels[split.test], Euclidean(), (1, 3), own, own
    )
    pd.testing.assert_frame_equal(opened[0].per_query.values, wanted.values)
    assert opened[0].per_query.n_relevant.max() == (48 - 12) // 3


def test_fewer_images_are_parts_of_more_and_take_as_many_steps(asked):
    """48 images are six batches of 8, 24 are three: in three epochs 18 steps and nine, in six epochs 18 again."""
    whole, half, short = (
        asked[part, length, "closed", "ball"]
        for part, length in ((1.0, controls.EQUAL), (0.5, controls.EQUAL), (0.5, controls.EPOCHS))
    )
    assert all(
        len(a.split.train) == 24 and set(a.split.train) < set(b.split.train) for a, b in zip(half, whole, strict=True)
    )
    assert [{answer.health.steps for answer in side} for side in (whole, half, short)] == [{18}, {18}, {9}]
    assert [answer.split.repeat for answer in half] == [0, 0, 1, 1]


def test_all_images_are_those_of_the_largest_part(asked):
    whole = controls.of_all_images(asked)
    assert list(whole) == ["closed", "open"] and list(whole["open"])[-1] == "ball"
    assert {len(answer.split.train) for done in whole["open"].values() for answer in done} == {48}


def test_the_length_is_chosen_without_the_test_images():
    """Scrambling the test images' features changes their values, and no validation value."""
    x, labels, groups = data()
    where = splits(np.repeat(np.arange(4), 24), seed=0)[:1]
    todo = [Recipe("PCA", 4, 3), Recipe("PCA", 6, 3)]
    call = (labels, groups, where, todo, Settings(), SHORT, (1, 5))
    table, tested = controls.length_choice(x, *call, n_seeds=2)
    assert len(table) == 4 and not table.isna().any(axis=None)
    scrambled = x.copy()
    scrambled[where[0].test] = np.random.default_rng(1).normal(size=(24, 6))
    other, _ = controls.length_choice(scrambled, *call, n_seeds=2)
    np.testing.assert_array_equal(other["validation"], table["validation"])
    assert (other["test"] != table["test"]).any()
    assert table["chance"].between(0, 100).all()
    assert {pair: len(of) for pair, of in tested.items()} == {(0, 4): 2, (0, 6): 2}
    assert (table["steps"] == SHORT.epochs * SHORT.steps(len(where[0].train))).all()


def answered(fold, values, classes):
    """What one head answers to the queries of a fold."""
    n, columns = len(classes), pd.MultiIndex.from_product([["ap_min"], [20]], names=["metric", "k"])
    frame = pd.DataFrame(np.array(values)[:, None], columns=columns)
    per_query = retrieval.PerQuery(frame, np.array(classes), np.full(n, 5), np.full(n, 20))
    return SimpleNamespace(split=SimpleNamespace(fold=fold, repeat=0), per_query=per_query)


def test_what_is_chosen_is_reported_with_its_own_class_mean_and_health():
    """Fold 0 chooses 40 and fold 1 80: means over these two rows, the worst rim, class means of both folds together."""
    rows = [(0, 40, 70.0, 60.0, 1.0), (0, 80, 60.0, 64.0, 0.0), (1, 40, 50.0, 60.0, 9.0), (1, 80, 90.0, 66.0, 2.0)]
    table = pd.DataFrame(rows, columns=["fold", "dim_in", "validation", "test", "rim"]).assign(k=20, steps=105)
    table = table.assign(chance=3.5, loss=table["rim"] / 10)
    tested = {
        (0, 40): [answered(0, [1.0, 1.0, 1.0, 0.0], [0, 0, 0, 1])],
        (1, 80): [answered(1, [1.0] * 4, [0, 1, 1, 1])],
    }
    tested |= {pair: [answered(pair[0], [0.0] * 4, [0, 0, 1, 1])] for pair in ((0, 80), (1, 40))}
    chosen = controls.choose(table, tested, 20).set_index("choice")
    assert chosen["value"].tolist() == [63.0, 65.0, 65.0]  # 40 then 80; always 80; 80, the longest
    row = chosen.loc[controls.ON_VALIDATION]
    assert (row["class_mean"], row["rim"], row["steps"]) == (87.5, 2.0, 105)
    assert row["loss"] == pytest.approx(0.15) and row["lengths"] == "40, 80"


def test_a_length_that_the_validated_part_cannot_have_is_cut_to_what_it_can():
    """72 images of six groups are learnt from, 48 when two groups validate: 60 and 70 components become 48."""
    x, labels, groups = data()
    wide = np.random.default_rng(2).normal(size=(len(x), 70)).astype(np.float32)
    where = splits(np.repeat(np.arange(4), 24), seed=0)[:1]
    todo = [Recipe("PCA", 4, 3), Recipe("PCA", 60, 3), Recipe("PCA", 70, 3)]
    table, _ = controls.length_choice(wide, labels, groups, where, todo, Settings(), SHORT, (1,))
    assert table["dim_in"].tolist() == [4, 48]
