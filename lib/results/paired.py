"""Is the difference real? Paired tests between methods, as rows, as Markdown and as sentences."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.retrieval import PerQuery
from lib.metrics.significance import paired_permutation
from lib.results.store import Run, markdown_table


def difference(
    first: Sequence[PerQuery], second: Sequence[PerQuery], units: np.ndarray, k: int, *, seed: int = 0
) -> dict[str, float]:
    """The paired test of AP@k (min(k, relevant), percent) between two methods on the same queries.

    Args:
        first, second: per split, the values of the same queries in the same order.
        units: the group of each query, splits one after the other.
        k: length of the list.
        seed: of the random sign flips.

    Returns:
        difference, p_value, p_floor, n_units, low and high, as :func:`lib.results.answers.compare`.
    """
    a, b = (np.concatenate([part.values["ap_min", k].to_numpy() for part in parts]) for parts in (first, second))
    return asdict(paired_permutation(100 * a, 100 * b, groups=units, seed=seed))


def tests_layout(tests: pd.DataFrame, what: str = "folds") -> str:
    """The paired tests as Markdown; ``what`` heads the column of the rule."""
    rows = []
    for test in tests.itertuples():
        rows.append(
            {
                what: test.rule,
                "first": test.first,
                "second": test.second,
                "k": test.k,
                "first − second, pp": points(test.difference),
                "95 % interval": interval(test.low, test.high),
                "p": p_cell(test.p_value, test.p_floor),
                "groups": test.n_units,
            }
        )
    return markdown_table(pd.DataFrame(rows))


def points(difference: float) -> str:
    """A difference in percentage points with its sign, a dash where there is none.

    >>> points(1.5), points(float("nan"))
    ('+1.50', '–')
    """
    return "–" if np.isnan(difference) else f"{difference:+.2f}"


def interval(low: float, high: float) -> str:
    """An interval in percentage points, a dash where there is none.

    >>> interval(-1.0, 2.5), interval(float("nan"), float("nan"))
    ('-1.00 to +2.50', '–')
    """
    return "–" if np.isnan(low) else f"{low:+.2f} to {high:+.2f}"


def p_cell(p_value: float, p_floor: float) -> str:
    """p as a table prints it: "at most" at the test's floor, a dash where no test could be made.

    >>> p_cell(0.03125, 0.03125), p_cell(0.2, 0.03125), p_cell(float("nan"), 1.0)
    ('≤ 0.0312', '0.2000', '–')
    """
    if np.isnan(p_value):
        return "–"
    return f"≤ {p_floor:.4f}" if p_value <= p_floor else f"{p_value:.4f}"


def relation(test: Any, p_value: float, level: float = 0.05) -> str:
    """How the first method compares with the second, in words with four possible outcomes.

    test: with difference, p_floor and n_units; with so few groups that p cannot fall to ``level`` it tells nothing.

    >>> from lib.metrics.significance import PairedTest
    >>> relation(PairedTest(2.0, 0.5, 0.5, 2, 1.0, 3.0), 0.5)
    'cannot, with 2 groups, be told from'
    """
    if test.p_floor > level:
        return f"cannot, with {test.n_units} group{'s' * (test.n_units != 1)}, be told from"
    if p_value > level:
        return "is not clearly different from"
    return "is better than" if test.difference > 0 else "is worse than"


def verdicts(tests: pd.DataFrame, what: str = "folds") -> list[str]:
    """One sentence per paired test; ``what`` says what the rule is a rule for."""
    return [
        f"k = {test.k}, {what} {test.rule}: {test.first} {relation(test, test.p_value)} {test.second}"
        for test in tests.itertuples()
    ]


def save_tests(run: Run, tests: pd.DataFrame) -> None:
    """Write the paired tests."""
    text = (
        "Difference of MAP@k (min(k, relevant)) in percentage points, averaged per group first; two-sided sign-flip "
        "test with 10,000 resamples, percentile bootstrap over groups. p is not corrected for the number of rows."
    )
    title = f"Hyper-DINO, paired tests on {run.dataset}"
    run.save_table("table_tests", title, tests, tests_layout(tests), text, of=100)
