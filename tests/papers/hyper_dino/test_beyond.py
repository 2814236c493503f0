"""Comparisons beyond the paper are like with like: same splits, nested parts, the right images, nobody's own group."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats

from lib.geometry import Euclidean
from lib.heads import Reduction
from lib.metrics import retrieval
from lib.metrics.retrieval import PerQuery
from lib.papers.hyper_dino import beyond, protocols
from lib.study.store import Run
from lib.training import experiment
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, splits

SHORT = Schedule(epochs=3, batch_size=32)
RECIPE = Recipe("PCA", 6, 3)
ABOUT = {"n_seeds": 5, "epochs": 15, "input": "PCA(6)", "folds": 3, "folds_used": 2}
RUN = Run("16_hyper_dino_beyond", "demo", "tissue", "some images", "abc", "texture", ABOUT)


def data(n: int = 96) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three classes, eight groups that all have every class."""
    rng = np.random.default_rng(0)
    labels, groups = np.arange(n) % 3, np.array([f"p{i}" for i in np.arange(n) // 12])
    return (rng.normal(size=(n, 6)) + 2 * rng.normal(size=(3, 6))[labels]).astype(np.float32), labels, groups


def test_switches_change_one_thing_at_a_time():
    default, *others = beyond.switch_methods(Recipe("PCA", 5, 3), 6, Settings(), SHORT)
    assert (default.name, default.recipe, default.head) == ("default", Recipe("PCA", 5, 3), Settings())
    assert len({one.training for one in (default, *others)}) == 1 + len(others)
    assert {(one.schedule, one.search, one.augmented) for one in (default, *others)} == {(SHORT, "own", True)}
    recipes = {Recipe("scaled", 6, 3), Recipe("whitened", 5, 3), Recipe("PCA", 5, 5)}
    assert {one.recipe for one in others if one.head == Settings()} == recipes
    assert sum(one.head.start_norm == 0 for one in others) == 2


@pytest.fixture(scope="module")
def asked() -> protocols.Galleries:
    recipe, schedule = Recipe("PCA", 5, 3), Schedule(epochs=3, batch_size=8)
    options = {"classifier_lr": 0.03, "n_seeds": 2, "seed": 0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocols, "FRACTIONS", (0.5, 1.0))
        return protocols.galleries(*data(), recipe, Settings(), schedule, (1, 3), **options)


def test_galleries_are_closed_or_open_and_the_query_never_finds_its_own_group(asked):
    x, labels, groups = data()
    assert len(asked) == 2 * 2 * 2 * 6
    closed, opened = (asked[1.0, protocols.EQUAL, side, "no mapper"] for side in ("closed", "open"))
    for side in (closed, opened):
        for repeat in (0, 1):
            queries = np.concatenate([answer.split.test for answer in side if answer.split.repeat == repeat])
            assert sorted(queries) == list(range(96))
        assert not any(set(groups[a.split.test]) & set(groups[a.split.train]) for a in side)
    split = opened[0].split
    reduced = torch.from_numpy(Reduction.fit(x[split.train], labels[split.train], "PCA", 5)(x))
    z, of, own = reduced[split.test], labels[split.test], groups[split.test]
    wanted = retrieval.evaluate(z, z, of, of, Euclidean(), (1, 3), own, own)
    pd.testing.assert_frame_equal(opened[0].per_query.values, wanted.values)
    assert opened[0].per_query.n_relevant.max() == (48 - 12) // 3


def test_fewer_images_are_parts_of_more_and_take_as_many_steps(asked):
    """48 images are six batches of 8, 24 are three: in three epochs 18 steps and nine, in six epochs 18 again."""
    learnt = ((1.0, protocols.EQUAL), (0.5, protocols.EQUAL), (0.5, protocols.EPOCHS))
    whole, half, short = (asked[part, length, "closed", "ball"] for part, length in learnt)
    for part, of_all in zip(half, whole, strict=True):
        assert len(part.split.train) == 24 and set(part.split.train) < set(of_all.split.train)
    assert [{answer.health.steps for answer in side} for side in (whole, half, short)] == [{18}, {18}, {9}]
    assert [answer.split.repeat for answer in half] == [0, 0, 1, 1]
    whole = protocols.of_all_images(asked)
    assert {len(answer.split.train) for done in whole["open"].values() for answer in done} == {48}
    table = protocols.gallery_values(asked)
    row = table.query("n_train == 24 and length == @protocols.EQUAL and gallery == 'closed' and method == 'ball'")
    values = [100 * answer.per_query.values["ap_min", 3].mean() for answer in half]
    assert row.query("k == 3")["ours"].tolist() == pytest.approx([np.mean(values)])


def test_the_length_is_chosen_without_the_test_images():
    """Scrambling the test images' features changes their values, and no validation value."""
    x, labels, groups = data()
    where = splits(np.repeat(np.arange(4), 24), seed=0)[:1]
    todo = [Recipe("PCA", 4, 3), Recipe("PCA", 6, 3)]
    call = (labels, groups, where, todo, Settings(), SHORT, (1, 5))
    table, tested = protocols.length_choice(x, *call, n_seeds=2)
    assert len(table) == 4 and not table.isna().any(axis=None)
    scrambled = x.copy()
    scrambled[where[0].test] = np.random.default_rng(1).normal(size=(24, 6))
    other, _ = protocols.length_choice(scrambled, *call, n_seeds=2)
    np.testing.assert_array_equal(other["validation"], table["validation"])
    assert (other["test"] != table["test"]).any()
    assert {pair: len(of) for pair, of in tested.items()} == {(0, 4): 2, (0, 6): 2}


def test_where_classes_are_dealt_nothing_is_known_and_every_training_has_its_own_deal():
    """Of three far classes every first answer is right; of dealt ones about a third, by features and by the head."""
    x, labels, _ = data(240)
    parts, methods = splits(np.arange(240) % 2, seed=0), [Method("raw", Recipe("raw", 6, 0), Settings(), SHORT)]
    methods.append(Method("ball", RECIPE, Settings(), SHORT))
    known = experiment.answers(x, labels, methods, parts, (1,))
    luck = protocols.dealt(x, labels, methods, parts, (1,), n_deals=3)
    places = [(fold, repeat) for repeat in range(3) for fold in range(2)]
    for name in ("raw", "ball"):
        right, lucky = (_first_answers(of[name]) for of in (known, luck))
        assert right > 0.9 and abs(lucky - 1 / 3) < 0.08
        assert [(one.split.fold, one.split.repeat) for one in luck[name]] == places
    deals = [np.concatenate([luck["raw"][2 * n + fold].per_query.classes for fold in range(2)]) for n in range(3)]
    assert all(np.bincount(deal).tolist() == [80, 80, 80] for deal in deals)
    assert len({tuple(deal) for deal in deals}) == 3


def _first_answers(several: list[Answer]) -> float:
    return np.mean([one.per_query.values["precision", 1].mean() for one in several])


def test_a_length_that_the_validated_part_cannot_have_is_cut_to_what_it_can():
    """72 images of six groups are learnt from, 48 when two groups validate: 60 and 70 components become 48."""
    _, labels, groups = data()
    wide = np.random.default_rng(2).normal(size=(len(labels), 70)).astype(np.float32)
    first, todo = splits(np.repeat(np.arange(4), 24), seed=0)[:1], [Recipe("PCA", n, 3) for n in (4, 60, 70)]
    table, _ = protocols.length_choice(wide, labels, groups, first, todo, Settings(), SHORT, (1,))
    assert table["dim_in"].tolist() == [4, 48]


def test_what_is_chosen_is_reported_with_its_own_class_mean_and_health():
    """Fold 0 chooses 40 and fold 1 80: means over these two, the worst rim, class means of both folds together."""
    rows = [(0, 40, 70.0, 60.0), (0, 80, 60.0, 64.0), (1, 40, 50.0, 60.0), (1, 80, 90.0, 66.0)]
    table = pd.DataFrame(rows, columns=["fold", "dim_in", "validation", "test"]).assign(k=20)
    tested = {
        (0, 40): [answer([0, 1, 2, 3], [1.0, 1.0, 1.0, 0.0], fold=0, rim=1.0)],
        (1, 80): [answer([4, 5, 6, 9], [0.8] * 4, fold=1, rim=2.0)],
    }
    tested |= {pair: [answer([0, 1, 2, 3], [0.0] * 4, fold=pair[0], rim=9.0)] for pair in ((0, 80), (1, 40))}
    chosen = protocols.choose(table, tested, 20).query("k == 20").set_index("choice")
    assert chosen["value"].tolist() == pytest.approx([77.5, 40.0, 40.0])  # 40 then 80; always 80; 80, the longest
    row = chosen.loc[protocols.ON_VALIDATION]
    assert (row["class_mean"], row["rim"], row["lengths"]) == (pytest.approx((90 + 40) / 2), 2.0, "40, 80")


METRICS = ["ap_min", "ap_hits", "ap_k", "precision", "hit_rate"]
GROUPS = np.array(["p", "p", "q", "q", "r", "r", "r", "r", "r", "r"])
LABELS = np.array([0, 0, 0, 1, 0, 0, 0, 0, 0, 1])


def answer(test: list[int], values: list[float], train=(8, 9), repeat=0, rim=np.nan, fold: int | None = None) -> Answer:
    """One split: every query has its value in every metric at k = 1 and 20; NaN where nothing is relevant."""
    columns = pd.MultiIndex.from_product([METRICS, [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 10, axis=1), columns=columns)
    relevant = np.where(np.isnan(values), 0, 1)
    per_query = PerQuery(frame, LABELS[test], relevant, np.full(len(test), len(train)))
    split = Split(test[0] if fold is None else fold, np.array(train), np.array(test), 0, repeat=repeat)
    method = Method("ball", Recipe("PCA", 4, 2), Settings())
    return Answer(method, split, Health(rim=rim), [], np.array([0.1, 0.3]), per_query)


BY_IMAGE = {"ball": [answer([0, 2], [1.0, 0.8], train=(1, 3)), answer([1, 3], [0.8, np.nan], train=(0, 2))]}
BY_GROUP = {"ball": [answer([0, 1], [0.5, 0.7]), answer([2, 3], [0.6, 0.2])]}


def test_leakage_compares_the_same_images_whatever_split_they_asked_in():
    """Images 0, 1, 2 answer both times: 100, 80, 80 against 50, 70, 60; image 3 only once. Patient p has the first two.

    By chance the one relevant image of two comes first or second: (1 + 1/2)/2.
    """
    row = protocols.leakage(BY_IMAGE, BY_GROUP, GROUPS, [20]).iloc[0]
    assert row["by_image"] == row["all_by_image"] == pytest.approx((90 + 80) / 2)
    assert row["by_group"] == pytest.approx(60)
    assert row["chance"] == pytest.approx(75)
    assert row["difference"] == pytest.approx(row["by_group"] - row["by_image"]) and row["n_units"] == 2
    lost = protocols.leakage(BY_IMAGE, BY_GROUP, GROUPS, [1, 20], kind="patient")
    assert "| -25.00 |" in beyond.leakage_layout(lost)


def test_leakage_averages_over_trainings():
    """Two trainings of patient p's images, 80 and 60 without the patient and 100 with: 30 points lost, 40 and 20."""
    by_image = {"ball": [answer([0, 1, 2], [1.0, 1.0, 1.0], (0, 1, 3), repeat) for repeat in (0, 1)]}
    by_group = {"ball": [answer([0, 1, 2], [x, x, x], repeat=repeat) for repeat, x in enumerate((0.8, 0.6))]}
    by_group["ball"] = [replace(one, health=Health(rim=float(one.split.repeat))) for one in by_group["ball"]]
    row = protocols.leakage(by_image, by_group, GROUPS, [20]).iloc[0]
    assert row["rim_by_group"] == 1 and np.isnan(row["rim_by_image"])
    assert row["class_mean_by_group"] == pytest.approx(70)
    assert (row["difference"], row["n_units"], row["n_seeds"]) == (pytest.approx(-30), 2, 2)
    assert row["p_seeds"] == pytest.approx(stats.ttest_1samp([-20, -40], 0).pvalue)


def test_what_cannot_leak_is_not_tested():
    """Images 0 and 1 have image 8 of their group in the archive and lose 40 and 20 points, image 2 has none of its own.

    Over all, the loss is thinned out: two groups, 30 points and none.
    """
    groups = np.array(["p", "p", "q", "q", "r", "r", "r", "r", "p", "r"])
    by_image = {"ball": [answer([0, 1, 2], [1.0, 0.9, 0.5], train=(8, 9))]}
    by_group = {"ball": [answer([0, 1, 2], [0.6, 0.7, 0.5], train=(8, 9))]}
    rows = protocols.leakage(by_image, by_group, groups, [20], kind="lesion")
    row = rows.iloc[0]
    assert (row["n_queries"], row["n_all"], row["n_units"]) == (2, 3, 1)
    assert row["difference"] == pytest.approx(-30)
    assert row["all_by_group"] - row["all_by_image"] == pytest.approx(-15)
    for shown in (beyond.table(RUN, "table_leakage", rows), beyond.figure_leakage(RUN, rows)):
        assert "Tested over the 2 images whose lesion has another one in the archive (1 lesions)" in shown.caption
        assert "other lesions of the same patient stay in the archive" in shown.caption


def test_switches_stand_beside_the_default_and_every_definition_has_its_gain():
    results = {"default": [answer([0, 2], [0.5, 0.5])], "other": [answer([0, 2], [0.75, 0.25])]}
    rows = beyond.switch_rows(results, GROUPS, [20]).set_index("method")
    assert np.isnan(rows.loc["default", "difference"]) and rows.loc["other", "difference"] == pytest.approx(0)
    results = {"by image": {"no mapper": [answer([0], [0.5])], "ball": [answer([0], [0.8])]}}
    results["by image"]["ball"][0].per_query.values["ap_k", 20] = 0.6
    np.testing.assert_allclose(beyond.definition_rows(results, "no mapper", "ball", 20)["gain"], [30, 30, 10, 30])
