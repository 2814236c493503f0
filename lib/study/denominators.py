"""A gain over a list by both denominators of AP@k: it can be large by one and small by the other."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.study import paired
from lib.study.scores import Answers, of_answers

SAYS = (
    "AP is divided by min(k, R), R images of the class in the archive; over the longest list once more by the hits in "
    "the list, which forgives hits that are missing. The tests by hits are the same questions once more: a family of "
    f"their own for Holm's correction. {paired.SAYS}"
)
"""What the caption of a table of :func:`compare` says."""


def compare(
    found: Mapping[str, Answers],
    groups: np.ndarray,
    pairs: Sequence[tuple[str, str]],
    ks: Sequence[int],
    *,
    by_class: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """:func:`lib.study.answers.compare` by min(k, R), and below each test of the longest list the same by hits.

    metric, behind k, says which; at k = 1 they are one. The tests by hits are a family of their own for Holm's
    correction: they are the same questions once more.
    """
    how = {"by_class": by_class, "seed": seed}
    by_min = of_answers(found, groups).tests(pairs, ks, metric="ap_min", **how)
    longest = by_min["k"] == max(ks)
    if max(ks) == 1:
        return with_metric(by_min, "ap_min")
    by_hits = of_answers(found, groups).tests(pairs, [max(ks)], metric="ap_hits", **how)
    by_hits.index = by_min.index[longest]
    both = [with_metric(by_min, "ap_min"), with_metric(by_hits, "ap_hits")]
    return pd.concat(both).sort_index(kind="stable", ignore_index=True)


def with_metric(tests: pd.DataFrame, metric: str) -> pd.DataFrame:
    """``tests`` with the column metric behind k."""
    tests = tests.copy()
    tests.insert(tests.columns.get_loc("k") + 1, "metric", metric)
    return tests


def by_min(tests: pd.DataFrame) -> pd.DataFrame:
    """Of ``tests`` those by min(k, R): all of a table that knows no other denominator."""
    return tests[tests["metric"] == "ap_min"] if "metric" in tests else tests


def ways(tests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """``tests`` by min(k, R), and those of the longest list by hits where there are some; by what a name is followed.

    >>> list(ways(pd.DataFrame({"k": [1, 20, 20], "metric": ["ap_min", "ap_min", "ap_hits"]})))
    ['', ', ÷ hits']
    """
    by_hits = tests[tests["metric"] == "ap_hits"] if "metric" in tests else tests.iloc[:0]
    return {"": by_min(tests)} | ({", ÷ hits": by_hits} if len(by_hits) else {})
