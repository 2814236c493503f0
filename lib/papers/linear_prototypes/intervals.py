"""How often an interval holds and a test is right, in experiments of which the truth is known."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from lib.metrics import significance
from lib.study.columns import Column, Layout

RESAMPLES = 999
"""Of every experiment; all experiments of a size share the draws of who is resampled, or whose sign is flipped."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Gains of a mean of 0 and a standard deviation of 1, of a given shape."""

Form = Callable[[np.ndarray, np.random.Generator], tuple[np.ndarray, np.ndarray]]
"""Gains (times, n) of so many experiments with n groups → both limits (times,), infinite where there are none."""


def normal(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Gains with a bell's shape."""
    return generator.normal(size=shape)


def skewed(generator: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Gains most of which are small and a few large, with a skewness of 2 (an exponential distribution).

    AP ends at 100 %, so a patient who has it has nothing to gain. 2 is about the most that we saw: the gains of slides,
    patients and lesions by scaling, and by a linear head, had -1.2 to 2.0 on Kather, BreakHis and HAM10000 (texture).
    """
    return generator.exponential(size=shape) - 1


def student(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean ± t · s/√n."""
    mean, error, freedom = significance.student(x[:, :, None])
    half = stats.t.ppf(0.975, freedom) * error
    return mean - half, mean + half


def percentile(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The middle 95 % of the means of groups drawn again with replacement."""
    return _tails(x @ _weights(x.shape[1], generator).T)


def bca(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same, its ends moved for bias and skewness (Efron's bias-corrected and accelerated bootstrap)."""
    mean, c = x.mean(axis=1, keepdims=True), x - x.mean(axis=1, keepdims=True)
    means = np.sort(x @ _weights(x.shape[1], generator).T, axis=1)
    tie = 1e-9 * x.std(axis=1, keepdims=True)  # sums of the same gains in another order
    bias = stats.norm.ppf(((means < mean - tie).mean(axis=1) + (means <= mean + tie).mean(axis=1)) / 2)
    acceleration = (c**3).sum(axis=1) / (6 * (c**2).sum(axis=1) ** 1.5)
    ends = []
    for z in bias + stats.norm.ppf([[0.025], [0.975]]):
        place = stats.norm.cdf(bias + z / (1 - acceleration * z)) * (RESAMPLES - 1)
        ends.append(np.take_along_axis(means, np.rint(place).astype(int)[:, None], axis=1)[:, 0])
    return ends[0], ends[1]


def studentised(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Mean ± quantiles of t, of which every resample has its own (bootstrap-t)."""
    c, weights = x - x.mean(axis=1, keepdims=True), _weights(x.shape[1], generator)
    means = c @ weights.T
    spread, own = x.std(axis=1, keepdims=True), c**2 @ weights.T - means**2
    own[own < 1e-12 * spread**2] = 0  # one group drawn n times
    with np.errstate(divide="ignore"):
        low, high = _tails(means / np.sqrt(own))
    return x.mean(axis=1) - high * spread[:, 0], x.mean(axis=1) - low * spread[:, 0]


def permutation(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Every gain that two-sided sign flips at 5 % do not reject.

    Flipping a set of groups makes the mean of x - θ larger exactly where the mean of that set is below θ, so the limits
    are values among the means of all sets (Hartigan 1969), or of random ones.
    """
    n = x.shape[1]
    every = 2**n <= 10_000
    sets = np.indices([2] * n).reshape(n, -1).T if every else generator.integers(0, 2, (RESAMPLES, n))
    sets = sets[sets.any(axis=1)]
    return _tails(x @ (sets / sets.sum(axis=1, keepdims=True)).T)


def null(x: np.ndarray, generator: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The middle 95 % of the means of gains whose signs are flipped: it lies around 0 (LP-5)."""
    return _tails(x @ generator.choice([-1, 1], (RESAMPLES, x.shape[1])).T / x.shape[1])


FORMS: Mapping[str, Form] = {
    "percentile bootstrap": percentile,
    "BCa bootstrap": bca,
    "studentised bootstrap": studentised,
    "Student's t": student,
    "permutation limits": permutation,
}
GAINS: Mapping[str, Draw] = {"normal": normal, "skewed": skewed}


def coverage(
    forms: Mapping[str, Form],
    gains: Mapping[str, Draw],
    sizes: Sequence[int],
    times: int,
    *,
    gain: float = 0.0,
    seed: int = 0,
) -> pd.DataFrame:
    """How often each form holds the true gain, and how wide it is.

    Args:
        forms: name → form. gains: name → how they are drawn. sizes: groups of an experiment.
        times: experiments of each size and draw.
        gain: the true one, in standard deviations of the groups' gains, like the width.
        seed: of everything.

    Returns:
        Columns gains, interval, groups, share (percent of the experiments whose interval holds ``gain``), low and high
        (95 % interval of the share, Wilson), width (median); NaN where a form has no finite limits.
    """
    lines = []
    for (kind, draw), n in product(gains.items(), sizes):
        x = gain + draw(np.random.default_rng(seed), (times, n))
        for name, form in forms.items():
            low, high = form(x, np.random.default_rng(seed + 1))
            line = {"gains": kind, "interval": name, "groups": n}
            lines.append(line | _held(low, high, gain))
    return pd.DataFrame(lines)


def _held(low: np.ndarray, high: np.ndarray, gain: float) -> dict[str, float]:
    if not np.isfinite([low, high]).all():
        return dict.fromkeys(("share", "low", "high", "width"), np.nan)
    return share((low <= gain) & (gain <= high)) | {"width": float(np.median(high - low))}


def share(yes: np.ndarray) -> dict[str, float]:
    """In how many of 100 experiments: share, low and high (its 95 % interval, Wilson).

    >>> {name: round(value) for name, value in share(np.arange(100) < 95).items()}
    {'share': 95, 'low': 89, 'high': 98}
    """
    low, high = proportion_confint(np.count_nonzero(yes), len(yes), method="wilson")
    return {"share": 100 * float(np.mean(yes)), "low": 100 * float(low), "high": 100 * float(high)}


def _weights(n: int, generator: np.random.Generator) -> np.ndarray:
    """How often each of n groups is drawn in each resample, divided by n."""
    return generator.multinomial(n, np.full(n, 1 / n), RESAMPLES) / n


def _tails(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What leaves 2.5 % of ``values`` (times, r), and the observed one, outside at each end; infinite if r is small."""
    times, r = values.shape
    outside = int(0.025 * (r + 1))
    if outside == 0:
        return np.full(times, -np.inf), np.full(times, np.inf)
    parts = np.partition(values, (outside - 1, r - outside), axis=1)
    return parts[:, outside - 1], parts[:, r - outside]


COVERAGE = Layout(
    [
        Column("gains"),
        Column("95 % interval", "interval"),
        Column("holds, {} groups", "share", "1 %", over="groups"),
        Column("width, {}", "width", over="groups"),
    ],
    by=("gains", "interval"),
)


def coverage_caption(rows: pd.DataFrame, times: int) -> str:
    """What the table and the picture show."""
    text = (
        f"{times:,} made-up experiments of each number of groups, the truth known; {RESAMPLES} resamples each. Width: "
        "median, in standard deviations of a group's gain."
    )
    if "skewed" in set(rows["gains"]):
        text += " Skewed: exponential, skewness 2."
    if rows["share"].isna().any():
        text += " A dash, or no point: no finite limits with so few groups."
    return text


FLIPS, TRAININGS, OURS = "sign flips of the groups", "t of the trainings", "the larger of flips and t with both"
TESTS = (FLIPS, TRAININGS, "the larger of flips and t of the trainings", "t with both variances", OURS)


def alarms(
    ratios: Sequence[float], times: int, *, n_groups: int = 10, n_trainings: int = 5, seed: int = 0
) -> pd.DataFrame:
    """How often each of :data:`TESTS` says p ≤ 0.05 of two methods that are equally good.

    Args:
        ratios: standard error that the trainings add to the mean, in those of the groups.
        times: experiments of each ratio. n_groups, n_trainings: of an experiment; a group's gains differ a
            little from training to training.
        seed: of everything.

    Returns:
        Columns ratio, test, share (percent of the experiments; 5 is right), low and high (95 % interval, Wilson).
    """
    lines = []
    for ratio in ratios:
        generator = np.random.default_rng(seed)
        shift = ratio * np.sqrt(n_trainings / n_groups) * generator.normal(size=(times, 1, n_trainings))
        gains = generator.normal(size=(times, n_groups, 1)) + shift
        gains += 0.5 * generator.normal(size=(times, n_groups, n_trainings))
        for test, p in _p_values(gains).items():
            lines.append({"ratio": ratio, "test": test} | share(p <= 0.05))
    return pd.DataFrame(lines)


def _p_values(gains: np.ndarray) -> dict[str, np.ndarray]:
    """p of each test for gains (times, groups, trainings); all sign patterns are tried."""
    n = gains.shape[1]
    signs = 1 - 2 * np.indices([2] * n).reshape(n, -1)
    mean, error, freedom = significance.student(gains)
    far = np.abs(gains.mean(axis=2) @ signs / n) >= np.abs(mean)[:, None] - 1e-12
    flips, trainings = far.mean(axis=1), stats.ttest_1samp(gains.mean(axis=1), 0, axis=1).pvalue
    both = 2 * stats.t.sf(np.abs(mean) / error, freedom)
    values = flips, trainings, np.maximum(flips, trainings), both, np.maximum(flips, both)
    return dict(zip(TESTS, values, strict=True))


ALARMS = Layout([Column("test"), Column("ratio {}", "share", "1 %", over="ratio")], by=("test",))


def alarms_caption(times: int) -> str:
    """What the table and the picture show."""
    return (
        f"{times:,} made-up experiments per ratio, 10 groups and 5 trainings each, of two equally good methods; how "
        "many have p ≤ 0.05 (5 % is right). Ratio: standard error of the mean gain that comes from the trainings, "
        "over the one from the groups."
    )
