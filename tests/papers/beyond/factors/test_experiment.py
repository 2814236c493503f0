"""One thing changes at a time: heads see the same input for as many steps; no archive holds what it should not."""

import numpy as np
import pytest

from lib.geometry import Euclidean, PoincareBall
from lib.papers.beyond.factors import experiment
from lib.papers.beyond.factors.experiment import BALL, FLAT, LOGITS, NCA, NONE, PROBABILITY, PROTOTYPES, STANDARDISED
from lib.training.experiment import ask, fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe
from lib.training.splits import repeated, splits

N, KS = 96, (1, 5)
LABELS, GROUPS = np.arange(N) % 4, np.array([f"p{i}" for i in np.arange(N) // 8])
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(N, 12)) + 2 * RNG.normal(size=(4, 12))[LABELS]).astype(np.float32)
SETTINGS, SCHEDULE = Settings(hidden=8, half=False), Schedule(epochs=3, batch_size=16)
METHODS = experiment.methods(12, 10, 6, 4, SETTINGS, SCHEDULE, 3, 0.01)
SPLITS_OF = {
    "by image": repeated(splits(np.arange(N) // 5 % 3, seed=0), 2),
    "by patient": repeated(splits(np.arange(N) // 8 % 3, seed=0), 2),
}


@pytest.fixture(scope="module")
def fitted() -> experiment.Trained:
    return {rule: fit(X, LABELS, METHODS, parts, workers=1) for rule, parts in SPLITS_OF.items()}


@pytest.fixture(scope="module")
def found(fitted) -> experiment.Results:
    return experiment.archives(fitted, X, LABELS, GROUPS, KS, "heads", workers=1)


def test_every_head_learns_from_the_same_components_in_as_many_steps(found):
    heads = [method for method in METHODS if method.recipe.dim_out]
    assert {(head.recipe.source, head.recipe.dim_in) for head in heads} == {("PCA", 10)} and len(heads) == 5
    assert {answer.health.steps for head in heads for answer in found["closed, by patient"][head.name]} == {12}
    assert {
        answer.health.steps for name in (NONE, STANDARDISED, NCA) for answer in found["open, by patient"][name]
    } == {0}


def test_only_the_classifier_has_another_learning_rate():
    rates = {method.name: method.schedule.lr for method in METHODS if method.recipe.dim_out}
    assert {name for name, lr in rates.items() if lr == 0.01} == {LOGITS, PROBABILITY}
    assert {lr for name, lr in rates.items() if name not in (LOGITS, PROBABILITY)} == {SCHEDULE.lr}


def test_ball_and_flat_head_differ_in_curvature_and_half_of_the_margin_alone():
    by_name = {method.name: method for method in METHODS}
    ball, flat = by_name[BALL].head, by_name[FLAT].head
    differ = {name for name in vars(ball) if getattr(ball, name) != getattr(flat, name)}
    assert differ == {"geometry", "m0"}
    assert (ball.geometry, flat.geometry) == (PoincareBall(1.0), Euclidean()) and flat.m0 == ball.m0 / 2


def test_margins_come_in_pairs():
    heads = experiment.margins(Recipe("PCA", 10, 6), SETTINGS, SCHEDULE, [1.0, 4.0])
    assert [(head.name, head.head.m0) for head in heads] == [
        ("ball, m0 = 1", 1.0),
        ("flat head, m0 = 1", 0.5),
        ("ball, m0 = 4", 4.0),
        ("flat head, m0 = 4", 2.0),
    ]


def test_what_was_not_trained_is_searched_once_and_answers_for_every_training(fitted, found):
    asked = ask(fitted["by patient"], X, LABELS, KS, workers=1)
    for name, answers in found["closed, by patient"].items():
        assert [(one.split.fold, one.split.repeat) for one in answers] == [(f, r) for r in (0, 1) for f in (0, 1, 2)]
        for one, expected in zip(answers, asked[name], strict=True):
            assert one.split is expected.split and one.per_query.values.equals(expected.per_query.values)


def test_the_open_archive_is_of_the_strictest_rule_and_leaves_the_own_group_out(found):
    assert list(found) == ["closed, by image", "closed, by patient", "open, by patient"]
    (answer, *_) = found["open, by patient"][NONE]
    own = [np.sum(GROUPS[answer.split.test] == GROUPS[query]) for query in answer.split.test]
    relevant = [np.sum(LABELS[answer.split.test] == LABELS[q]) for q in answer.split.test]
    assert answer.per_query.n_gallery.tolist() == [len(answer.split.test) - n for n in own]
    assert (answer.per_query.n_relevant < relevant).all()


def test_an_open_archive_too_small_for_the_list_is_left_out(fitted):
    with pytest.warns(UserWarning, match="no open gallery"):
        assert list(experiment.archives(fitted, X, LABELS, GROUPS, (1, 30), "heads", workers=1)) == [
            "closed, by image",
            "closed, by patient",
        ]


def test_relatives_are_searched_without_the_own_class_and_counted_by_the_class_above(fitted):
    above = LABELS // 2
    found = experiment.relatives({PROTOTYPES: fitted["by patient"][PROTOTYPES]}, X, LABELS, above, (1,))[PROTOTYPES]
    for one, answer in zip(fitted["by patient"][PROTOTYPES], found, strict=True):
        query, gallery = (one.embed(X[rows]).detach() for rows in (one.split.test, one.split.train))
        cosine = query @ gallery.T / query.norm(dim=1, keepdim=True) / gallery.norm(dim=1)
        for row, image in enumerate(one.split.test):
            others = LABELS[one.split.train] != LABELS[image]
            nearest = one.split.train[others][cosine[row][others].argmax()]
            assert answer.per_query.values["ap_min", 1][row] == (above[nearest] == above[image])


def test_encoders_stand_side_by_side(found):
    both = experiment.together(experiment.named("a", found), experiment.named("b", {"open, by patient": {}}))
    assert both["closed, by image"][f"a, {BALL}"] is found["closed, by image"][BALL] and list(both) == list(found)
