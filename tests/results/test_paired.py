"""A difference in words: better, worse, not clearly different, or too few groups to tell."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.metrics.retrieval import PerQuery
from lib.results import paired

GROUPS = np.array(["p", "p", "q", "q", "r", "r", "s", "s"])


def per_query(ap: float) -> PerQuery:
    columns = pd.MultiIndex.from_tuples([("ap_min", 20)], names=["metric", "k"])
    return PerQuery(pd.DataFrame(np.full((4, 1), ap), columns=columns), *np.ones((3, 4), dtype=int))


@pytest.fixture
def tests() -> pd.DataFrame:
    """The first method is better by 10 points in every group of fold 0 and by 30 in every group of fold 1."""
    found = paired.difference([per_query(0.6), per_query(0.8)], [per_query(0.5), per_query(0.5)], GROUPS, 20)
    return paired.together([{"rule": "by image", "first": "mapper", "second": "none", "k": 20} | found])


def test_queries_are_paired_and_groups_averaged(tests):
    assert tests.loc[0, ["difference", "n_units", "p_value"]].tolist() == pytest.approx([20, 4, 0.125])
    half = stats.t.ppf(0.975, 3) * np.std([10, 10, 30, 30], ddof=1) / 2
    assert f"| +20.00 | {20 - half:+.2f} to {20 + half:+.2f} | ≤ 0.1250 | 0.1250 | 4 | 1 |" in paired.tests_layout(
        tests
    )
    assert paired.tests_layout(tests, "gallery").startswith("| gallery | first |")


def test_four_groups_cannot_tell(tests):
    assert paired.verdicts(tests) == ["k = 20, folds by image: mapper cannot, with 4 groups, be told from none"]


@pytest.mark.parametrize(
    ("p_holm", "difference", "words"),
    [
        (0.125, 20, "is not clearly different from"),
        (0.0078, 20, "is better than"),
        (0.0078, -20, "is worse than"),
    ],
)
def test_enough_groups_give_a_verdict(tests, p_holm, difference, words):
    enough = tests.assign(n_units=8, p_floor=0.0078, p_holm=p_holm, difference=difference)
    assert paired.verdicts(enough, "gallery") == [f"k = 20, gallery by image: mapper {words} none"]


def test_a_verdict_rests_on_all_tests_of_its_table(tests):
    """Of eight tests Holm's strongest has eight times its p: with 8 groups, whose p is at least 0.0078, 0.06."""
    one = tests.iloc[0].to_dict() | {"n_units": 8, "p_floor": 2 / 2**8, "p_value": 2 / 2**8}
    several = paired.together([one] * 6)
    assert several["p_holm"].tolist() == pytest.approx([12 / 2**8] * 6) and set(several["n_tests"]) == {6}
    assert "is better than" in paired.verdicts(several)[0]
    assert "cannot, with 8 groups and 8 tests, be told from" in paired.verdicts(paired.together([one] * 8))[0]
