"""Beyond the paper: variants share their heads, choices see no test image, fewer labels are fewer labels."""

from dataclasses import replace

import numpy as np
import pytest

from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.losses.linear_prototypes import Comparison
from lib.papers.linear_prototypes.retrieval import experiment as few_shot
from lib.training import hyper_dino
from lib.training import linear_prototypes as experiment
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Settings

RNG = np.random.default_rng(1)
LABELS = np.tile(np.arange(3), 32)
GROUPS = np.repeat([f"patient {i}" for i in range(16)], 6)
X = (RNG.normal(size=(3, 6))[LABELS] + 0.7 * RNG.normal(size=(96, 6))).astype(np.float32)
VIEWS = np.stack([X, X + 1.5 * RNG.normal(size=X.shape).astype(np.float32)])
SHORT = Episodes(epochs=5, batch_size=32, lr=0.01, k=3)


@pytest.fixture(scope="module")
def where() -> list[experiment.Split]:
    fold_of = folds.assign(LABELS.astype(str), GROUPS, 4, "group", 0)
    return experiment.splits({0: balanced(LABELS.astype(str), GROUPS, fold_of, 0, 4, 0)}, seed=0)


def test_the_first_variant_is_the_paper_and_each_other_changes_one_thing():
    cosine, poincare = Settings(Comparison("cosine"), 0.3), Settings(Comparison("poincare", 0.1), 1.0)
    first, *others = few_shot.variants(cosine, poincare)
    assert (first.name, first.settings, first.search, first.augmented) == (few_shot.PAPER, Settings(), "cosine", True)
    assert len({(one.settings, one.search, one.augmented) for one in others} - {(Settings(), "cosine", True)}) == 7
    assert {one.name: one.settings for one in others}["Poincaré, hyperbolic search"] == poincare


def test_variants_with_the_same_head_are_trained_once(where, monkeypatch):
    trained = []
    fit = experiment.fit

    def counted(views, labels, where, settings, schedule, **options):
        trained.append((settings, len(views)))
        return fit(views, labels, where, settings, schedule, workers=1, **options)

    monkeypatch.setattr(experiment, "fit", counted)
    default = Settings(hidden=8, dim_out=3)
    todo = [
        few_shot.Variant("a", default),
        few_shot.Variant("b", default, "euclidean"),
        few_shot.Variant("c", default, augmented=False),
    ]
    found = few_shot.compare_variants(VIEWS, LABELS, GROUPS, where, todo, SHORT, (5,))
    assert trained == [(default, 2), (default, 1)]
    values = {name: found["closed"][name][0].per_query.values for name in "abc"}
    assert not values["a"].equals(values["b"]) and not values["a"].equals(values["c"])


def test_the_choice_does_not_see_what_is_held_out(where):
    split = where[0]
    other = X.copy()
    other[split.held_out] = 50
    candidates = [few_shot.choose(x[None], LABELS, GROUPS, split, SHORT, k=5, per_class=4)[1] for x in (X, other)]
    assert candidates[0].equals(candidates[1])
    inner, units, k = few_shot.inner_split(LABELS, GROUPS, split, 4, SHORT.k)
    assert k == SHORT.k
    np.testing.assert_array_equal(units, GROUPS)
    assert set(inner.train) | set(inner.held_out) == set(split.train)
    assert not set(GROUPS[inner.train]) & set(GROUPS[inner.test])


def test_the_best_candidate_of_each_comparison_is_chosen(where):
    chosen, rows = few_shot.choose(X[None], LABELS, GROUPS, where[0], SHORT, k=5, per_class=4)
    assert rows.groupby("comparison")["chosen"].sum().tolist() == [1, 1]
    for name, part in rows.groupby("comparison"):
        best = part.loc[part["validation"].idxmax()]
        assert best["chosen"] and chosen[name].temperature == best["temperature"]
    assert chosen["poincare"].comparison.c == rows[rows["chosen"] & (rows["comparison"] == "poincare")]["c"].item()


def test_a_larger_support_needs_no_fewer_labels_and_all_sizes_answer(where):
    found = few_shot.supports(X[None], LABELS, GROUPS, where, (1, 4), SHORT, (5,))
    assert list(found) == [1, 4]
    assert all(len(answers) == 1 for answers in found.values())


def test_label_efficiency_gives_both_heads_the_same_labels(where, monkeypatch):
    seen = []

    def spied(original):
        def spy(x, labels, few, *rest, **options):
            seen.append(few[0].labelled.tolist())
            return original(x, labels, few, *rest, workers=1, **options)

        return spy

    for name in ("fit", "fit_mapper"):
        monkeypatch.setattr(experiment, name, spied(getattr(experiment, name)))
    schedules = replace(SHORT, k=5), hyper_dino.Settings(hidden=8), Schedule(epochs=3)
    found = few_shot.label_efficiency(X, LABELS, GROUPS, where, (2, 6), *schedules, (5,))
    assert [len(rows) for rows in seen] == [6, 6, 18, 18]
    assert seen[0] == seen[1] and seen[2] == seen[3] and set(seen[0]) < set(seen[2])
    assert [list(methods) for methods in found.values()] == [["linear prototypes", "Hyper-DINO"]] * 2


def test_a_choice_is_made_where_the_training_part_is_one_patient():
    """Of two patients one asks; inside the other's images every image stands for itself, and lists are shorter."""
    groups = np.where(np.arange(96) < 48, "first", "second")
    split = experiment.splits({0: balanced(LABELS.astype(str), groups, (groups == "first") * 1, 0, 4, 0)}, seed=0)[0]
    with pytest.warns(UserWarning, match="In a part of .* every image is taken for a group of its own"):
        inner, units, _ = few_shot.inner_split(LABELS, groups, split, 4, SHORT.k)
        chosen, _ = few_shot.choose(X[None], LABELS, groups, split, SHORT, k=40, per_class=4)
    assert set(inner.train) | set(inner.held_out) == set(split.train) and len(inner.train) == 36
    assert set(units[split.held_out]) == {"second"} and len(set(units[split.train])) == 48
    assert chosen.keys() == {"cosine", "poincare"}
