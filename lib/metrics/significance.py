"""Is one method better than another? Paired tests on per-query values, with the patient as the unit."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from lib.errors import InputError


@dataclass(frozen=True)
class PairedTest:
    """Mean difference a - b over the units, its two-sided p value and 95 % interval.

    ``p_floor`` is the smallest p value that this many units and resamples can give: a p value at the floor means "at
    most", and with five patients or fewer it cannot fall below 0.05.
    """

    difference: float
    p_value: float
    p_floor: float
    n_units: int
    low: float
    high: float


def paired_permutation(
    a: ArrayLike, b: ArrayLike, groups: ArrayLike | None = None, n_resamples: int = 10_000, seed: int = 0
) -> PairedTest:
    """Two-sided sign-flip test of the mean of a - b, with a percentile bootstrap interval of that mean.

    ``a``, ``b``: (q,) values of two methods for the same queries; a pair with a NaN is dropped. ``groups``: (q,), for
    example patients; the differences are averaged per group first, because tiles of one patient are not independent.
    All 2^n sign patterns are tried if they are at most ``n_resamples``, else so many random ones. The interval is the
    percentile one, not BCa, because it also exists where all differences are equal. Raises InputError for unequal
    lengths, a missing group and fewer than two units.

    Four patients, all better by 0.1 or 0.2: of the 16 sign patterns only two are as extreme.

    >>> paired_permutation([0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.5, 0.7]).p_value
    0.125
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    groups = np.arange(a.size) if groups is None else np.asarray(groups)
    if a.ndim != 1 or a.shape != b.shape or a.shape != groups.shape:
        raise InputError(f"a, b and groups have shapes {a.shape}, {b.shape}, {groups.shape}; expected the same (q,)")
    if (missing := pd.isna(groups)).any():
        raise InputError(f"row {missing.argmax()} has no group")
    units = pd.Series(a - b).groupby(groups).mean().dropna().to_numpy()
    n = len(units)
    if n < 2:
        raise InputError(f"{n} unit(s) with a value in both; a paired test needs at least two")
    # Both resamplings hold batch x n numbers.
    batch = max(1, 1_000_000 // n)
    test = stats.permutation_test(
        (units,),
        np.mean,
        permutation_type="samples",
        n_resamples=n_resamples,
        batch=batch,
        random_state=np.random.default_rng(seed),
    )
    interval = stats.bootstrap(
        (units,),
        np.mean,
        method="percentile",
        n_resamples=n_resamples,
        batch=batch,
        random_state=np.random.default_rng(seed),
    ).confidence_interval
    patterns = 2**n if 2**n <= n_resamples else n_resamples + 1
    return PairedTest(
        difference=float(units.mean()),
        p_value=float(test.pvalue),
        p_floor=2 / patterns,
        n_units=n,
        low=float(interval.low),
        high=float(interval.high),
    )
