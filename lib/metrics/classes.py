"""Means in which every class counts alike, however many queries it has."""

from typing import TypeVar

import numpy as np
import pandas as pd

Values = TypeVar("Values", pd.Series, pd.DataFrame)


def over_classes(values: Values, classes: np.ndarray | pd.Series) -> float | pd.Series:
    """The class mean: the mean over classes of the means of their queries, of each column of ``values``.

    values: a row per query of *all* folds, in one table: classes averaged within each fold, and then the folds, would
    let a class with one query in a fold count there as much as one with thirty. classes: (q,). A NaN, a query without
    an answer, is left out, and with it a class of which no query has one.

    >>> float(over_classes(pd.Series([1.0, 0.0, 0.5, np.nan]), np.array(["a", "a", "b", "c"])))
    0.5
    """
    return values.groupby(np.asarray(classes)).mean().mean()
