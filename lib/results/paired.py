"""Paired tests of :mod:`lib.results.differences` as Markdown and as sentences."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import could_show, could_tell
from lib.results.markdown import markdown_table, percent, points
from lib.results.shown import Table

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

    >>> from lib.results import differences
    >>> one = {"first": "ball", "second": "flat", "k": 1, "difference": 2.0, "p_value": 0.5, "p_floor": 0.5}
    >>> tests = differences.together([one | {"low": np.nan, "high": np.nan, "n_units": 2, "n_seeds": 1}])
    >>> print(tests_layout(tests, METHODS | {"k": "K"}, "gain"))
    | first | second | K | gain | 95 % interval | p | p, Holm | could have shown | groups | seeds |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | ball | flat | 1 | +2.00 | – | ≤ 0.5000 | 0.5000 | nothing | 2 | 1 |
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
        "could have shown": shown_cell(test),
        "groups": "–" if np.isnan(test.n_units) else int(test.n_units),
        "seeds": "–" if np.isnan(test.n_seeds) else int(test.n_seeds),
    } | rim_cell(test)


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
"""How :func:`sentences` say an outcome, where both methods are named already."""


def relation(test: Any, level: float = 0.05) -> str:
    """How the first method compares with the second, in words with four possible outcomes.

    test: a row of :func:`lib.results.differences.together`. Where the difference is not clear, and so many groups and
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


def size(test: Any) -> str:
    """The difference, its interval where there is one, the corrected p, on which a verdict rests, and, where that is
    not clear, the smallest difference that would have been.

    >>> from types import SimpleNamespace as Test
    >>> found = {"difference": 2.0, "p_value": 0.002, "p_floor": 0.0002, "n_units": 9, "n_tests": 8}
    >>> size(Test(**found, low=1.0, high=3.0, p_holm=0.0254)), size(Test(**found, low=np.nan, high=np.nan, p_holm=1e-5))
    ('+2.00 points, +1.00 to +3.00; p (Holm) = 0.025', '+2.00 points; p (Holm) < 0.001')
    >>> size(Test(**found | {"p_value": 0.06}, low=-0.1, high=4.1, p_holm=0.48))
    '+2.00 points, -0.10 to +4.10; p (Holm) = 0.480; could have shown 3.35'
    >>> size(Test(difference=2.0, low=np.nan, high=np.nan, p_value=np.nan, p_floor=1.0, p_holm=np.nan))
    '+2.00 points'
    """
    told = f"{points(test.difference)} points" + ("" if np.isnan(test.low) else f", {interval(test.low, test.high)}")
    if np.isnan(test.p_holm):
        return told
    bound = "≤" if test.p_value <= test.p_floor and test.p_holm < 1 else "="  # at the floor it may be smaller
    told += f"; p (Holm) {'< 0.001' if test.p_holm < 0.001 else f'{bound} {test.p_holm:.3f}'}"
    known = relation(test) == NOT_CLEAR and not np.isnan(could_show(test))
    told += f"; could have shown {percent(could_show(test))}" if known else ""
    held = getattr(test, "at_rim", 0) > MOST_AT_RIM
    return f"{told}; {test.at_rim:.0f} % of a head at the rim, not counted" if held else told


def counted(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests of heads that are not held at the rim: at_rim (percent), where there is such a column, is small."""
    return tests[~(tests["at_rim"] > MOST_AT_RIM)] if "at_rim" in tests else tests


def tally(tests: pd.DataFrame, what: str = "test") -> tuple[int, int, str]:
    """In how many tests the first method is clearly better, in how many clearly worse, and of how many.

    A test that could not have shown any difference is no "no", and a head at the rim no evidence (:func:`counted`).
    tests: rows of :func:`lib.results.differences.together`; what: they are of.

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


def unclear(tests: pd.DataFrame) -> str:
    """What those of several tests that are not clear could have shown, least and most, to be added to a sentence.

    >>> test = {"difference": 2.0, "p_holm": 0.5, "p_floor": 0.004, "n_units": 9, "n_tests": 1}
    >>> test |= {"low": -1.0, "high": 1.0}
    >>> unclear(pd.DataFrame([test, test | {"high": 3.0}]))
    '; what is not clear could have shown 1.00 to 2.00'
    >>> unclear(pd.DataFrame([test | {"p_floor": 0.1}, test | {"p_holm": 0.01}]))
    ''
    """
    found = [could_show(test) for test in counted(tests).itertuples() if relation(test) == NOT_CLEAR]
    sizes = sorted(size for size in found if not np.isnan(size))
    ends = " to ".join(dict.fromkeys(percent(size) for size in (sizes[:1] + sizes[-1:])))
    return f"; what is not clear could have shown {ends}" if sizes else ""


def sentences(tests: pd.DataFrame) -> list[str]:
    """How each method stands beside another, everywhere that was tested; what several are compared with heads them.

    tests: rows of :func:`lib.results.differences.together`, with columns rule, gallery, archive and k where there are
    several.

    >>> test = {"second": "flat", "p_value": 0.005, "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 2}
    >>> test |= {"low": 1.5, "high": 3.5, "rule": "open", "k": 1, "difference": 2.5}
    >>> rows = [test | {"first": name} for name in ("ball", "NCA")]
    >>> print("\\n".join(sentences(pd.DataFrame(rows))))
    Against flat:
      ball: open, k = 1 better (+2.50 points, +1.50 to +3.50; p (Holm) = 0.010)
      NCA: open, k = 1 better (+2.50 points, +1.50 to +3.50; p (Holm) = 0.010)
    """
    lines = []
    for second, part in tests.groupby("second", sort=False):
        alone = part["first"].nunique() == 1
        lines += [] if alone else [f"Against {second}:"]
        for first, rival in part.groupby("first", sort=False):
            told = "; ".join(f"{_place(test)}{outcome(test)} ({size(test)})" for test in rival.itertuples())
            lines.append(f"{first} against {second}: {told}" if alone else f"  {first}: {told}")
    return lines


def _place(test: Any) -> str:
    """Where a method was tested: the rule of the folds, the gallery, the length of the list."""
    known = [getattr(test, name) for name in ("rule", "gallery", "archive") if hasattr(test, name)]
    known += [f"k = {test.k}"] if hasattr(test, "k") else []
    return f"{', '.join(known)} " if known else ""


def outcome(test: Any) -> str:
    """What came out of a test whose methods are named already: "better", or what cannot be told with how many groups.

    >>> from types import SimpleNamespace as Test
    >>> outcome(Test(difference=2.0, p_holm=0.5, p_floor=0.5, n_units=2, n_tests=1))
    'cannot be told with 2 groups'
    """
    found = relation(test)
    return OUTCOMES.get(found) or found.replace("cannot, with", "cannot be told with").removesuffix(", be told from")
