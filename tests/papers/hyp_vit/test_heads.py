"""Query categories are unseen, rates are chosen on training categories only, and every declared head is tested."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit import heads
from lib.papers.hyp_vit.heads import HYP, NONE, SPH, UNTRAINED
from lib.study.run import at_rates
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

SCHEDULE = ByClass(epochs=3, batch_size=8, lr=1e-2, samples=2)
SETTINGS = Settings(nca_images=100)
BASELINES = heads.arms(heads.baselines(SETTINGS, 8, 4, 6, SCHEDULE), "net")
BOTH = heads.arms(heads.heads(SETTINGS, 8, 4, SCHEDULE, (HYP, SPH)), "net")
RATES = [1e-4, 1e-2]


@pytest.fixture
def study(toy):
    return lambda x=toy.x, n_seeds=1, **more: heads.study({"net": x} | more, toy.parts, [1, 5], n_seeds)


def test_every_declared_head_changes_something_and_says_what_its_test_answers():
    methods = {method.name: method.head for method in heads.heads(Settings(), 8, 4, SCHEDULE)}
    assert list(methods) == list(heads.HEADS) and len(set(map(repr, methods.values()))) == len(methods)
    assert all(kind.question for kind in heads.HEADS.values())


def test_only_images_of_unseen_categories_are_queries_and_none_finds_itself(study, toy):
    answers = study(n_seeds=2).answers(BASELINES)["own"]
    for name, trainings in answers.items():
        assert [answer.split.repeat for answer in trainings] == [0, 1]
        for answer in trainings:
            assert sorted(answer.per_query.classes) == sorted(toy.codes[36:])
            assert set(answer.per_query.n_gallery) == {35} and set(answer.per_query.n_relevant) == {5}, name
    unit = toy.x[36:] / np.linalg.norm(toy.x[36:], axis=1, keepdims=True)  # the plain features by hand
    nearest = toy.codes[36:][(unit @ unit.T - 2 * np.eye(36)).argmax(1)]
    hits = answers[NONE][0].per_query.values["hit_rate", 1]
    assert hits.tolist() == (nearest == toy.codes[36:]).astype(float).tolist()


def test_rates_are_chosen_without_the_queries(study, toy):
    chosen = study().choose([*BOTH, BASELINES[2]], RATES)
    spoiled = toy.x.copy()
    spoiled[36:] = 0.1
    pd.testing.assert_frame_equal(chosen, study(spoiled).choose([*BOTH, BASELINES[2]], RATES))
    assert chosen.groupby("method")["chosen"].sum().tolist() == [1, 1, 1]


def test_the_control_is_the_experiment_itself_on_other_features(study, toy):
    both = study(n_seeds=2, random=toy.x)
    further = heads.further(SETTINGS, both.features, 4, SCHEDULE, {"random": UNTRAINED})
    assert [arm.name for arm in further] == [f"{UNTRAINED}{name}" for name in (NONE, HYP, SPH)]
    tried, of_control = both.choose(BOTH, RATES, 2), both.choose(further[1:], RATES, 2)
    pd.testing.assert_frame_equal(of_control, tried.assign(method=UNTRAINED + tried["method"]))
    answers = both.answers([BASELINES[0], *at_rates(BOTH, tried), *at_rates(further, of_control)])["own"]
    for name in (NONE, HYP, SPH):
        for first, second in zip(answers[name], answers[f"{UNTRAINED}{name}"], strict=True):
            pd.testing.assert_frame_equal(first.per_query.values, second.per_query.values)
