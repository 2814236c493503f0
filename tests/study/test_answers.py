"""Answers as rows: means over the splits, the worst of the health, and tests between methods on the same queries."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.study import answers
from lib.study.scores import of_answers
from lib.training.experiment import Voted
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METRICS = ["ap_min", "ap_hits", "ap_k", "precision", "hit_rate"]
GROUPS = np.array(["p", "p", "q", "q"])


def answer(
    test: list[int], values: list[float], health: Health | None = None, fold: int = 0, repeat: int = 0
) -> Answer:
    """One split: every query has its value in every metric at k = 1 and 20; NaN where nothing is relevant."""
    columns = pd.MultiIndex.from_product([METRICS, [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 10, axis=1), columns=columns)
    relevant, classes = np.where(np.isnan(values), 0, 5), np.array(test) % 2
    method = Method("ball", Recipe("PCA", 4, 2), Settings())
    split = Split(fold, np.arange(20, 30), np.array(test), 0, repeat=repeat)
    return Answer(
        method, split, health or Health(), [], np.zeros(10), PerQuery(frame, classes, relevant, np.full(len(test), 10))
    )


BALL = [
    answer([0, 2], [1.0, 0.8], Health(0.25, 0.0, 90)),
    answer([1, 3], [0.8, np.nan], Health(0.75, 12.5, 100), fold=1),
]
FOUND = {"by image": {"ball": BALL, "no mapper": [answer([0, 2], [0.5, 0.5]), answer([1, 3], [0.4, np.nan], fold=1)]}}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return of_answers(FOUND).means()


def test_values_are_means_over_splits_in_percent(rows):
    assert rows["method"].unique().tolist() == ["ball", "no mapper"] and len(rows) == 2 * len(METRICS) * 2
    row = rows.query("method == 'ball' and metric == 'ap_min' and k == 20").iloc[0]
    assert row["ours"] == pytest.approx(85) and row["spread"] == pytest.approx(np.std([90, 80], ddof=1))
    assert (row["n_queries"], row["n_without_relevant"]) == (4, 1)


def test_trainings_are_averaged_and_their_spread_stands_beside_that_of_the_folds():
    """Folds have 90 and 80 with one seed, 70 and 40 with the other: folds average 80 and 60, seeds 85 and 55."""
    again = [answer([0, 2], [0.8, 0.6], repeat=1), answer([1, 3], [0.4, np.nan], fold=1, repeat=1)]
    row = of_answers({"by image": {"ball": BALL + again}}).means().query("metric == 'ap_min' and k == 20").iloc[0]
    assert row["ours"] == pytest.approx(70) and row["n_seeds"] == 2
    assert row["spread"] == pytest.approx(np.std([80, 60], ddof=1))
    assert row["seeds_spread"] == pytest.approx(np.std([85, 55], ddof=1))
    assert (row["n_queries"], row["n_without_relevant"]) == (4, 1)


def test_class_means_and_chance_stand_beside(rows):
    """Query 0 is of one class, 1 and 3 of the other: a fold each; 5 of the 10 images of a gallery are relevant."""
    row = rows.query("method == 'ball' and metric == 'ap_min' and k == 1").iloc[0]
    assert row["class_mean"] == pytest.approx((100 * (1.0 + 0.8) / 2 + 80) / 2)
    assert row["chance"] == row["class_chance"] == pytest.approx(50)


def test_a_class_mean_pools_the_queries_of_all_folds():
    """A class that asks once in a fold, and fails, is one query of four there as well, not half of that fold.

    Class 0 has 1 in all four queries; class 1 has 0, and then 1, 1 and 1. So the class mean is (100 + 75) / 2, and not
    the mean of those of the folds, 50 and 100. A second training has 0 throughout.
    """
    first, second = answer([0, 2, 4, 1], [1.0, 1.0, 1.0, 0.0]), answer([6, 3, 5, 7], [1.0] * 4, fold=1)
    again = [answer([0, 2, 4, 1], [0.0] * 4, repeat=1), answer([6, 3, 5, 7], [0.0] * 4, fold=1, repeat=1)]
    rows = of_answers({"": {"ball": [first, second]}}).means().query("metric == 'ap_min' and k == 1")
    assert rows["class_mean"].item() == pytest.approx(87.5) != pytest.approx((50 + 100) / 2)
    row = of_answers({"": {"ball": [first, second, *again]}}).means().query("metric == 'ap_min' and k == 1").iloc[0]
    assert row["class_mean"] == pytest.approx(87.5 / 2)


def test_chance_of_class_means_pools_the_queries_of_all_folds_as_well():
    """Class 0: three queries with nine relevant images of ten, one with one; class 1: one query with five."""
    few, other = answer([0, 2, 4, 1], [0.5] * 4), answer([6], [0.5], fold=1)
    few = replace(few, per_query=replace(few.per_query, n_relevant=np.array([9, 9, 9, 5])))
    other = replace(other, per_query=replace(other.per_query, n_relevant=np.array([1])))
    found = {"open": {"ball": [few, other], "flat": [few, other]}}
    rows = of_answers(found).means().query("metric == 'ap_min' and k == 1").rename(columns={"rule": "archive"})
    fold_by_fold, pooled = (80 + 10) / 2, ((3 * 90 + 10) / 4 + 50) / 2
    assert rows[["chance", "class_chance"]].to_numpy() == pytest.approx(np.array([[fold_by_fold, pooled]] * 2))
    assert rows.columns.get_loc("class_chance") == rows.columns.get_loc("chance") + 1


def test_chance_of_class_means_leaves_out_whom_the_class_means_leave_out():
    """Query 3 has no answer: its class is that of query 1 alone."""
    assert of_answers({"": {"ball": BALL}}).means().query("metric == 'ap_min' and k == 1")[
        "class_chance"
    ].item() == pytest.approx(50)


def test_votes_of_all_folds_are_one_f1_for_each_training():
    """One query of the second fold has no answer: it is counted, and no class of the mean is its."""
    good, bad = [[["a"] * 3, ["a"] * 3], [["b"] * 3]], [[["a"] * 3, ["b"] * 3], [["b", "b", "a"]]]
    several = [
        Voted(repeat, np.array(classes), np.array(votes), n_without_relevant)
        for repeat, folds in enumerate((good, bad))
        for votes, classes, n_without_relevant in zip(folds, (["a", "a"], ["b"]), (0, 1), strict=True)
    ]
    rows = answers.votes({"closed": {"ball": several}, "whole": {"ball": several}}).query("archive == 'whole'")
    assert set(rows["n_queries"]) == {4} and set(rows["n_without_relevant"]) == {1} and set(rows["n_classes"]) == {2}
    of_k = rows.set_index("k")
    assert of_k["n_seeds"].tolist() == [2] * 3
    assert of_k.loc[1, "macro_f1"] == pytest.approx(100 * (1 + 2 / 3) / 2)
    assert of_k.loc[5, "macro_f1"] == pytest.approx(100 * (1 + 0.25) / 2)
    head, _, line = answers.votes_layout(rows).splitlines()
    assert head.endswith("majority of 5 | classes | queries | left out |") and line.endswith("| 2 | 4 | 1 |")


def test_an_archive_in_which_no_query_has_an_answer_has_no_f1():
    nobody = Voted(0, np.array([], dtype=str), np.empty((0, 3), dtype=str), 4)
    row = answers.votes({"closed": {"ball": [nobody]}}).iloc[0]
    assert np.isnan(row["macro_f1"]) and (row["n_queries"], row["n_without_relevant"], row["n_classes"]) == (4, 4, 0)


def test_the_health_is_the_mean_loss_and_the_worst_share_at_the_rim(rows):
    ball, frozen = (rows[rows["method"] == name].iloc[0] for name in ("ball", "no mapper"))
    assert ball[["loss", "rim", "steps"]].tolist() == [0.5, 12.5, 100]
    assert np.isnan(frozen["loss"]) and np.isnan(frozen["rim"]) and frozen["steps"] == 0


def test_a_table_shows_every_number_with_its_health(rows):
    head, _, ball, frozen, by_chance = answers.layout(rows).splitlines()
    scores, health = "MAP@1 | MAP@20 | class mean@1 | class mean@20", "last loss | at the rim | steps"
    assert head == f"| folds | method | {scores} | ± seeds | queries | left out | {health} |"
    means = "85.00 ± 7.07 | 85.00 ± 7.07 | 85.00 | 85.00"
    assert ball == f"| by image | ball | {means} | – | 4 | 1 | 0.500 | 12.5 % | 100 |"
    assert frozen.endswith("| – | – | – |")
    assert by_chance.startswith("| by image | chance | 50.00 | ") and by_chance.endswith("| – | – | – | – |")
    assert answers.layout(rows, "gallery").startswith("| gallery | method |")


def test_a_flat_head_has_a_loss_and_no_rim():
    cells = answers.health(pd.Series({"loss": 0.25, "rim": np.nan, "steps": 7}))
    assert cells == {"last loss": "0.250", "at the rim": "–", "steps": "7"}


def test_tests_pair_methods_on_the_same_queries_and_average_groups():
    """Group p is better by 40 and 50 points, group q by 30 and by nothing that could be answered."""
    row = of_answers(FOUND, GROUPS).tests([("ball", "no mapper")], [1]).iloc[0]
    assert row[["rule", "first", "second", "k", "n_units"]].tolist() == ["by image", "ball", "no mapper", 1, 2]
    assert row["difference"] == pytest.approx((45 + 30) / 2)
    turned = of_answers(FOUND, GROUPS).tests([("no mapper", "ball")], [1]).iloc[0]
    assert turned["difference"] == -row["difference"]


def test_there_is_a_row_for_each_rule_pair_and_k():
    both = {**FOUND, "by group": FOUND["by image"]}
    table = of_answers(both, GROUPS).tests([("ball", "no mapper"), ("ball", "ball")], [1, 20])
    assert len(table) == 8 and not table.duplicated(["rule", "first", "second", "k"]).any()
    assert (table[table["second"] == "ball"]["difference"] == 0).all()
