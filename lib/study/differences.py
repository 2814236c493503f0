"""Is the difference real? Paired tests between methods, as rows; :mod:`lib.study.paired` says what came out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.metrics.significance import corrected, could_show, paired_permutation


def of_shares(
    a: np.ndarray,
    b: np.ndarray,
    units: np.ndarray,
    repeats: np.ndarray | None = None,
    classes: np.ndarray | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """The paired test, in percentage points, of values from 0 to 1 that two methods have of the same queries, (q,) all.

    units: the group of each query. repeats: the training of each value, where there are several. classes: of the
    queries, for the mean over classes; None for the mean over groups. seed: of the random sign flips.

    >>> test = of_shares(np.array([0.6, 0.8]), np.array([0.5, 0.5]), np.array(["p", "q"]))
    >>> round(test["difference"], 9), test["n_units"]
    (20.0, 2)
    """
    if a.shape != b.shape:
        raise InputError(
            f"one method has {len(a)} values, the other {len(b)}: both must have answered the same queries"
        )
    if classes is not None:
        a, units, repeats = of_classes(a - b, classes, units, repeats)
        b = np.zeros_like(a)
    return asdict(paired_permutation(100 * a, 100 * b, units, repeats, seed=seed))


def of_queries(a: pd.Series, b: pd.Series, by_class: bool = False, seed: int = 0) -> dict[str, float]:
    """:func:`of_shares` of two series with the levels group, repeat and label; by_class: of the mean over classes."""
    units, repeats, classes = (a.index.get_level_values(name).to_numpy() for name in ("group", "repeat", "label"))
    return of_shares(a.to_numpy(), b.to_numpy(), units, repeats, classes if by_class else None, seed)


def of_classes(
    values: np.ndarray, classes: np.ndarray, units: np.ndarray, repeats: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What every group adds to the mean over classes: one value of each group and training, its group, its training.

    A class counts as the mean of its queries (:func:`lib.metrics.classes.over_classes`), so that the difference of two
    methods is that of their class means. The mean of the returned values, over groups, is the mean over classes; a NaN,
    a query without an answer, is left out.

    Two groups of a frequent class, one with two queries, and one group of a rare class:

    >>> values, classes = np.array([0.1, 0.3, 0.2, 0.8]), np.array(["a", "a", "a", "b"])
    >>> of_classes(values, classes, np.array([1, 2, 2, 3]))[0].round(3).tolist()
    [0.05, 0.25, 1.2]
    """
    repeats = np.zeros(len(values), dtype=int) if repeats is None else repeats
    rows = pd.DataFrame({"unit": units, "repeat": repeats, "class": classes, "value": values}).dropna(subset="value")
    n_queries = rows.groupby(["repeat", "class"])["value"].transform("size")
    sums = (rows["value"] / n_queries).groupby([rows["unit"], rows["repeat"]]).sum()
    n_classes = rows.groupby("repeat")["class"].nunique()
    repeat = sums.index.get_level_values("repeat")
    shares = sums * sums.groupby(level="repeat").transform("size") / n_classes.loc[repeat].to_numpy()
    return shares.to_numpy(), *(sums.index.get_level_values(name).to_numpy() for name in ("unit", "repeat"))


def together(tests: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The tests of one table, a row each, with p corrected for their number.

    ``tests``: names, then the fields of :class:`lib.metrics.significance.PairedTest`. Adds n_tests, how many could be
    made, p_holm, and could_show (:func:`lib.metrics.significance.could_show`).

    >>> test = {"low": -1.0, "high": 1.0, "n_units": 9, "p_floor": 0.004}
    >>> tests = together([test | {"p_value": p} for p in (0.01, 0.04, float("nan"))])
    >>> tests["p_holm"].tolist(), tests["could_show"].round(2).tolist()
    ([0.02, 0.04, nan], [1.19, 1.19, 1.19])
    """
    table = pd.DataFrame(tests)
    table = table.assign(n_tests=int(table["p_value"].notna().sum()), p_holm=corrected(table["p_value"]))
    return table.assign(could_show=could_show(table))
