"""A gain over a list in several ways: AP@k by both denominators, and the share of right images alone."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.study import paired
from lib.study.scores import Answers, of_answers

FIRST, *AGAIN = paired.MEASURED
"""The metric of every list, and those by which the longest one is tested once more."""
SAYS = (
    "AP ÷ min(k, R), R images of the class in the archive; the longest list also ÷ hits and by precision, each "
    f"corrected by itself. Notebook 16 shows what each favours. {paired.SAYS}"
)
"""What the caption of a table of :func:`compare` says."""


def compare(
    answers: Mapping[str, Answers],
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
    scores, how = of_answers(answers, groups), {"by_class": by_class, "seed": seed}
    tests = {FIRST: scores.tests(pairs, ks, metric=FIRST, **how)}
    longest = tests[FIRST].index[tests[FIRST]["k"] == max(ks)]
    for metric in AGAIN if max(ks) > 1 else ():
        tests[metric] = scores.tests(pairs, [max(ks)], metric=metric, **how).set_axis(longest)
    for metric, rows in tests.items():
        rows.insert(rows.columns.get_loc("k") + 1, "metric", metric)
    return pd.concat(tests.values()).sort_index(kind="stable", ignore_index=True)


def by(tests: pd.DataFrame, metric: str = FIRST) -> pd.DataFrame:
    """Of ``tests`` those by one metric; a table that names none is by min(k, R)."""
    if "metric" in tests:
        return tests[tests["metric"] == metric]
    return tests if metric == FIRST else tests.iloc[:0]
