"""Paired tests of :mod:`lib.study.differences` as Markdown and as sentences."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import could_tell
from lib.study.columns import Column, Form, Layout
from lib.study.markdown import markdown_table, percent, points

SAYS = (
    "Differences in percentage points, averaged per group first. Intervals: 95 %, uncorrected. p, Holm: corrected for "
    "all tests of this table. Could have shown: the least difference that would have been clear. Notebook 42 explains "
    "them."
)
"""What every table of paired tests says about itself."""

METHODS = {"first": "first", "second": "second"}
"""The columns that name what is compared, as they stand."""

MEASURED = {"ap_min": "÷ min(k, R)", "ap_hits": "÷ hits", "precision": "precision"}
"""By what a list is measured: the metric of :class:`lib.metrics.retrieval.PerQuery`, and what a table calls it."""


def columns(difference: str) -> list[Column]:
    """The columns of what came out of a test; ``difference`` heads first minus second. For rows of :func:`outcomes`."""
    return [
        Column(difference, "difference", "+2"),
        Column("95 % interval", "interval"),
        Column("p"),
        Column("p, Holm", "p_holm", "4"),
        Column("verdict"),
        Column("could have shown", "least"),
        Column("groups", "n_units", "0"),
        Column("seeds", "n_seeds", "0"),
        Column("at the rim", "held", optional=True),
    ]


def outcomes(tests: pd.DataFrame) -> pd.DataFrame:
    """``tests`` with what :func:`columns` show as text: interval, p, verdict, least and, if known, held."""
    rows = list(tests.itertuples())
    shown = {
        "interval": [interval(test.low, test.high) for test in rows],
        "p": [p_cell(test.p_value, test.p_floor) for test in rows],
        "verdict": [verdict(test) for test in rows],
        "least": [shown_cell(test) for test in rows],
    }
    if "at_rim" in tests:
        shown["held"] = [rim_cell(test.at_rim) for test in rows]
    return named(tests).assign(**shown)


def named(tests: pd.DataFrame) -> pd.DataFrame:
    """``tests`` whose k says by what the list is measured, where several ways stand.

    >>> named(pd.DataFrame({"k": [1, 20, 20], "metric": ["ap_min", "ap_min", "ap_hits"]}))["k"].tolist()
    ['1', '20 ÷ min(k, R)', '20 ÷ hits']
    """
    if "metric" not in tests:
        return tests
    ways = tests.groupby("k")["metric"].transform("nunique")
    by = (" " + tests["metric"].map(MEASURED)).where(ways > 1, "")
    return tests.assign(k=tests["k"].astype(str) + by)


def tests_layout(
    names: Mapping[str, str] = METHODS,
    difference: str = "first − second, points",
    forms: Mapping[str, Form] = {},
    without: Collection[str] = (),
) -> Layout:
    """How paired tests become a table, a line each.

    names: columns that say what was tested → their titles, before the numbers. difference: heads first minus second.
    forms: how a column of ``names`` prints, if not as it stands. without: titles of :func:`columns` that a page has no
    room for, since its caption says them.

    >>> from lib.study import differences
    >>> test = {"first": "ball", "second": "flat", "k": 1, "difference": 2.0, "p_value": 0.5, "p_floor": 0.5}
    >>> tests = differences.together([test | {"low": np.nan, "high": np.nan, "n_units": 2, "n_seeds": 1}])
    >>> print(tests_layout(METHODS | {"k": "K"}, "gain")(tests))
    | first | second | K | gain | 95 % interval | p | p, Holm | verdict | could have shown | groups | seeds |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | ball | flat | 1 | +2.00 | – | ≤ 0.5000 | 0.5000 | cannot tell | nothing | 2 | 1 |
    """
    titles = [Column(title, name, forms.get(name, str)) for name, title in names.items()]
    return Layout([*titles, *(c for c in columns(difference) if c.title not in without)], by=(), prepare=outcomes)


def by_length(what: str = "folds", column: str = "rule") -> Layout:
    """Tests of lists of several lengths; ``what`` heads the ``column``."""
    return tests_layout({column: what} | METHODS | {"k": "k"}, "first − second, pp")


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
    """The least that a test could have shown; a dash where no test could be made, or nothing differs."""
    if np.isnan(test.p_holm) or np.isnan(test.could_show):
        return "–"
    return "nothing" if np.isinf(test.could_show) else f"± {percent(test.could_show)}"


MOST_AT_RIM = 5.0
"""With a larger share of its training images at the rim (percent) a head is held there, and enters no count of wins."""


def rim_cell(share: float) -> str:
    """How much of the worse head is at the rim (percent)."""
    return "–" if np.isnan(share) else f"{share:.1f} %" + ", not counted" * (share > MOST_AT_RIM)


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


LEVEL = 0.05
"""Up to this p, corrected, a difference is clear."""


def relation(test: Any) -> str:
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
    if test.p_holm <= LEVEL:
        return "is better than" if test.difference > 0 else "is worse than"
    if not could_tell(test):
        groups = f"{test.n_units} group{'s' * (test.n_units != 1)}"
        tests = f" and {test.n_tests} tests" if test.p_floor <= LEVEL else ""
        return f"cannot, with {groups}{tests}, be told from"
    return NOT_CLEAR


def counted(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests of heads that are not held at the rim: at_rim (percent), where there is such a column, is small."""
    return tests[~(tests["at_rim"] > MOST_AT_RIM)] if "at_rim" in tests else tests


def tally(tests: pd.DataFrame) -> tuple[int, int, str]:
    """In how many tests the first method is clearly better, in how many clearly worse, and of how many.

    A test that could not have shown any difference is no "no", and a head at the rim no evidence (:func:`counted`).
    tests: rows of :func:`lib.study.differences.together`.

    >>> test = {"difference": 2.0, "p_floor": 0.004, "n_units": 9, "n_tests": 3, "at_rim": 0.0}
    >>> rows = [test | {"p_holm": 0.01}, test | {"p_holm": 0.5}, test | {"p_holm": 1.0, "p_floor": 0.03}]
    >>> tally(pd.DataFrame(rows[:2])), tally(pd.DataFrame([*rows, rows[0] | {"at_rim": 27.0}]))
    ((1, 0, '2 tests'), (1, 0, '2 tests that could tell (1 could not; 1 at the rim)'))
    """
    outcomes = [relation(test) for test in counted(tests).itertuples()]
    silent, held = sum(outcome.startswith("cannot") for outcome in outcomes), len(tests) - len(outcomes)
    n, apart = len(outcomes) - silent, [f"{silent} could not"] * bool(silent) + [f"{held} at the rim"] * bool(held)
    total = f"{n} test{'s' * (n != 1)}" + " that could tell" * bool(silent) + f" ({'; '.join(apart)})" * bool(apart)
    better, worse = (outcomes.count(outcome) for outcome in CLEAR)
    return better, worse, total


def overview(tested: Mapping[str, pd.DataFrame]) -> str:
    """How many tests of a pair of methods are clear on each dataset (title → its tests), a row a pair; Markdown.

    >>> test = {"first": "ball", "second": "flat", "difference": 2.0, "p_holm": 0.01, "p_floor": 0.004, "n_units": 9}
    >>> print(overview({"birds": pd.DataFrame([test | {"n_tests": 1}])}))
    | first | second | birds |
    | --- | --- | --- |
    | ball | flat | 1 better, 0 worse of 1 test |
    """

    def cell(tests: pd.DataFrame) -> str:
        better, worse, total = tally(tests)
        return f"{better} better, {worse} worse of {total}" if could_tell(tests).any() else "cannot tell"

    return _side_by_side(tested, [*METHODS], cell)


def _side_by_side(
    tested: Mapping[str, pd.DataFrame], columns: Sequence[str], cell: Callable[[pd.DataFrame], str]
) -> str:
    """A row for all tests that agree in ``columns``, beside them the ``cell`` of each dataset; Markdown."""
    lines: dict[tuple, dict[str, str]] = {}
    for title, tests in tested.items():
        for key, part in tests.groupby(list(columns), sort=False):
            lines.setdefault(key, dict(zip(columns, key, strict=True)))[title] = cell(part)
    return markdown_table(pd.DataFrame(lines.values()).fillna("–"))


def sizes(tested: Mapping[str, pd.DataFrame], columns: Sequence[str], by: str) -> str:
    """How large the clear differences are on each dataset, in points, for each value of the column ``by``; Markdown.

    A row for all tests that agree in ``columns``. A cell has, for each value with a clear difference, the smallest and
    the largest of them, and of several tests how many these are; what is not clear has no size worth printing.

    tested: title of a dataset → its tests, rows of :func:`lib.study.differences.together`.

    >>> test = {"first": "ball", "second": "flat", "p_floor": 0.004, "n_units": 9, "n_tests": 3, "p_holm": 0.01}
    >>> rows = [test | {"k": k, "difference": size} for k, size in ((1, 2.0), (1, 3.5), (20, -4.0))]
    >>> rows += [rows[2] | {"p_holm": 0.5}]
    >>> print(sizes({"birds": pd.DataFrame(rows), "lesions": pd.DataFrame(rows[3:])}, ["first", "second"], "k"))
    | first | second | birds | lesions |
    | --- | --- | --- | --- |
    | ball | flat | k = 1: +2.0 to +3.5 (2 of 2); k = 20: -4.0 (1 of 2) | none of 1 clear |
    """

    def cell(tests: pd.DataFrame) -> str:
        what = "k = " * (by == "k")  # a name speaks for itself
        by_value = tests.groupby(by, sort=False)
        cells = [f"{what}{value}: {size}" for value, rows in by_value if (size := _clear_sizes(rows))]
        none = f"none of {len(tests)} clear" if could_tell(tests).any() else "cannot tell"
        return "; ".join(cells) or none

    return _side_by_side({title: named(counted(tests)) for title, tests in tested.items()}, columns, cell)


def _clear_sizes(rows: pd.DataFrame) -> str:
    """Smallest and largest clear difference of some tests, and how many are clear; nothing where none is."""
    clear = sorted(test.difference for test in rows.itertuples() if relation(test) in CLEAR)
    ends = " to ".join(dict.fromkeys(f"{size:+.1f}" for size in (clear[:1] + clear[-1:])))
    return ends + f" ({len(clear)} of {len(rows)})" * (len(rows) > 1) if clear else ""


OTHERS = {"lesion": "; a lesion is not a patient: other lesions of the same patient stay in the archive"}
"""Group → what may still be known of a query without it."""


def of_own_group(tests: pd.DataFrame) -> str:
    """Which queries tests of the own group are over: those that it can touch; nothing where there is no such test.

    tests: columns n_queries, n_units and group_kind of the tests of the own group, empty in others.

    >>> of_own_group(pd.DataFrame({"n_queries": [1695.0], "n_units": 700, "group_kind": "lesion"})).partition("; ")[0]
    'over the 1,695 images whose lesion has another one in the archive (700 lesions)'
    >>> of_own_group(pd.DataFrame({"n_units": [700]}))
    ''
    """
    if "group_kind" not in tests or (own := tests.dropna(subset="n_queries")).empty:
        return ""
    n_queries, n_units, kind = own[["n_queries", "n_units", "group_kind"]].iloc[0]
    another = f"over the {n_queries:,.0f} images whose {kind} has another one in the archive"
    return f"{another} ({n_units:,.0f} {kind}s){OTHERS.get(kind, '')}"
