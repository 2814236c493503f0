"""A gain over a list stands by both denominators of AP, and what was corrected before is corrected as before."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.study import denominators
from lib.study.scores import of_answers
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

GROUPS = np.array([f"p{image // 2}" for image in range(24)])


def answer(first: float, by_min: float, by_hits: float) -> Answer:
    """Every query has about these values: of the first answer, and of a list of 20."""
    noise = np.random.default_rng(0).normal(scale=0.01, size=24)[:, None]
    columns = pd.MultiIndex.from_product([["ap_min", "ap_hits"], [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame([[first, by_min, first, by_hits]] * 24 + noise * [1, 2, 1, 3], columns=columns)
    per_query = PerQuery(frame, np.arange(24) % 3, np.full(24, 5), np.full(24, 30))
    method = Method("any", Recipe("PCA", 4, 2), Settings())
    return Answer(method, Split(0, np.arange(30, 60), np.arange(24), 0), Health(), [], np.zeros(1), per_query)


FOUND = {
    rule: {"ball": [answer(0.6, 0.5, 0.55)], "flat": [answer(0.6, 0.3, 0.56)], "raw": [answer(0.5, 0.1, 0.5)]}
    for rule in ("by image", "by patient")
}
PAIRS = [("ball", "flat"), ("ball", "raw")]


@pytest.mark.parametrize("by_class", [False, True])
def test_the_longest_list_is_tested_by_hits_too_and_the_other_tests_stay_as_they_are(by_class):
    tests = denominators.compare(FOUND, GROUPS, PAIRS, (1, 20), by_class=by_class)
    by_min = denominators.by_min(tests).drop(columns="metric").reset_index(drop=True)
    pd.testing.assert_frame_equal(by_min, of_answers(FOUND, GROUPS).tests(PAIRS, (1, 20), by_class=by_class))
    by_hits = tests[tests["metric"] == "ap_hits"]
    assert by_hits["k"].tolist() == [20] * 4 and set(by_hits["n_tests"]) == {4}
    assert by_hits["difference"].to_numpy() == pytest.approx(np.array([-1, 5] * 2), abs=0.2)
    places = list(zip(tests["rule"], tests["second"], tests["k"], tests["metric"], strict=True))
    assert places[1:3] == [("by image", "flat", 20, "ap_min"), ("by image", "flat", 20, "ap_hits")]


def test_first_answers_alone_are_the_same_by_both():
    tests = denominators.compare(FOUND, GROUPS, PAIRS, (1,))
    assert set(tests["metric"]) == {"ap_min"} and denominators.named(tests)["k"].tolist() == ["1"] * 4


def test_a_table_names_the_denominator_of_a_list():
    tests = denominators.compare({"by image": FOUND["by image"]}, GROUPS, [("ball", "flat")], (1, 20))
    shown = denominators.table(tests, "paired tests", "MAP@k.")
    assert "| ball | flat | 20 ÷ hits |" in shown.markdown and shown.rows["k"].tolist() == [1, 20, 20]
    assert "family of their own" in shown.caption


def test_tests_of_an_earlier_version_are_by_min_and_named_as_they_were():
    tests = of_answers(FOUND, GROUPS).tests(PAIRS, (1, 20))
    assert denominators.by_min(tests) is denominators.named(tests) is tests and list(denominators.ways(tests)) == [""]
