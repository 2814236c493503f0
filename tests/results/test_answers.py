"""Answers as rows: means over the splits, the worst of the health, and tests between methods on the same queries."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.results import answers
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

METRICS = ["ap_min", "ap_hits", "ap_k", "precision", "hit_rate"]
GROUPS = np.array(["p", "p", "q", "q"])


def answer(test: list[int], values: list[float], health: Health | None = None) -> Answer:
    """One split: every query has its value in every metric at k = 1 and 20; NaN where nothing is relevant."""
    columns = pd.MultiIndex.from_product([METRICS, [1, 20]], names=["metric", "k"])
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 10, axis=1), columns=columns)
    relevant = np.where(np.isnan(values), 0, 5)
    method = Method("ball", Recipe("PCA", 4, 2), Settings())
    split = Split(0, np.arange(20, 30), np.array(test), 0)
    return Answer(method, split, health or Health(), [], np.zeros(10), PerQuery(frame, relevant))


BALL = [
    answer([0, 2], [1.0, 0.8], Health(0.25, 0.0, 90)),
    answer([1, 3], [0.8, np.nan], Health(0.75, 12.5, 100)),
]
FOUND = {"by image": {"ball": BALL, "no mapper": [answer([0, 2], [0.5, 0.5]), answer([1, 3], [0.4, np.nan])]}}


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return answers.values(FOUND)


def test_values_are_means_over_splits_in_percent(rows):
    assert rows["method"].unique().tolist() == ["ball", "no mapper"] and len(rows) == 2 * len(METRICS) * 2
    row = rows.query("method == 'ball' and metric == 'ap_min' and k == 20").iloc[0]
    assert row["ours"] == pytest.approx(85) and row["spread"] == pytest.approx(np.std([90, 80], ddof=1))
    assert (row["n_queries"], row["n_without_relevant"]) == (4, 1)


def test_the_health_is_the_mean_loss_and_the_worst_share_at_the_rim(rows):
    ball, frozen = (rows[rows["method"] == name].iloc[0] for name in ("ball", "no mapper"))
    assert ball[["loss", "rim", "steps"]].tolist() == [0.5, 12.5, 100]
    assert np.isnan(frozen["loss"]) and np.isnan(frozen["rim"]) and frozen["steps"] == 0


def test_a_table_shows_every_number_with_its_health(rows):
    head, _, ball, frozen = answers.layout(rows).splitlines()
    assert head == "| folds | method | MAP@1 | MAP@20 | queries | left out | last loss | at the rim | steps |"
    assert ball == "| by image | ball | 85.00 ± 7.07 | 85.00 ± 7.07 | 4 | 1 | 0.500 | 12.5 % | 100 |"
    assert frozen.endswith("| – | – | – |")
    assert answers.layout(rows, "gallery").startswith("| gallery | method |")


def test_a_flat_head_has_a_loss_and_no_rim():
    cells = answers.health(pd.Series({"loss": 0.25, "rim": np.nan, "steps": 7}))
    assert cells == {"last loss": "0.250", "at the rim": "–", "steps": "7"}


def test_tests_pair_methods_on_the_same_queries_and_average_groups():
    """Group p is better by 40 and 50 points, group q by 30 and by nothing that could be answered."""
    row = answers.compare(FOUND, GROUPS, [("ball", "no mapper")], [1]).iloc[0]
    assert row[["rule", "first", "second", "k", "n_units"]].tolist() == ["by image", "ball", "no mapper", 1, 2]
    assert row["difference"] == pytest.approx((45 + 30) / 2)
    turned = answers.compare(FOUND, GROUPS, [("no mapper", "ball")], [1]).iloc[0]
    assert turned["difference"] == -row["difference"]


def test_there_is_a_row_for_each_rule_pair_and_k():
    both = {**FOUND, "by group": FOUND["by image"]}
    table = answers.compare(both, GROUPS, [("ball", "no mapper"), ("ball", "ball")], [1, 20])
    assert len(table) == 8 and not table.duplicated(["rule", "first", "second", "k"]).any()
    assert (table[table["second"] == "ball"]["difference"] == 0).all()
