"""A difference in words: better, worse, not clearly different, or too few groups to tell."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.results import paired

GROUPS = np.array(["p", "p", "q", "q", "r", "r", "s", "s"])


def per_query(ap: float) -> PerQuery:
    columns = pd.MultiIndex.from_tuples([("ap_min", 20)], names=["metric", "k"])
    return PerQuery(pd.DataFrame(np.full((4, 1), ap), columns=columns), np.ones(4, dtype=int))


@pytest.fixture
def tests() -> pd.DataFrame:
    """The first method is better by 10 points in every group of fold 0 and by 30 in every group of fold 1."""
    found = paired.difference([per_query(0.6), per_query(0.8)], [per_query(0.5), per_query(0.5)], GROUPS, 20)
    return pd.DataFrame([{"rule": "by image", "first": "mapper", "second": "none", "k": 20} | found])


def test_queries_are_paired_and_groups_averaged(tests):
    assert tests.loc[0, ["difference", "n_units", "p_value"]].tolist() == pytest.approx([20, 4, 0.125])
    assert "| +20.00 | +10.00 to +30.00 | ≤ 0.1250 | 4 |" in paired.tests_layout(tests)
    assert paired.tests_layout(tests, "gallery").startswith("| gallery | first |")


def test_four_groups_cannot_tell(tests):
    assert paired.verdicts(tests) == ["k = 20, folds by image: mapper cannot, with 4 groups, be told from none"]


@pytest.mark.parametrize(
    ("p_value", "difference", "words"),
    [
        (0.125, 20, "is not clearly different from"),
        (0.0078, 20, "is better than"),
        (0.0078, -20, "is worse than"),
    ],
)
def test_enough_groups_give_a_verdict(tests, p_value, difference, words):
    enough = tests.assign(n_units=8, p_floor=0.0078, p_value=p_value, difference=difference)
    assert paired.verdicts(enough, "gallery") == [f"k = 20, gallery by image: mapper {words} none"]
