"""How often a nominal 95 % interval of a mean gain holds the truth, in experiments of which the truth is known."""

from collections.abc import Callable, Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from lib.metrics import significance
from lib.papers.linear_prototypes.significance import figures
from lib.results.markdown import markdown_table
from lib.results.shown import Figure, Table

RESAMPLES = 999
"""Of every experiment; all experiments of a size share the draws of who is resampled, or whose sign is flipped."""

Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]
"""Gains of a mean of 0 and a standard deviation of 1, of the shape that is asked for."""

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


def worst(table: pd.DataFrame) -> pd.DataFrame:
    """The share of each interval (row) and number of groups (column) for the gains that it holds least often."""
    found = table.groupby(["interval", "groups"])["share"].min().unstack()
    return found.reindex(table["interval"].unique())


def verdicts(table: pd.DataFrame) -> list[str]:
    """A sentence per number of groups: which form comes closest to 95 of 100, and who has no limits."""
    return [_verdict(n, shares) for n, shares in worst(table).items()]


def _verdict(n: int, shares: pd.Series) -> str:
    closest = (shares - 95).abs().idxmin()
    rest = [f"{name} {share:.0f}" for name, share in shares.drop(closest).dropna().items()]
    none = shares.index[shares.isna()]
    unknown = f"; no finite limits: {', '.join(none)}" * bool(len(none))
    found = f"closest to 95 is {closest}, {shares[closest]:.0f} of 100; {', '.join(rest)}{unknown}"
    return f"{n} groups, the worse kind of gains: {found}"


def layout(table: pd.DataFrame) -> str:
    """A row for each kind of gains and interval; columns: share and median width by number of groups."""
    lines = []
    for (kind, name), part in table.groupby(["gains", "interval"], sort=False):
        cells = {f"holds, {row.groups} groups": _cell(row.share, "{:.1f} %") for row in part.itertuples()}
        cells |= {f"width, {row.groups}": _cell(row.width, "{:.2f}") for row in part.itertuples()}
        lines.append({"gains": kind, "95 % interval": name} | cells)
    return markdown_table(pd.DataFrame(lines))


def _cell(value: float, form: str) -> str:
    return "–" if np.isnan(value) else form.format(value)


def caption(rows: pd.DataFrame, times: int) -> str:
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


def table(rows: pd.DataFrame, times: int) -> Table:
    """The table of :func:`coverage`."""
    return Table("how often a 95 % interval holds", rows, caption(rows, times), markdown=layout(rows))


def figure(rows: pd.DataFrame, times: int) -> Figure:
    """The picture of :func:`coverage`."""
    text = (
        f"{caption(rows, times)} Dotted: 95 %. Bars: 95 % interval of the share. "
        "Points of one number of groups are shifted sideways to be seen."
    )
    return Figure("how often a 95 % interval holds", rows, text, figure=figures.coverage(rows))
