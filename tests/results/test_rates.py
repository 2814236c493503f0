"""Which learning rate is chosen, and how a table shows it."""

import pandas as pd

from lib.results.rates import best_rates, choose_best, rates_layout

TRIED = pd.DataFrame(
    {"name": ["b", "a", "b", "a"], "lr": [3e-5, 3e-5, 0.01, 0.01], "validation": [80.0, 61.25, 80.0, 70.0]}
)


def test_the_best_of_each_is_chosen_and_of_equal_ones_the_first():
    chosen = choose_best(TRIED, "name")
    assert chosen["chosen"].tolist() == [True, False, False, True]
    assert best_rates(chosen, "name") == {"b": 3e-5, "a": 0.01}
    assert best_rates(choose_best(TRIED.rename(columns={"name": "method"}))) == {"b": 3e-5, "a": 0.01}


def test_the_table_marks_what_was_chosen_and_keeps_the_order():
    chosen = choose_best(TRIED, "name")
    assert rates_layout(chosen, "name", published="3e-05").splitlines() == [
        "| name | 3e-05 | 0.01 | published |",
        "| --- | --- | --- | --- |",
        "| b | **80.00** | 80.00 | 3e-05 |",
        "| a | 61.25 | **70.00** | 3e-05 |",
    ]
    assert rates_layout(chosen, "name", decimals=1).splitlines()[2:] == [
        "| b | **80.0** | 80.0 |",
        "| a | 61.2 | **70.0** |",
    ]
