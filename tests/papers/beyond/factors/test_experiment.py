"""One thing changes at a time: heads see the same input for as many steps; no archive holds what it should not."""

import numpy as np
import pytest

from lib.geometry import Euclidean, PoincareBall
from lib.papers.beyond.factors import experiment
from lib.papers.beyond.factors.experiment import BALL, FLAT, LOGITS, NCA, NONE, PROBABILITY, PROTOTYPES, STANDARDISED
from lib.papers.beyond.factors.heads import EvenSettings
from lib.training.experiment import fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.recipes import Recipe
from lib.training.splits import repeated

N, KS = 96, (1, 5)
LABELS, GROUPS = np.arange(N) % 4, np.array([f"p{i}" for i in np.arange(N) // 8])
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(N, 12)) + 2 * RNG.normal(size=(4, 12))[LABELS]).astype(np.float32)
SETTINGS, SCHEDULE, RECIPE = Settings(hidden=8, half=False), Schedule(epochs=3, batch_size=16), Recipe("PCA", 10, 6)
METHODS = experiment.methods(12, 10, 6, 4, SETTINGS, SCHEDULE, 3, 0.01)
FOLD_OF = {"by image": np.arange(N) // 5 % 3, "by patient": np.arange(N) // 8 % 3}


def studies(ks=KS):
    return experiment.studies({"net": X}, LABELS, GROUPS, FOLD_OF, ks, folds_used=3, n_seeds=2, seed=0)


@pytest.fixture(scope="module")
def results() -> experiment.Results:
    return experiment.run(studies(), experiment.on("net", METHODS, named=True), "heads")


def test_every_head_learns_from_the_same_components_in_as_many_steps(results):
    heads = [method for method in METHODS if method.recipe.dim_out]
    assert {(head.recipe.source, head.recipe.dim_in) for head in heads} == {("PCA", 10)} and len(heads) == 5
    of = experiment.alone(results, "net")["open, by patient"]
    assert {answer.health.steps for head in heads for answer in of[head.name]} == {12}
    assert {answer.health.steps for name in (NONE, STANDARDISED, NCA) for answer in of[name]} == {0}
    rates = {head.name: head.schedule.lr for head in heads}
    assert {name for name, lr in rates.items() if lr == 0.01} == {LOGITS, PROBABILITY}


def test_ball_and_flat_head_differ_in_curvature_and_half_of_the_margin():
    by_name = {method.name: method.head for method in METHODS}
    ball, flat = by_name[BALL], by_name[FLAT]
    assert {name for name in vars(ball) if getattr(ball, name) != getattr(flat, name)} == {"geometry", "m0"}
    assert (ball.geometry, flat.geometry, flat.m0) == (PoincareBall(1.0), Euclidean(), ball.m0 / 2)
    even = experiment.even(RECIPE, SETTINGS, SCHEDULE)
    assert [one.schedule.epochs for one in even] == [3, 3, 12, 12]
    assert [isinstance(one.head, EvenSettings) for one in even] == [True, True, False, True]
    wide = [(one.name, one.head.m0) for one in experiment.margins(RECIPE, SETTINGS, SCHEDULE, [1.0, 4.0])]
    assert wide[:2] == [("ball, m0 = 1", 1.0), ("flat head, m0 = 1", 0.5)] and wide[3] == ("flat head, m0 = 4", 2.0)


def test_the_open_archive_is_of_the_strictest_rule_and_leaves_the_own_group_out(results):
    assert list(results) == ["closed, by image", "closed, by patient", "open, by patient"]
    answer = results["open, by patient"][f"net, {NONE}"][0]
    own = [np.sum(GROUPS[answer.split.test] == GROUPS[query]) for query in answer.split.test]
    assert answer.per_query.n_gallery.tolist() == [len(answer.split.test) - n for n in own]
    with pytest.warns(UserWarning, match="no open gallery"):
        assert list(studies((1, 30))) == ["closed, by image", "closed, by patient"]


def test_relatives_are_searched_without_the_own_class_and_counted_by_the_class_above():
    above, study = LABELS // 2, studies()["closed, by patient"]
    (method,) = (one for one in METHODS if one.name == PROTOTYPES)
    answers = experiment.relatives(study, experiment.on("net", [method]), above)[PROTOTYPES]
    fitted = fit(X, LABELS, [method], repeated(study.splits, 2))[PROTOTYPES]
    for one, answer in zip(fitted, answers, strict=True):
        query, gallery = (one.embed(X[rows]).detach() for rows in (one.split.test, one.split.train))
        cosine = query @ gallery.T / query.norm(dim=1, keepdim=True) / gallery.norm(dim=1)
        for row, image in enumerate(one.split.test):
            others = LABELS[one.split.train] != LABELS[image]
            nearest = one.split.train[others][cosine[row][others].argmax()]
            assert answer.per_query.values["ap_min", 1][row] == (above[nearest] == above[image])
