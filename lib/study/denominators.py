"""A gain over a list in several ways: AP@k by both denominators, and the share of right images alone."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.study import paired
from lib.study.scores import Answers, of_answers

AGAIN = {"ap_hits": ", ÷ hits", "precision": ", precision"}
"""How the longest list is tested once more: the metric, and what follows the name of a difference."""
SAYS = (
    "AP is divided by min(k, R), R images of the class in the archive. The longest list is tested twice more. ÷ hits, "
    "AP is divided by the hits in the list, which forgives those that are missing. Precision is the share of right "
    "images, in whatever order. Each measure is a family of its own for Holm's correction. Where nothing is known and "
    "classes are equally frequent, lists of one class score higher ÷ min(k, R) than mixed ones, and lower ÷ hits "
    f"(notebook 16). {paired.SAYS}"
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
    """Paired tests by min(k, R), and below each of the longest list the same by :data:`AGAIN`.

    metric, behind k, says which; at k = 1 they are one. The further tests ask the same questions once more: each metric
    is a family of its own for Holm's correction.
    """
    scores, how = of_answers(found, groups), {"by_class": by_class, "seed": seed}
    by_min = scores.tests(pairs, ks, metric="ap_min", **how)
    parts = [with_metric(by_min, "ap_min")]
    for metric in AGAIN if max(ks) > 1 else ():
        tests = scores.tests(pairs, [max(ks)], metric=metric, **how)
        parts.append(with_metric(tests.set_axis(by_min.index[by_min["k"] == max(ks)]), metric))
    return pd.concat(parts).sort_index(kind="stable", ignore_index=True)


def with_metric(tests: pd.DataFrame, metric: str) -> pd.DataFrame:
    """``tests`` with the column metric behind k."""
    tests = tests.copy()
    tests.insert(tests.columns.get_loc("k") + 1, "metric", metric)
    return tests


def by(tests: pd.DataFrame, metric: str = "ap_min") -> pd.DataFrame:
    """Of ``tests`` those by one metric; a table that names none is by min(k, R)."""
    if "metric" in tests:
        return tests[tests["metric"] == metric]
    return tests if metric == "ap_min" else tests.iloc[:0]


def ways(tests: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """``tests`` by min(k, R), and those of the longest list by each of :data:`AGAIN` that it has; by what a name adds.

    >>> list(ways(pd.DataFrame({"k": [1, 20, 20], "metric": ["ap_min", "ap_min", "ap_hits"]})))
    ['', ', ÷ hits']
    """
    again = {name: by(tests, metric) for metric, name in AGAIN.items()}
    return {"": by(tests)} | {name: rows for name, rows in again.items() if len(rows)}
