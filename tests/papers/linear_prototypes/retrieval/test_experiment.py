"""Beyond the paper: variants share their heads, choices see no test image, fewer labels are fewer labels."""

from dataclasses import replace

import numpy as np
import pytest

from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.losses.linear_prototypes import Comparison
from lib.papers.linear_prototypes.retrieval import experiment as few_shot
from lib.training import hyper_dino
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Settings
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, query_splits

RNG = np.random.default_rng(1)
LABELS = np.tile(np.arange(3), 32)
GROUPS = np.repeat([f"patient {i}" for i in range(16)], 6)
X = (RNG.normal(size=(3, 6))[LABELS] + 0.7 * RNG.normal(size=(96, 6))).astype(np.float32)
VIEWS = np.stack([X, X + 1.5 * RNG.normal(size=X.shape).astype(np.float32)])
SHORT = Episodes(epochs=5, batch_size=32, lr=0.01, k=3)
HEAD = few_shot.trained("linear prototypes", 6, 4, Settings(hidden=8), SHORT)


@pytest.fixture(scope="module")
def where() -> list[Split]:
    fold_of = folds.assign(LABELS.astype(str), GROUPS, 4, "group", 0)
    return query_splits({0: balanced(LABELS.astype(str), GROUPS, fold_of, 0, 4, 0)}, seed=0)


def test_the_first_variant_is_the_paper_and_each_other_changes_one_thing():
    cosine, poincare = Settings(Comparison("cosine"), 0.3), Settings(Comparison("poincare", 0.1), 1.0)
    first, *others = few_shot.variants(6, 4, cosine, poincare, Settings(), SHORT)
    assert (first.name, first.head, first.search, first.augmented) == (few_shot.PAPER, Settings(), "cosine", True)
    assert all((one.recipe, one.schedule) == (Recipe("scaled", 6, 4), SHORT) for one in (first, *others))
    changed = {(one.head, one.search, one.augmented) for one in others}
    assert len(changed - {(Settings(), "cosine", True)}) == len(others) == 7
    by_name = {one.name: (one.head, one.search) for one in others}
    assert by_name["Poincaré, hyperbolic search"] == (poincare, "own")
    assert by_name["Poincaré, cosine search"] == (poincare, "cosine")


def test_variants_with_the_same_head_are_trained_once(where, monkeypatch):
    made = []
    make = Settings.make
    monkeypatch.setattr(Settings, "make", lambda *call: made.append(call) or make(*call))
    cosine, poincare = (replace(HEAD.head, comparison=Comparison(name)) for name in ("cosine", "poincare"))
    todo = few_shot.variants(6, 4, cosine, poincare, HEAD.head, SHORT)
    found = few_shot.in_galleries(VIEWS, LABELS, GROUPS, where, todo, (5,))
    assert len(made) == 6 and len(todo) == 8  # the paper's head and the Poincaré one are searched in two ways
    assert [list(several) for several in found.values()] == [[one.name for one in todo]] * 2
    values = {one.name: found["closed"][one.name][0].per_query.values for one in todo}
    assert not values[few_shot.PAPER].equals(values["the same, Euclidean search"])
    assert not values[few_shot.PAPER].equals(values["no augmented views, cosine search"])


def test_all_three_methods_of_every_encoder_and_gallery_are_there(where):
    """The last number has a hundred times the spread of the first, and cosine sees little else."""
    wide = VIEWS * np.logspace(0, 2, 6, dtype=np.float32)
    features = {"one": wide, "two": wide[:1, :, :5]}
    head = replace(HEAD, schedule=replace(SHORT, epochs=40))
    found = few_shot.pretrained_and_trained(features, LABELS, GROUPS, where, head, (1, 5))
    methods = [few_shot.PT, few_shot.SCALED, few_shot.TL]
    assert list(found) == ["closed", "open"]
    assert all(
        list(done) == [f"{encoder}, {name}" for encoder in features for name in methods] for done in found.values()
    )
    value = {
        name: np.mean([answer.per_query.values["ap_min", 5].mean() for answer in done])
        for name, done in found["closed"].items()
    }
    assert min(value["one, TL"], value["one, PT, scaled"]) > value["one, PT, as they are"] + 0.1


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
    found = few_shot.supports(X[None], LABELS, GROUPS, where, (1, 4), HEAD, (5,))
    assert {k: answers[0].method.schedule.k for k, answers in found.items()} == {1: 1, 4: 4}
    assert all(len(answers) == 1 for answers in found.values())


def test_label_efficiency_gives_both_heads_the_same_labels(where):
    mapper = Method("Hyper-DINO", Recipe("scaled", 6, 4), hyper_dino.Settings(hidden=8, half=False), Schedule(epochs=3))
    head = replace(HEAD, schedule=replace(SHORT, k=5))
    found = few_shot.label_efficiency(X, LABELS, GROUPS, where, (2, 6), head, mapper, (5,))
    assert [list(methods) for methods in found.values()] == [["linear prototypes", "Hyper-DINO"]] * 2
    drawn = {size: [done[0].split for done in methods.values()] for size, methods in found.items()}
    for size, (one, other) in drawn.items():
        assert np.bincount(LABELS[one.labelled]).tolist() == [size] * 3
        assert np.array_equal(one.labelled, other.labelled)
        assert np.array_equal(one.train, where[0].train)  # which are searched, labelled or not
    assert set(drawn[2][0].labelled) < set(drawn[6][0].labelled)
    assert [methods["linear prototypes"][0].method.schedule.k for methods in found.values()] == [1, 5]
    # Six and eighteen images in batches of 32 and of 128.
    assert [done[0].health.steps for done in found[6].values()] == [5, 3]


def test_a_choice_is_made_where_the_training_part_is_one_patient():
    """Of two patients one asks; inside the other's images every image stands for itself, and lists are shorter."""
    groups = np.where(np.arange(96) < 48, "first", "second")
    split = query_splits({0: balanced(LABELS.astype(str), groups, (groups == "first") * 1, 0, 4, 0)}, seed=0)[0]
    with pytest.warns(UserWarning, match="In a part of .* every image is taken for a group of its own"):
        inner, units, _ = few_shot.inner_split(LABELS, groups, split, 4, SHORT.k)
        chosen, _ = few_shot.choose(X[None], LABELS, groups, split, SHORT, k=40, per_class=4)
    assert set(inner.train) | set(inner.held_out) == set(split.train) and len(inner.train) == 36
    assert set(units[split.held_out]) == {"second"} and len(set(units[split.train])) == 48
    assert chosen.keys() == {"cosine", "poincare"}
