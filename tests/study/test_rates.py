"""Which learning rate is chosen, and how a table shows it."""

import numpy as np
import pandas as pd
import pytest

from lib.errors import InputError
from lib.study.rates import RULE, best_rates, choose_middle, rates_layout, rates_table, standard_error

RATES = [1e-4, 1e-3, 1e-2, 1e-1]


def tried(*means: float, spread: float = 0.0, n: int = 40) -> tuple[pd.DataFrame, list[np.ndarray]]:
    """One method at rates whose true values are these, each query with noise of its own at each rate."""
    noise = np.random.default_rng(0).normal(size=(len(means), 1, n)) * spread
    noise -= noise.mean(axis=2, keepdims=True)
    rows = pd.DataFrame({"method": "a", "lr": RATES[: len(means)]})
    return rows, list(noise + np.reshape(means, (-1, 1, 1)))


@pytest.mark.parametrize(
    ("means", "spread", "within", "chosen"),
    [
        ((10, 70, 80, 60), 0.0, [2], 2),  # nothing is left to chance: the best
        ((79.9, 80, 79.8, 60), 5.0, [0, 1, 2], 1),  # not the best by luck, but the middle one
        ((80, 79.9, 79.8, 79.7), 5.0, [0, 1, 2, 3], 1),  # a flat row: away from its end, of two the smaller
        ((10, 79.9, 80, 20), 5.0, [1, 2], 1),
        ((80, 60, 79.9, 79.8), 5.0, [0, 2, 3], 2),
    ],
)
def test_of_all_within_one_standard_error_of_the_best_the_middle_is_chosen(means, spread, within, chosen):
    found = choose_middle(*tried(*means, spread=spread))
    assert found["validation"].tolist() == pytest.approx(means)
    assert np.flatnonzero(found["within"]).tolist() == within
    assert np.flatnonzero(found["chosen"]).tolist() == [chosen]


def test_the_order_of_the_rows_and_other_methods_do_not_matter():
    """Rates are tried in any order, methods in turns; each has its own best."""
    rows, values = tried(79.9, 80, 79.8, 60, spread=5.0)
    order = [3, 0, 2, 1]
    twice = pd.concat([rows, rows.assign(method="b")], ignore_index=True).iloc[[*order, *(4 + i for i in order)]]
    found = choose_middle(twice, [[*values, *values[::-1]][i] for i in twice.index])
    assert best_rates(found) == {"a": 1e-3, "b": 1e-2}


def test_the_error_is_of_pairs_of_queries_over_groups_and_trainings():
    """Two patients say opposite things: their forty queries are two witnesses. Trainings that disagree widen it."""
    rows = pd.DataFrame({"method": "a", "lr": RATES[:2]})
    hard = np.random.default_rng(0).uniform(0, 100, size=(1, 30))  # by tens of points; each is better by half a point
    assert choose_middle(rows, [hard, hard + 0.5])["within"].tolist() == [False, True]
    trainings = choose_middle(rows, [np.full((2, 40), 50.0), np.repeat([[49.0], [53.0]], 40, axis=1)])
    assert trainings["se"].tolist() == [pytest.approx(2.0), 0.0] and trainings["within"].all()
    values = [np.full((1, 40), 50.0), 50 + np.repeat([[9.0, -3.0]], 20, axis=1).reshape(1, 40)]
    assert choose_middle(rows, values)["within"].tolist() == [False, True]
    assert choose_middle(rows, values, np.repeat(["x", "y"], 20))["within"].tolist() == [True, True]
    assert choose_middle(rows, values, np.repeat("x", 40))["within"].tolist() == [False, True]  # one alone


def test_the_error_is_that_of_resampled_groups():
    """Of unequal size, and of the mean over queries; a query with nothing to find is left out."""
    generator = np.random.default_rng(0)
    sizes = generator.integers(1, 12, size=60)
    groups = np.repeat(np.arange(60), sizes)
    values = np.repeat(generator.normal(size=60), sizes) + generator.normal(size=len(groups))
    means = []
    for _ in range(2000):
        drawn = generator.integers(0, 60, size=60)
        means.append(np.concatenate([values[groups == one] for one in drawn]).mean())
    lost = np.append(values, np.nan)[None]
    assert standard_error(lost, np.append(groups, 0)) == pytest.approx(np.std(means), rel=0.05)


def test_a_table_of_rates_says_its_rule_and_what_may_turn_out_otherwise_elsewhere():
    tried_rates = choose_middle(*tried(79.9, 80, 79.8, 60))
    shown = rates_table("rates", tried_rates, "mAP.", rates_layout()(tried_rates))
    assert shown.caption == f"mAP. {RULE}" and set(shown.free) == {"chosen", "within", "se"}


def test_the_middle_rate_is_taken_first_and_then_the_middle_weight_if_there_is_one():
    """All of a flat grid are within one error: the middle of three rates, and of two weights the smaller."""
    grid = [("ACIR", lr, alpha) for lr in (0.1, 0.2, 0.3) for alpha in (0.0, 0.5)]
    tried = pd.DataFrame([*grid, ("CSQ", 0.1, np.nan), ("CSQ", 0.2, np.nan)], columns=["method", "lr", "alpha"])
    values = [np.array([50.0, 70.0, 60.0])] * len(tried)
    chosen = choose_middle(tried, values, order=["lr", "alpha"]).query("chosen")
    assert chosen[["method", "lr"]].values.tolist() == [["ACIR", 0.2], ["CSQ", 0.1]]
    assert chosen["alpha"].iloc[0] == 0.0


def test_a_single_candidate_is_chosen_and_without_an_answer_none_is():
    assert choose_middle(*tried(50.0))["chosen"].tolist() == [True]
    with pytest.raises(InputError, match="no validation query"):
        choose_middle(pd.DataFrame({"method": ["a"], "lr": [0.1]}), [[np.nan, np.nan]])
