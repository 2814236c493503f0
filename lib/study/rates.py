"""Learning rates and the like: which of those that were tried is chosen, and the table of all of them."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lib.errors import InputError
from lib.metrics.significance import student
from lib.study.columns import Column, Layout, printed
from lib.study.shown import Table

FREE = ["chosen", "within", "se"]
"""Columns of :func:`choose_middle` that a rebuild need not agree in: another best turns all of them over."""

RULE = (
    "Italic: within one standard error of the best, paired over groups and trainings. Bold: the one in the middle of "
    "these, which is chosen (of two the smaller). Flat: all of them are within it."
)
"""What captions say of :func:`choose_middle`."""


def trainings(n: int) -> str:
    """What a value of a table of choices is.

    >>> trainings(1), trainings(3)
    ('one training', 'mean of 3 trainings')
    """
    return "one training" if n == 1 else f"mean of {n} trainings"


def choose_middle(
    tried: pd.DataFrame,
    values: Sequence[ArrayLike],
    groups: ArrayLike | None = None,
    by: str = "method",
    order: Sequence[str] = ("lr",),
) -> pd.DataFrame:
    """Of all within one standard error of the best, the one in the middle: noise hardly moves it.

    The best value of a row of rates is the luckiest one, too, and where the row is flat, luck alone decides; it may
    then lie at an end of the row, where more steps, or other images, are fatal. What is within one standard error of
    the best cannot be told from it, and the middle of these is furthest from both slopes. The error is that of the
    *difference* to the best, query by query (:func:`standard_error`): groups differ in how hard they are by far more
    than rates do, and are equally hard for all rates. The error of a single value would take nearly every rate in. (One
    training says nothing of other seeds: then only the groups count.)

    Args:
        tried: a row for each candidate, with the columns ``by``, within which is chosen, and ``order``.
        values: for each row (m, q), or (q,): what q validation queries got in each of m trainings, percent; NaN where
            a query has nothing to find. The same queries for all candidates.
        groups: (q,) of the queries, for example patients; each by itself if not given.
        order: what lies in an order, for example the rate and then a weight: the middle rate is taken first, then
            the middle weight at that rate. Of an even number it is the smaller one.

    Raises InputError where no query has an answer.

    Returns:
        ``tried`` with the columns validation (mean over queries and trainings), se (of the difference to the best, in
        its points), within (one standard error of the best) and chosen.

    >>> tried = pd.DataFrame({"method": "a", "lr": [0.1, 0.2, 0.3, 0.4]})
    >>> values = [[10.0, 80.0, 30.0], [40.0, 100.0, 67.0], [41.0, 98.0, 69.5], [40.0, 99.0, 71.0]]
    >>> choose_middle(tried, values)[["validation", "within", "chosen"]].values.tolist()
    [[40.0, False, False], [69.0, True, False], [69.5, True, True], [70.0, True, False]]
    """
    scores = [np.atleast_2d(np.asarray(of_one, dtype=np.float64)) for of_one in values]
    if any(np.isnan(of_one).all() for of_one in scores):
        raise InputError("no validation query has an image of its class to find: take more groups, or fewer folds")
    rows = tried.reset_index(drop=True).assign(validation=[np.nanmean(of_one) for of_one in scores], se=0.0)
    for _, part in rows.groupby(by, sort=False):
        best = scores[part["validation"].idxmax()]
        rows.loc[part.index, "se"] = [standard_error(best - scores[row], groups) for row in part.index]
    behind = rows.groupby(by, sort=False)["validation"].transform("max") - rows["validation"]
    rows["within"] = behind <= rows["se"]
    chosen = rows["within"]
    for column in order:  # the middle rate first, then the middle of what else was tried at this rate
        middle = rows[chosen].groupby(by)[column].agg(_middle)
        wanted = rows[by].map(middle)
        chosen &= (rows[column] == wanted) | wanted.isna()
    return rows.assign(chosen=chosen)


def _middle(values: pd.Series) -> float:
    """The middle one of the different ``values``, of an even number the smaller one; NaN where there is none."""
    different = np.unique(values.dropna())
    return different[(len(different) - 1) // 2] if len(different) else np.nan


def standard_error(values: np.ndarray, groups: ArrayLike | None = None) -> float:
    """The standard error of the mean of ``values: (m, q)``, of q queries in each of m trainings.

    It is that of :func:`lib.metrics.significance.student`: other groups might have come, and other seeds. The mean is
    over queries, so that a group moves it by what the sum of its queries has beyond their share. Fewer than two groups
    say nothing of others: then every query counts by itself. A query with a NaN is left out.

    >>> round(standard_error(np.array([[1.0, 2.0, 3.0]])), 3), standard_error(np.array([[1.0, 3.0]]), ["a", "a"])
    (0.577, 1.0)
    """
    known = ~np.isnan(values).any(axis=0)
    values, units = values[:, known], np.arange(known.sum())
    if groups is not None and len(set(np.asarray(groups)[known].tolist())) > 1:
        units, _ = pd.factorize(np.asarray(groups)[known])
    if len(units) < 2:
        return 0.0
    means = values.mean(axis=1, keepdims=True)
    beyond = np.stack([np.bincount(units, row) for row in values - means])
    return float(student((means + beyond * beyond.shape[1] / len(units)).T)[1])


def best_rates(tried: pd.DataFrame, by: str = "method", value: str = "lr") -> dict[str, float]:
    """Method → the learning rate, or another ``value``, that was chosen for it; columns ``by``, value and chosen.

    >>> best_rates(pd.DataFrame({"method": ["a", "a"], "lr": [0.1, 0.2], "chosen": [False, True]}))
    {'a': 0.2}
    """
    return tried[tried["chosen"]].set_index(by)[value].to_dict()


def marked(tried: pd.DataFrame, decimals: int = 2) -> pd.Series:
    """The validation of every row of :func:`choose_middle`: bold if chosen, italic if only near the best.

    >>> marked(pd.DataFrame({"validation": [1.0, 2.0, 3.0], "within": [0, 1, 1], "chosen": [0, 1, 0]}), 1).tolist()
    ['1.0', '**2.0**', '*3.0*']
    """
    signs = pd.Series("*", tried.index).where(tried["within"].astype(bool), "").mask(tried["chosen"].astype(bool), "**")
    return signs + tried["validation"].map(lambda value: printed(value, str(decimals))) + signs


def flatness(within: pd.Series) -> str:
    """How many of a row are within one standard error of the best.

    >>> [flatness(pd.Series(row)) for row in ([True], [True, False], [True, True])]
    ['1 of 1', '1 of 2', '2 of 2, flat']
    """
    flat = ", flat" if within.all() and len(within) > 1 else ""
    return f"{within.sum()} of {len(within)}{flat}"


def rates_layout(by: str = "method", decimals: int = 2, **others: str | Mapping[str, str]) -> Layout:
    """How rows of :func:`choose_middle` become a table: a line per ``by``, a column per rate, marked by :func:`marked`.

    others: columns behind the rates that hold one text in every line, or the text of each line, by its name.

    >>> tried = pd.DataFrame({"method": ["a", "a"], "lr": [0.1, 0.2]})
    >>> print(rates_layout(decimals=1, published="3e-05")(choose_middle(tried, [[50.0, 60.0], [60.0, 70.0]])))
    | method | 0.1 | 0.2 | within one error | published |
    | --- | --- | --- | --- | --- |
    | a | 55.0 | **65.0** | 1 of 2 | 3e-05 |
    """

    def prepare(tried: pd.DataFrame) -> pd.DataFrame:
        flat = tried.groupby(by, sort=False)["within"].agg(flatness)
        texts = {name: text if isinstance(text, str) else tried[by].map(text) for name, text in others.items()}
        return tried.assign(cell=marked(tried, decimals), flat=tried[by].map(flat), **texts)

    rates = Column("{}", "cell", over="lr"), Column("within one error", "flat")
    return Layout([Column(by), *rates, *map(Column, others)], [by], prepare=prepare)


def rates_table(title: str, tried: pd.DataFrame, text: str, markdown: str | None = None) -> Table:
    """The table of ``tried``, of :func:`choose_middle`, with the rule below ``text``."""
    return Table(title, tried, f"{text} {RULE}", FREE, markdown=markdown)
