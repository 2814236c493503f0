"""Paired tests of :mod:`lib.study.differences` as Markdown and as sentences."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import could_show, could_tell
from lib.study.markdown import markdown_table, percent, points
from lib.study.shown import Table

SAYS = (
    "Differences in percentage points, averaged per group first. p: two-sided sign flips of the groups, all patterns "
    "where these are no more than 10,000, else so many at random; of several trainings, the larger of that and of "
    "Student's t with the variance of groups and trainings. p, Holm: corrected for all tests of this table, what a "
    "verdict rests on. Interval: 95 %, of the same t. Could have shown: with this spread and so many tests, the least "
    "that is clear in the first step of Holm's correction (in later steps a little less may be); with few groups, "
    "whose signs must all agree, it may have to be larger. Nothing: for so many tests the groups are too few."
)
"""What every table of paired tests says about itself."""


METHODS = {"first": "first", "second": "second"}
"""The columns that name what is compared, as they stand."""


def tests_layout(
    tests: pd.DataFrame, names: Mapping[str, str] = METHODS, difference: str = "first − second, points"
) -> str:
    """The paired tests as Markdown, a row each.

    names: columns that say what was tested → their titles, before the numbers. difference: heads first minus second.

    >>> from lib.study import differences
    >>> one = {"first": "ball", "second": "flat", "k": 1, "difference": 2.0, "p_value": 0.5, "p_floor": 0.5}
    >>> tests = differences.together([one | {"low": np.nan, "high": np.nan, "n_units": 2, "n_seeds": 1}])
    >>> print(tests_layout(tests, METHODS | {"k": "K"}, "gain"))
    | first | second | K | gain | 95 % interval | p | p, Holm | verdict | could have shown | groups | seeds |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | ball | flat | 1 | +2.00 | – | ≤ 0.5000 | 0.5000 | cannot tell | nothing | 2 | 1 |
    """
    rows = [
        {title: getattr(test, column) for column, title in names.items()} | cells(test, difference)
        for test in tests.itertuples()
    ]
    return markdown_table(pd.DataFrame(rows))


def table(tests: pd.DataFrame, title: str, text: str, what: str = "folds", column: str = "rule") -> Table:
    """The paired tests as a table to save; ``text`` is what their values are, ``what`` heads the ``column``."""
    layout = tests_layout(tests, {column: what} | METHODS | {"k": "k"}, "first − second, pp")
    return Table(title, tests, f"{text} {SAYS}", markdown=layout)


def cells(test: Any, what: str) -> dict[str, Any]:
    """A test as cells of a table; ``what`` heads the difference."""
    return {
        what: points(test.difference),
        "95 % interval": interval(test.low, test.high),
        "p": p_cell(test.p_value, test.p_floor),
        "p, Holm": "–" if np.isnan(test.p_holm) else f"{test.p_holm:.4f}",
        "verdict": verdict(test),
        "could have shown": shown_cell(test),
        "groups": "–" if np.isnan(test.n_units) else int(test.n_units),
        "seeds": "–" if np.isnan(test.n_seeds) else int(test.n_seeds),
    } | rim_cell(test)


def verdict(test: Any) -> str:
    """What came out of a test, for its row of a table; a dash where no test could be made.

    >>> from types import SimpleNamespace as Test
    >>> verdict(Test(difference=2.0, p_holm=0.02, p_floor=0.002, n_units=10, n_tests=8))
    'better'
    >>> verdict(Test(difference=2.0, p_holm=0.5, p_floor=0.5, n_units=2, n_tests=1))
    'cannot tell'
    """
    if np.isnan(test.p_holm):
        return "–"
    return OUTCOMES.get(relation(test), "cannot tell")


def shown_cell(test: Any) -> str:
    """What a test could have shown, as a table prints it; a dash where no test could be made, or nothing differs."""
    least = could_show(test)
    if np.isnan(test.p_holm) or np.isnan(least):
        return "–"
    return "nothing" if np.isinf(least) else f"± {percent(least)}"


MOST_AT_RIM = 5.0
"""With a larger share of its training images at the rim (percent) a head is held there, and enters no count of wins."""


def rim_cell(test: Any) -> dict[str, str]:
    """How much of the worse head is at the rim (percent, column at_rim of the test), if that was told."""
    if not hasattr(test, "at_rim"):
        return {}
    told = "–" if np.isnan(test.at_rim) else f"{test.at_rim:.1f} %"
    return {"at the rim": told + ", not counted" * (test.at_rim > MOST_AT_RIM)}


def interval(low: float, high: float) -> str:
    """An interval in percentage points, a dash where there is none.

    >>> interval(-1.0, 2.5), interval(float("nan"), float("nan"))
    ('-1.00 to +2.50', '–')
    """
    return "–" if np.isnan(low) else f"{points(low)} to {points(high)}"


def p_cell(p_value: float, p_floor: float) -> str:
    """p as a table prints it: "at most" at the test's floor, a dash where no test could be made.

    >>> p_cell(0.03125, 0.03125), p_cell(0.2, 0.03125), p_cell(float("nan"), 1.0)
    ('≤ 0.0312', '0.2000', '–')
    """
    if np.isnan(p_value):
        return "–"
    return f"≤ {p_floor:.4f}" if p_value <= p_floor else f"{p_value:.4f}"


CLEAR = ("is better than", "is worse than")
"""The outcomes of :func:`relation` that decide."""

NOT_CLEAR = "is not clearly different from"
"""Its outcome where a difference could have been clear, and is not."""

OUTCOMES = {"is better than": "better", "is worse than": "worse", NOT_CLEAR: "not clearly different"}
"""Outcomes as a table prints them."""


def relation(test: Any, level: float = 0.05) -> str:
    """How the first method compares with the second, in words with four possible outcomes.

    test: a row of :func:`lib.study.differences.together`. Where the difference is not clear, and so many groups and
    tests allow no p that would be so beside any others, nothing can be told. (Holm's correction can be milder than the
    number of tests.)

    >>> from types import SimpleNamespace as Test
    >>> relation(Test(difference=2.0, p_holm=0.5, p_floor=0.5, n_units=2, n_tests=1))
    'cannot, with 2 groups, be told from'
    >>> relation(Test(difference=2.0, p_holm=0.25, p_floor=0.03, n_units=6, n_tests=8))
    'cannot, with 6 groups and 8 tests, be told from'
    >>> relation(Test(difference=2.0, p_holm=0.02, p_floor=0.002, n_units=10, n_tests=8))
    'is better than'
    >>> relation(Test(difference=-2.0, p_holm=0.03, p_floor=0.004, n_units=9, n_tests=17))
    'is worse than'
    """
    if test.p_holm <= level:
        return "is better than" if test.difference > 0 else "is worse than"
    if not could_tell(test, level):
        groups = f"{test.n_units} group{'s' * (test.n_units != 1)}"
        tests = f" and {test.n_tests} tests" if test.p_floor <= level else ""
        return f"cannot, with {groups}{tests}, be told from"
    return NOT_CLEAR


def counted(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests of heads that are not held at the rim: at_rim (percent), where there is such a column, is small."""
    return tests[~(tests["at_rim"] > MOST_AT_RIM)] if "at_rim" in tests else tests


def tally(tests: pd.DataFrame, what: str = "test") -> tuple[int, int, str]:
    """In how many tests the first method is clearly better, in how many clearly worse, and of how many.

    A test that could not have shown any difference is no "no", and a head at the rim no evidence (:func:`counted`).
    tests: rows of :func:`lib.study.differences.together`; what: they are of.

    >>> test = {"difference": 2.0, "p_floor": 0.004, "n_units": 9, "n_tests": 3, "at_rim": 0.0}
    >>> rows = [test | {"p_holm": 0.01}, test | {"p_holm": 0.5}, test | {"p_holm": 1.0, "p_floor": 0.03}]
    >>> tally(pd.DataFrame(rows[:2])), tally(pd.DataFrame([*rows, rows[0] | {"at_rim": 27.0}]))
    ((1, 0, '2 tests'), (1, 0, '2 tests that could tell (1 could not; 1 at the rim)'))
    """
    outcomes = [relation(test) for test in counted(tests).itertuples()]
    silent, held = sum(outcome.startswith("cannot") for outcome in outcomes), len(tests) - len(outcomes)
    n, apart = len(outcomes) - silent, [f"{silent} could not"] * bool(silent) + [f"{held} at the rim"] * bool(held)
    of = f"{n} {what}{'s' * (n != 1)}" + " that could tell" * bool(silent) + f" ({'; '.join(apart)})" * bool(apart)
    better, worse = (outcomes.count(outcome) for outcome in CLEAR)
    return better, worse, of


def overview(tested: Mapping[str, pd.DataFrame], columns: Sequence[str] = ("first", "second")) -> str:
    """How many tests are clear on each dataset (title → its tests), a row for all that agree in ``columns``; Markdown.

    >>> test = {"first": "ball", "second": "flat", "difference": 2.0, "p_holm": 0.01, "p_floor": 0.004, "n_units": 9}
    >>> print(overview({"birds": pd.DataFrame([test | {"n_tests": 1}])}))
    | first | second | birds |
    | --- | --- | --- |
    | ball | flat | 1 better, 0 worse of 1 test |
    """
    lines: dict[tuple, dict[str, str]] = {}
    for title, tests in tested.items():
        for key, part in tests.groupby(list(columns), sort=False):
            better, worse, of = tally(part)
            cell = f"{better} better, {worse} worse of {of}" if could_tell(part).any() else "cannot tell"
            lines.setdefault(key, dict(zip(columns, key, strict=True)))[title] = cell
    return markdown_table(pd.DataFrame(lines.values()).fillna("–"))
