"""Is one method better than another? Paired tests on per-query values, with the patient as the unit.

Two things could have been otherwise: other patients might have come, and training might have begun with another seed. A
difference that is claimed has to hold against both.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import stats

from lib.errors import InputError

AT_ONCE = 300_000
"""Random sign flips that are held at a time, or those of two patterns where these are more."""


@dataclass(frozen=True)
class PairedTest:
    """Mean difference a - b over the units, its two-sided p value and 95 % interval.

    ``p_value`` is the larger one of the sign flips of the units and of ``p_seeds``, Student's t with the variance of
    the units and of the seeds, which is NaN where there is one seed, or where seeds change nothing. ``p_floor`` is the
    smallest p value that this many units and resamples can give: a p value at the floor means "at most", and with five
    patients or fewer it cannot fall below 0.05. Fewer than two units allow no test and no interval: ``p_value``,
    ``low`` and ``high`` are then NaN, and without any unit ``difference`` too. ``freedom``: degrees of freedom of the
    interval, Welch's where there are several seeds; NaN without one.
    """

    difference: float
    p_value: float
    p_floor: float
    n_units: int
    low: float
    high: float
    n_seeds: int = 1
    p_seeds: float = np.nan
    freedom: float = np.nan


def paired_permutation(
    a: ArrayLike,
    b: ArrayLike,
    groups: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> PairedTest:
    """Two-sided sign-flip test of the mean of a - b, with Student's interval of that mean.

    Args:
        a, b: (q,) values of two methods for the same queries; a pair with a NaN is dropped.
        groups: (q,), for example patients; the differences are averaged per group first, because tiles of one patient
            are not independent.
        repeats: (q,) which training gave the value, where there are several: every query has one value of each. Signs
            are flipped of the groups' means over all trainings, and a t-test with the variance of both is made beside:
            neither the flips nor a t-test over the trainings alone keeps to 5 % where methods are equal (notebook 42).
        n_resamples: all 2^n sign patterns are tried if they are no more, else so many random ones.
        seed: of these.

    The interval is Student's t with the error of :func:`student`: with few groups a bootstrap interval is too short
    (notebook 42).

    Raises InputError for unequal lengths, a missing group, and a group that not every training has.

    Four patients, all better by 0.1 or 0.2: of the 16 sign patterns only two are as extreme.

    >>> paired_permutation([0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.5, 0.7]).p_value
    0.125
    """
    return _tested(_table(a, b, groups, repeats), n_resamples, seed)[0]


@dataclass(frozen=True, eq=False)
class Evidence:
    """All that is to be said about one paired comparison a - b; lengths and means in the units of the values.

    test: the sign-flip test and the *confidence interval* of the mean difference, which is centred on it.
    null_low, null_high: where 95 % of the means lie if there is no difference: an interval around 0, to be left by the
        observed difference and not to be mistaken for its confidence interval (Linear prototypes, Fig. 3, LP-5).
    wilcoxon_p: two-sided signed-rank test; NaN where no unit differs.
    effect_size: mean over standard deviation of the differences (Cohen's d_z); NaN where they are all equal.
    rank_biserial: (W+ - W-)/(W+ + W-): 1 where every unit gains, -1 where every one loses, NaN where none differs.
    skewness: of the differences; 0 where they lie evenly around their mean, NaN where they are all equal.
    null, bootstrap: (r,) the means of sign-flipped, and of resampled, differences; empty with fewer than two units,
        where everything else is NaN but what :class:`PairedTest` says.
    """

    test: PairedTest
    null_low: float
    null_high: float
    wilcoxon_p: float
    effect_size: float
    rank_biserial: float
    skewness: float
    null: np.ndarray
    bootstrap: np.ndarray


def evidence(
    a: ArrayLike,
    b: ArrayLike,
    groups: ArrayLike | None = None,
    repeats: ArrayLike | None = None,
    *,
    n_resamples: int = 10_000,
    seed: int = 0,
) -> Evidence:
    """Everything about the paired difference a - b; arguments and errors as :func:`paired_permutation`.

    >>> found = evidence([0.5, 0.7, 0.6, 0.9], [0.4, 0.5, 0.5, 0.7])
    >>> found.rank_biserial, found.test.low > 0, found.null_low < 0 < found.null_high
    (1.0, True, True)
    """
    table = _table(a, b, groups, repeats)
    test, null = _tested(table, n_resamples, seed)
    if test.n_units < 2:
        return Evidence(test, *[np.nan] * 6, null, np.empty(0))
    units = table.mean(axis=1)
    bootstrap = _bootstrap(units, n_resamples, seed)
    null_low, null_high = np.quantile(null, (0.025, 0.975))
    return Evidence(test, float(null_low), float(null_high), *_by_rank_and_spread(units), null, bootstrap)


def student(table: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Mean, its standard error and Welch's degrees of freedom, of differences with two sources of chance.

    table: (..., n, m) differences of n groups, two or more, and m trainings. The squared error is s²/n + s'²/m, with
    the variance s² of the groups' means and s'² of the trainings'; one training adds none.

    >>> [round(float(number), 3) for number in student(np.array([[1.0], [2.0], [3.0]]))]  # 1/√3
    [2.0, 0.577, 2.0]
    """
    sides = [means for means in (table.mean(axis=-1), table.mean(axis=-2)) if means.shape[-1] > 1]
    variances = np.stack([means.var(axis=-1, ddof=1) / means.shape[-1] for means in sides])
    total = variances.sum(axis=0)
    parts = sum(v**2 / (means.shape[-1] - 1) for v, means in zip(variances, sides, strict=True))
    freedom = np.divide(total**2, parts, out=np.ones_like(total), where=parts > 0)
    return table.mean(axis=(-2, -1)), np.sqrt(total), freedom


def corrected(p_values: ArrayLike) -> np.ndarray:
    """p values of several tests, corrected for their number by Holm's step-down, as ``multipletests`` of statsmodels.

    That one collects garbage in every call: a sixth of the time of a notebook with many tables. A NaN (a test that
    could not be made) stays one and is not counted.

    >>> corrected([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=np.float64)
    adjusted, known = np.full(p.shape, np.nan), np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)).clip(max=1)
    return adjusted


def could_tell(test: Any, level: float = 0.05) -> Any:
    """Whether so many groups allow a p that would be clear in the first step of Holm's correction.

    test: a row with p_floor and n_tests, or a frame of such rows.
    """
    return test.p_floor * np.fmax(test.n_tests, 1) <= level


def could_show(test: Any, level: float = 0.05) -> Any:
    """The smallest difference, of either sign, that t could have found clear in the first step of Holm's correction.

    With the error that the 95 % interval implies, h / t(0.975) of half its length h: t(1 − level/(2 n_tests)) times
    that error. It is in the units of the interval; infinite where no difference could have been clear, as p, at least
    p_floor, is too large in any case; and NaN where the interval has no length: equal differences tell no error.

    It is a lower bound. Where p_floor is near level/n_tests the sign flips need nearly all groups to agree, and only a
    larger difference may be clear: 13 points, where this says 12, of ten slides and 24 tests (Kather, notebook 13).

    test: a row with p_floor, n_tests, low, high and n_units, or a frame of such rows; ``freedom`` of
    :class:`PairedTest`, n_units − 1 if there is no such column.

    Three groups, an error of 1: alone, the test shows what leaves 0 outside of its interval.

    >>> from types import SimpleNamespace as Test
    >>> test = {"low": -4.302653, "high": 4.302653, "n_units": 3, "p_floor": 0.01}
    >>> [round(float(could_show(Test(**test, n_tests=n))), 3) for n in (1, 5, 6)]
    [4.303, 9.925, inf]
    """
    n_tests, freedom = np.fmax(test.n_tests, 1), getattr(test, "freedom", test.n_units - 1)
    error = (test.high - test.low) / 2 / stats.t.ppf(0.975, freedom)
    least = stats.t.ppf(1 - level / (2 * n_tests), freedom) * np.where(error > 0, error, np.nan)
    return np.where(could_tell(test, level), least, np.inf)[()]


def _table(a: ArrayLike, b: ArrayLike, groups: ArrayLike | None, repeats: ArrayLike | None) -> np.ndarray:
    """The mean difference of every group with a value in both, a row each, a column for each training."""
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    groups = np.arange(a.size) if groups is None else np.asarray(groups)
    repeats = np.zeros(a.size, dtype=int) if repeats is None else np.asarray(repeats)
    if a.ndim != 1 or not a.shape == b.shape == groups.shape == repeats.shape:
        shapes = ", ".join(str(each.shape) for each in (a, b, groups, repeats))
        raise InputError(f"a, b, groups and repeats have shapes {shapes}; expected the same (q,)")
    if (missing := pd.isna(groups)).any():
        raise InputError(f"row {missing.argmax()} has no group")
    means = pd.Series(a - b).groupby([groups, repeats]).mean().dropna().unstack()
    if (gaps := means.isna().any(axis=1)).any():
        raise InputError(f"group {gaps.idxmax()} has no value in some of the {means.shape[1]} trainings")
    return means.to_numpy()


def _tested(table: np.ndarray, n_resamples: int, seed: int) -> tuple[PairedTest, np.ndarray]:
    """The test of the mean of differences (groups, trainings), and the means of sign-flipped ones."""
    n, n_seeds = len(table), max(table.shape[1], 1)
    units = table.mean(axis=1) if n else np.empty(0)
    if n < 2:
        difference = float(units[0]) if n else np.nan
        return PairedTest(difference, np.nan, p_floor=1.0, n_units=n, low=np.nan, high=np.nan, n_seeds=n_seeds), units[
            :0
        ]
    p_value, p_floor, null = _by_flips(units, n_resamples, seed)
    mean, error, freedom = student(table)
    half = stats.t.ppf(0.975, freedom) * error
    p_seeds = 2 * stats.t.sf(np.abs(mean) / error, freedom) if error > 0 and _differ(table.mean(axis=0)) else np.nan
    test = PairedTest(
        difference=float(mean),
        p_value=float(np.fmax(p_value, p_seeds)),
        p_floor=p_floor,
        n_units=n,
        low=float(mean - half),
        high=float(mean + half),
        n_seeds=n_seeds,
        p_seeds=float(p_seeds),
        freedom=float(freedom),
    )
    return test, null


def _by_flips(units: np.ndarray, n_resamples: int, seed: int) -> tuple[float, float, np.ndarray]:
    """Two-sided p of the mean, the smallest p that there could be, and the means of sign-flipped units.

    p of ``stats.permutation_test`` to the bit, in a fourth to a sixteenth of its time: that one shuffles a pair for
    every sign, most of the time of a notebook with thousands of lesions. Means that differ by rounding count as equal.
    """
    flips = _flips(len(units), n_resamples, seed)
    null = np.concatenate([np.where(kept, units[:, None], -units[:, None]).mean(axis=0) for kept in flips])
    mean = units.mean()
    rounding = 100 * np.finfo(float).eps * abs(mean)
    itself = int(2 ** len(units) > n_resamples)  # random patterns need not hold the observed one, which counts too
    tail = itself + min(np.count_nonzero(null <= mean + rounding), np.count_nonzero(null >= mean - rounding))
    n_patterns = itself + len(null)
    return min(1.0, 2 * tail / n_patterns), 2 / n_patterns, null


def _flips(n: int, n_resamples: int, seed: int) -> Iterator[np.ndarray]:
    """Which of n signs are kept, (n, patterns), some patterns at a time: all 2^n if they are no more than n_resamples,
    else so many random ones, by the lowest bit of every 32 that the generator draws.
    """
    if 2**n <= n_resamples:
        yield np.arange(2**n) >> np.arange(n)[::-1, None] & 1 == 0
        return
    generator, at_once = (
        np.random.default_rng(seed).bit_generator,
        max(2, AT_ONCE // n // 2 * 2),
    )  # even: draws hold two
    for start in range(0, n_resamples, at_once):
        size = min(at_once, n_resamples - start)
        draws = generator.random_raw(-(-size * n // 2)).view(np.uint32)[: size * n]
        yield np.ascontiguousarray((draws & 1 == 1).reshape(size, n).T)


def _differ(values: np.ndarray) -> bool:
    """Whether values are several, and not all alike but for rounding."""
    return len(values) > 1 and np.ptp(values) > 1e-12 * np.abs(values).max()


def _bootstrap(units: np.ndarray, n_resamples: int, seed: int) -> np.ndarray:
    """The means of ``units`` drawn again with replacement; scipy holds some arrays of batch × units, 80 MB each."""
    size = {"n_resamples": n_resamples, "batch": max(1, 10_000_000 // len(units))}
    generator = np.random.default_rng(seed)
    return stats.bootstrap(
        (units,), np.mean, method="percentile", random_state=generator, **size
    ).bootstrap_distribution


def _by_rank_and_spread(units: np.ndarray) -> tuple[float, float, float, float]:
    """Wilcoxon's p, Cohen's d_z, the rank-biserial correlation and the skewness of the differences."""
    spread = units.std(ddof=1)
    effect, skewness = (units.mean() / spread, stats.skew(units)) if _differ(units) else (np.nan, np.nan)
    moved = units[units != 0]
    if len(moved) == 0:
        return np.nan, float(effect), np.nan, float(skewness)
    ranks = stats.rankdata(np.abs(moved))
    by_rank = float(ranks @ np.sign(moved) / ranks.sum())
    return float(stats.wilcoxon(moved).pvalue), float(effect), by_rank, float(skewness)
