"""Is one method better than another? Paired tests on per-query values, with the patient as the unit."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lib.errors import InputError


@dataclass(frozen=True)
class PairedTest:
    """Mean difference a - b over the units, its two-sided p value and 95 % interval.

    ``p_floor`` is the smallest p value that this many units and resamples can give: a p value at the floor means "at
    most", and with five patients or fewer it cannot fall below 0.05. Fewer than two units allow no test and no
    interval: ``p_value``, ``low`` and ``high`` are then NaN, and without any unit ``difference`` too.
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
    lengths and a missing group.

    Four patients, all better by 0.1 or 0.2: of the 16 sign patterns only two are as extreme.

    >>> paired_permutation([0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.5, 0.7]).p_value
    0.125
    """
    return _resampled(_units(a, b, groups), n_resamples, seed)[0]


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that is to be said about one paired comparison a - b; lengths and means in the units of the values.

    test: the sign-flip test and the *confidence interval* of the mean difference, which is centred on it.
    null_low, null_high: where 95 % of the means lie if there is no difference: an interval around 0, to be left by the
        observed difference and not to be mistaken for its confidence interval (Linear prototypes, Fig. 3, LP-5).
    wilcoxon_p: two-sided signed-rank test; NaN where no unit differs.
    effect_size: mean over standard deviation of the differences (Cohen's d_z); NaN where they are all equal.
    rank_biserial: (W+ - W-)/(W+ + W-): 1 where every unit gains, -1 where every one loses, NaN where none differs.
    null, bootstrap: (r,) the means of sign-flipped, and of resampled, differences; empty with fewer than two units,
        where everything else is NaN but what :class:`PairedTest` says.
    """

    test: PairedTest
    null_low: float
    null_high: float
    wilcoxon_p: float
    effect_size: float
    rank_biserial: float
    null: np.ndarray
    bootstrap: np.ndarray


def evidence(
    a: ArrayLike, b: ArrayLike, groups: ArrayLike | None = None, n_resamples: int = 10_000, seed: int = 0
) -> Evidence:
    """Everything about the paired difference a - b; arguments and errors as :func:`paired_permutation`.

    >>> found = evidence([0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.5, 0.7])
    >>> found.rank_biserial, found.test.low > 0, found.null_low < 0 < found.null_high
    (1.0, True, True)
    """
    units = _units(a, b, groups)
    test, null, bootstrap = _resampled(units, n_resamples, seed)
    if test.n_units < 2:
        return Evidence(test, *[np.nan] * 5, null, bootstrap)
    null_low, null_high = np.quantile(null, (0.025, 0.975))
    return Evidence(test, float(null_low), float(null_high), *_by_rank_and_spread(units), null, bootstrap)


def corrected(p_values: ArrayLike, method: str = "holm") -> np.ndarray:
    """p values of several tests, corrected for their number: Holm's step-down, or any method of statsmodels.

    A NaN (a test that could not be made) stays one and is not counted.

    >>> corrected([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    found = np.full(p.shape, np.nan)
    known = ~np.isnan(p)
    if known.any():
        found[known] = multipletests(p[known], method=method)[1]
    return found


def _units(a: ArrayLike, b: ArrayLike, groups: ArrayLike | None) -> np.ndarray:
    """The mean difference of every group with a value in both."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    groups = np.arange(a.size) if groups is None else np.asarray(groups)
    if a.ndim != 1 or a.shape != b.shape or a.shape != groups.shape:
        raise InputError(f"a, b and groups have shapes {a.shape}, {b.shape}, {groups.shape}; expected the same (q,)")
    if (missing := pd.isna(groups)).any():
        raise InputError(f"row {missing.argmax()} has no group")
    return pd.Series(a - b).groupby(groups).mean().dropna().to_numpy()


def _resampled(units: np.ndarray, n_resamples: int, seed: int) -> tuple[PairedTest, np.ndarray, np.ndarray]:
    """The test of the mean of ``units``, and the means of sign-flipped and of resampled ones."""
    n = len(units)
    if n < 2:
        difference = float(units[0]) if n else np.nan
        return PairedTest(difference, np.nan, p_floor=1.0, n_units=n, low=np.nan, high=np.nan), units[:0], units[:0]
    size = {"n_resamples": n_resamples, "batch": max(1, 1_000_000 // n)}  # both hold batch x n numbers
    one, other = np.random.default_rng(seed), np.random.default_rng(seed)
    flipped = stats.permutation_test((units,), np.mean, permutation_type="samples", random_state=one, **size)
    resampled = stats.bootstrap((units,), np.mean, method="percentile", random_state=other, **size)
    patterns = 2**n if 2**n <= n_resamples else n_resamples + 1
    test = PairedTest(
        difference=float(units.mean()),
        p_value=float(flipped.pvalue),
        p_floor=2 / patterns,
        n_units=n,
        low=float(resampled.confidence_interval.low),
        high=float(resampled.confidence_interval.high),
    )
    return test, flipped.null_distribution, resampled.bootstrap_distribution


def _by_rank_and_spread(units: np.ndarray) -> tuple[float, float, float]:
    """Wilcoxon's p, Cohen's d_z and the rank-biserial correlation of the differences."""
    spread = units.std(ddof=1)
    effect = units.mean() / spread if spread > 0 else np.nan
    moved = units[units != 0]
    if len(moved) == 0:
        return np.nan, float(effect), np.nan
    ranks = stats.rankdata(np.abs(moved))
    return float(stats.wilcoxon(moved).pvalue), float(effect), float(ranks @ np.sign(moved) / ranks.sum())
