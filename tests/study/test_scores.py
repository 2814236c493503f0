"""Rows of scores: means over the splits, the worst of the health, and tests between methods on the same queries."""

from dataclasses import replace

import numpy as np
import pytest

from lib.study.scores import Answers, of_answers
from lib.training.methods import Health

GROUPS = np.array(["p", "p", "q", "q"])
FIRST = "metric == 'ap_min' and k == 1"


@pytest.fixture(scope="module")
def by_image(answer) -> dict[str, Answers]:
    first, second = Health(0.25, 0.0, 90), Health(0.75, 12.5, 100)
    ball = [answer([0, 2], [1.0, 0.8], first), answer([1, 3], [0.8, np.nan], second, fold=1)]
    plain = [answer([0, 2], [0.5, 0.5]), answer([1, 3], [0.4, np.nan], fold=1)]
    return {"by image": {"ball": ball, "no mapper": plain}}


def test_means_of_splits_classes_chance_and_health(by_image):
    """Class 0 asks in the first fold, class 1 in the second; 5 of the 10 images of a gallery are relevant."""
    rows = of_answers(by_image).means()
    assert rows["method"].unique().tolist() == ["ball", "no mapper"] and len(rows) == 2 * 3 * 2
    ball, frozen = (rows.query(f"method == '{name}' and {FIRST}").iloc[0] for name in ("ball", "no mapper"))
    assert ball["ours"] == pytest.approx(85) and ball["spread"] == pytest.approx(np.std([90, 80], ddof=1))
    assert ball["class_mean"] == pytest.approx((90 + 80) / 2) and ball["chance"] == ball["class_chance"] == 50
    assert (ball["n_queries"], ball["n_without_relevant"]) == (4, 1)
    assert ball[["loss", "rim", "steps"]].tolist() == [0.5, 12.5, 100]
    assert np.isnan(frozen["loss"]) and np.isnan(frozen["rim"]) and frozen["steps"] == 0


def test_trainings_are_averaged_and_spread_apart_from_the_folds(by_image, answer):
    """Folds have 90 and 80 with one seed, 70 and 40 with the other: folds average 80 and 60, seeds 85 and 55."""
    again = [answer([0, 2], [0.8, 0.6], repeat=1), answer([1, 3], [0.4, np.nan], fold=1, repeat=1)]
    row = of_answers({"": {"ball": by_image["by image"]["ball"] + again}}).means().query(FIRST).iloc[0]
    assert row["ours"] == pytest.approx(70) and row["n_seeds"] == 2
    assert row["spread"] == pytest.approx(np.std([80, 60], ddof=1))
    assert row["seeds_spread"] == pytest.approx(np.std([85, 55], ddof=1))
    assert (row["n_queries"], row["n_without_relevant"]) == (4, 1)


def test_a_class_mean_and_its_chance_pool_the_queries_of_all_folds(answer):
    """Class 0 has 1 in all four queries; class 1 has 0 in a fold of its own query, then 1, 1 and 1: (100 + 75) / 2.

    By chance: class 0 has nine relevant images of ten for three queries and one for the fourth, class 1 five of ten.
    """
    first, second = answer([0, 2, 4, 1], [1.0, 1.0, 1.0, 0.0]), answer([6, 3, 5, 7], [1.0] * 4, fold=1)
    again = [answer([0, 2, 4, 1], [0.0] * 4, repeat=1), answer([6, 3, 5, 7], [0.0] * 4, fold=1, repeat=1)]
    for several, expected in (([first, second], 87.5), ([first, second, *again], 87.5 / 2)):
        row = of_answers({"": {"ball": several}}).means().query(FIRST).iloc[0]
        assert row["class_mean"] == pytest.approx(expected)
    few, other = answer([0, 2, 4, 1], [0.5] * 4), answer([6], [0.5], fold=1)
    few = replace(few, per_query=replace(few.per_query, n_relevant=np.array([9, 9, 9, 5])))
    other = replace(other, per_query=replace(other.per_query, n_relevant=np.array([1])))
    row = of_answers({"": {"ball": [few, other]}}).means().query(FIRST).iloc[0]
    assert row[["chance", "class_chance"]].tolist() == pytest.approx([(80 + 10) / 2, ((3 * 90 + 10) / 4 + 50) / 2])


def test_tests_pair_methods_on_the_same_queries_and_average_groups(by_image):
    """Group p is better by 40 and 50 points, group q by 30 and by nothing that could be answered."""
    scores = of_answers(by_image | {"by group": by_image["by image"]}, GROUPS)
    tests = scores.tests([("ball", "no mapper"), ("no mapper", "ball"), ("ball", "ball")], [1, 20])
    assert len(tests) == 2 * 3 * 2 and not tests.duplicated(["rule", "first", "second", "k"]).any()
    row, *_ = tests.itertuples()
    assert (row.rule, row.first, row.second, row.k, row.n_units) == ("by image", "ball", "no mapper", 1, 2)
    assert tests["difference"].tolist() == pytest.approx([37.5, 37.5, -37.5, -37.5, 0, 0] * 2)
