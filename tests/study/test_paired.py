"""Paired tests: over groups or classes, by both denominators of AP, and what a table says of them."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.errors import InputError
from lib.metrics.significance import could_show
from lib.study import differences, measures, paired
from lib.study.scores import of_answers

GROUPS = np.array(["p", "p", "q", "q", "r", "r", "s", "s"])


@pytest.fixture
def tests() -> pd.DataFrame:
    """The first method is better by 10 points in every query of two groups and by 30 in every query of two others."""
    first, second = np.repeat([0.6, 0.8], 4), np.full(8, 0.5)
    test = differences.of_shares(first, second, GROUPS)
    return differences.together([{"rule": "by image", "first": "mapper", "second": "none", "k": 20} | test])


def test_a_table_has_the_names_and_the_numbers_of_a_test(tests):
    assert tests.loc[0, ["difference", "n_units", "p_value"]].tolist() == pytest.approx([20, 4, 0.125])
    half = stats.t.ppf(0.975, 3) * np.std([10, 10, 30, 30], ddof=1) / 2
    numbers = f"| +20.00 | {20 - half:+.2f} to {20 + half:+.2f} | ≤ 0.1250 | 0.1250 | cannot tell | nothing | 4 | 1 |"
    assert paired.by_length("gallery")(tests).splitlines()[::2] == [
        "| gallery | first | second | k | first − second, pp | 95 % interval | p | p, Holm | verdict | "
        "could have shown | groups | seeds |",
        f"| by image | mapper | none | 20 {numbers}",
    ]
    assert paired.relation(next(tests.itertuples())) == "cannot, with 4 groups, be told from"


def test_what_is_not_clear_says_what_it_could_have_shown(tests):
    """Of eight groups and 3 degrees of freedom: t(0.975) of one test is 3.18 errors, t(0.9958) of six 6.23."""
    unclear = tests.assign(n_units=8, p_floor=0.0078, p_value=0.02, p_holm=0.12, n_tests=6)
    assert could_show(unclear).item() == pytest.approx(stats.t.ppf(1 - 0.05 / 12, 3) * 20 / np.sqrt(12))
    same, few = unclear.assign(low=0.0, high=0.0, difference=0.0), unclear.assign(n_tests=7)  # 7 · 0.0078 > 0.05
    shown = [paired.outcomes(rows.assign(could_show=could_show(rows))) for rows in (unclear, same, few)]
    cells = [rows[["verdict", "least"]].iloc[0].tolist() for rows in shown]
    assert cells == [["not clearly different", "± 35.98"], ["not clearly different", "–"], ["cannot tell", "nothing"]]


def test_what_could_show_nothing_is_no_no_and_a_head_at_the_rim_no_evidence(tests):
    clear, unclear = (tests.assign(n_units=8, p_floor=0.0078, p_holm=p) for p in (0.01, 0.5))
    worse = clear.assign(difference=-20)
    held = pd.concat([clear, worse, worse, unclear, tests]).assign(at_rim=[0.0, 5.0, 5.1, np.nan, 27.0])
    assert paired.tally(held) == (1, 1, "3 tests (2 at the rim)")
    cells = [row.split(" | ")[-1] for row in paired.tests_layout()(held).splitlines()[2:]]
    assert cells == ["0.0 % |", "5.0 % |", "5.1 %, not counted |", "– |", "27.0 %, not counted |"]


def test_a_verdict_rests_on_all_tests_of_its_table(tests):
    """Of eight tests Holm's strongest has eight times its p: with 8 groups, whose p is at least 0.0078, 0.06."""
    one = tests.iloc[0].to_dict() | {"n_units": 8, "p_floor": 2 / 2**8, "p_value": 2 / 2**8}
    six, eight = (differences.together([one] * n) for n in (6, 8))
    assert six["p_holm"].tolist() == pytest.approx([12 / 2**8] * 6) and set(six["n_tests"]) == {6}
    assert [paired.verdict(next(rows.itertuples())) for rows in (six, eight)] == ["better", "cannot tell"]


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """By a loop: the mean over classes of the mean over a class's queries, whoever they are of."""
    draw = np.random.default_rng(0)
    units, classes = draw.integers(0, 12, 400), draw.choice(["common", "rare"], 400, p=[0.9, 0.1])
    repeats, values = np.repeat([0, 1], 200), draw.normal(size=400)
    units[:200], classes[:200] = units[200:], classes[200:]
    values[[3, 203]] = np.nan
    shares, of_unit, of_repeat = differences.of_classes(values, classes, units, repeats)
    for repeat in (0, 1):
        here = (repeats == repeat) & ~np.isnan(values)
        means = [values[here & (classes == name)].mean() for name in ("common", "rare")]
        assert shares[of_repeat == repeat].mean() == pytest.approx(np.mean(means))
        assert list(of_unit[of_repeat == repeat]) == sorted(set(units))
    tested = differences.of_shares(values, np.zeros(400), units, repeats, classes)["difference"]
    assert tested == pytest.approx(100 * shares.mean())


def test_answers_to_other_queries_are_refused():
    with pytest.raises(InputError, match="one method has 2 values, the other 3"):
        differences.of_shares(np.ones(2), np.ones(3), np.array(["p", "q"]), classes=np.zeros(2))


@pytest.mark.parametrize("by_class", [False, True])
def test_the_longest_list_is_tested_by_hits_and_precision_too_and_the_other_tests_stay_as_they_are(answer, by_class):
    noise, groups = np.random.default_rng(0).normal(scale=0.01, size=(24, 1)), np.arange(24) // 3

    def made(first: float, by_min: float, by_hits: float, right: float) -> list:
        values = np.array([first, by_min, first, by_hits, first, right]) + noise * [1, 2, 1, 3, 1, 4]
        return [answer(list(range(24)), values)]

    heads = {"ball": made(0.6, 0.5, 0.55, 0.4), "flat": made(0.6, 0.3, 0.56, 0.2), "raw": made(0.5, 0.1, 0.5, 0.5)}
    rules, pairs = {"by image": heads, "by patient": heads}, [("ball", "flat"), ("ball", "raw")]
    tests = measures.compare(rules, groups, pairs, (1, 20), by_class=by_class)
    by_min = measures.by(tests).drop(columns="metric").reset_index(drop=True)
    pd.testing.assert_frame_equal(by_min, of_answers(rules, groups).tests(pairs, (1, 20), by_class=by_class))
    for metric, gains in {"ap_hits": [-1, 5], "precision": [20, -10]}.items():
        again = measures.by(tests, metric)
        assert again["k"].tolist() == [20] * 4 and set(again["n_tests"]) == {4}
        assert again["difference"].to_numpy() == pytest.approx(np.array(gains * 2), abs=0.3)
    assert paired.named(tests)["k"].tolist()[:4] == ["1", "20 ÷ min(k, R)", "20 ÷ hits", "20 precision"]
    first = measures.compare(rules, groups, pairs, (1,))  # by all the same
    assert set(first["metric"]) == {"ap_min"} and paired.named(first)["k"].tolist() == ["1"] * 4
    without = tests.drop(columns="metric")  # a table by min(k, R) alone, such as those of codes
    assert len(measures.by(without)) == len(tests) and measures.by(without, "precision").empty
