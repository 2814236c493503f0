"""A difference in words: better, worse, not clearly different, or too few groups to tell."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.metrics.retrieval import PerQuery
from lib.study import differences, paired

GROUPS = np.array(["p", "p", "q", "q", "r", "r", "s", "s"])


def per_query(ap: float) -> PerQuery:
    columns = pd.MultiIndex.from_tuples([("ap_min", 20)], names=["metric", "k"])
    return PerQuery(pd.DataFrame(np.full((4, 1), ap), columns=columns), *np.ones((3, 4), dtype=int))


@pytest.fixture
def tests() -> pd.DataFrame:
    """The first method is better by 10 points in every group of fold 0 and by 30 in every group of fold 1."""
    found = differences.difference([per_query(0.6), per_query(0.8)], [per_query(0.5), per_query(0.5)], GROUPS, 20)
    return differences.together([{"rule": "by image", "first": "mapper", "second": "none", "k": 20} | found])


def test_queries_are_paired_and_groups_averaged(tests):
    assert tests.loc[0, ["difference", "n_units", "p_value"]].tolist() == pytest.approx([20, 4, 0.125])
    half = stats.t.ppf(0.975, 3) * np.std([10, 10, 30, 30], ddof=1) / 2
    numbers = f"| +20.00 | {20 - half:+.2f} to {20 + half:+.2f} | ≤ 0.1250 | 0.1250 | cannot tell | nothing | 4 | 1 |"
    heads = "| 95 % interval | p | p, Holm | verdict | could have shown | groups | seeds |"
    assert paired.tests_layout(tests).splitlines()[::2] == [
        f"| first | second | first − second, points {heads}",
        f"| mapper | none {numbers}",
    ]
    by_length = paired.table(tests, "title", "MAP.", "gallery").markdown.splitlines()[::2]
    assert by_length == [
        f"| gallery | first | second | k | first − second, pp {heads}",
        f"| by image | mapper | none | 20 {numbers}",
    ]


def test_columns_stand_where_they_are_named_under_their_titles(tests):
    named = {"k": "length"} | paired.METHODS | {"rule": "folds"}
    head, _, row = paired.tests_layout(tests, named, "gain").splitlines()
    assert head.startswith("| length | first | second | folds | gain | 95 % interval |")
    assert row.startswith("| 20 | mapper | none | by image | +20.00 |")


def test_four_groups_cannot_tell(tests):
    assert paired.verdict(next(tests.itertuples())) == "cannot tell"
    assert paired.relation(next(tests.itertuples())) == "cannot, with 4 groups, be told from"


@pytest.mark.parametrize(
    ("p_holm", "difference", "words"),
    [(0.125, 20, "not clearly different"), (0.0078, 20, "better"), (0.0078, -20, "worse")],
)
def test_enough_groups_give_a_verdict(tests, p_holm, difference, words):
    enough = tests.assign(n_units=8, p_floor=0.0078, p_holm=p_holm, difference=difference)
    assert paired.verdict(next(enough.itertuples())) == words


def test_what_is_not_clear_says_what_it_could_have_shown(tests):
    """Of eight groups and 3 degrees of freedom: t(0.975) of one test is 3.18 errors, t(0.9958) of six 6.23."""
    unclear = tests.assign(n_units=8, p_floor=0.0078, p_value=0.02, p_holm=0.12, n_tests=6)
    assert paired.could_show(unclear).item() == pytest.approx(stats.t.ppf(1 - 0.05 / 12, 3) * 20 / np.sqrt(12))
    assert "| 0.1200 | not clearly different | ± 35.98 | 8 |" in paired.tests_layout(unclear)
    same = unclear.assign(low=0.0, high=0.0, difference=0.0)  # in every query
    assert "| 0.1200 | not clearly different | – | 8 |" in paired.tests_layout(same)
    assert "| cannot tell | nothing |" in paired.tests_layout(unclear.assign(n_tests=7))  # 7 · 0.0078 > 0.05


def test_what_could_show_nothing_is_no_no_and_a_head_at_the_rim_no_evidence(tests):
    clear, unclear = (tests.assign(n_units=8, p_floor=0.0078, p_holm=p) for p in (0.01, 0.5))
    worse = clear.assign(difference=-20)
    rows = pd.concat([clear, worse, worse, unclear, tests])
    assert paired.tally(rows.head(4), "head") == (1, 2, "4 heads")
    assert paired.tally(rows) == (1, 2, "4 tests that could tell (1 could not)")
    held = rows.assign(at_rim=[0.0, 5.0, 5.1, np.nan, 27.0])
    assert paired.tally(held) == (1, 1, "3 tests (2 at the rim)")
    cells = [row.split(" | ")[-1] for row in paired.tests_layout(held).splitlines()[2:]]
    assert cells == ["0.0 % |", "5.0 % |", "5.1 %, not counted |", "– |", "27.0 %, not counted |"]


def test_a_verdict_rests_on_all_tests_of_its_table(tests):
    """Of eight tests Holm's strongest has eight times its p: with 8 groups, whose p is at least 0.0078, 0.06."""
    one = tests.iloc[0].to_dict() | {"n_units": 8, "p_floor": 2 / 2**8, "p_value": 2 / 2**8}
    several = differences.together([one] * 6)
    assert several["p_holm"].tolist() == pytest.approx([12 / 2**8] * 6) and set(several["n_tests"]) == {6}
    verdicts = [paired.verdict(next(differences.together([one] * n).itertuples())) for n in (6, 8)]
    assert verdicts == ["better", "cannot tell"]
