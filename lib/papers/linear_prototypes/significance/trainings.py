"""Other groups could have come, and training begun otherwise: how often a test finds what is not there."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy import stats

from lib.metrics.significance import student
from lib.papers.linear_prototypes.significance import figures
from lib.papers.linear_prototypes.significance.intervals import share
from lib.results.markdown import markdown_table
from lib.results.shown import Figure, Table

FLIPS, TRAININGS, OURS = "sign flips of the groups", "t of the trainings", "the larger of flips and t with both"
TESTS = (FLIPS, TRAININGS, "the larger of flips and t of the trainings", "t with both variances", OURS)


def alarms(
    ratios: Sequence[float], times: int, *, n_groups: int = 10, n_trainings: int = 5, seed: int = 0
) -> pd.DataFrame:
    """How often each of :data:`TESTS` says p ≤ 0.05 of two methods that are equally good.

    Args:
        ratios: standard error that the trainings add to the mean, in those of the groups.
        times: experiments of each ratio. n_groups, n_trainings: of an experiment; every group is asked of each
            training, and differs a little from one to the other by itself.
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
    mean, error, freedom = student(gains)
    far = np.abs(gains.mean(axis=2) @ signs / n) >= np.abs(mean)[:, None] - 1e-12
    flips, trainings = far.mean(axis=1), stats.ttest_1samp(gains.mean(axis=1), 0, axis=1).pvalue
    both = 2 * stats.t.sf(np.abs(mean) / error, freedom)
    found = (flips, trainings, np.maximum(flips, trainings), both, np.maximum(flips, both))
    return dict(zip(TESTS, found, strict=True))


def verdicts(rows: pd.DataFrame) -> list[str]:
    """A sentence per test: how often it finds what is not there, at worst."""
    worst = rows.loc[rows.groupby("test", sort=False)["share"].idxmax()]
    return [
        f"{row.test}: at worst {row.share:.0f} false alarms of 100 (at a ratio of {row.ratio:g})"
        for row in worst.itertuples()
    ]


def layout(rows: pd.DataFrame) -> str:
    """A row per test, a column per ratio, as Markdown."""
    wide = rows.pivot_table(index="test", columns="ratio", values="share", sort=False)
    wide.columns = [f"ratio {ratio:g}" for ratio in wide.columns]
    return markdown_table(wide.map("{:.1f} %".format).reset_index())


def caption(times: int) -> str:
    """What the table and the picture show."""
    return (
        f"{times:,} made-up experiments per ratio, 10 groups and 5 trainings each, of two equally good methods; how "
        "many have p ≤ 0.05 (5 % is right). Ratio: standard error of the mean gain that comes from the trainings, "
        "over the one from the groups."
    )


def table(rows: pd.DataFrame, times: int) -> Table:
    """The table of :func:`alarms`."""
    return Table("false alarms with several trainings", rows, caption(times), markdown=layout(rows))


def figure(rows: pd.DataFrame, times: int) -> Figure:
    """The picture of :func:`alarms`."""
    text = (
        f"{caption(times)} Dotted: 5 %. Bars: 95 % interval of the share. "
        "Points of one ratio are shifted sideways to be seen."
    )
    return Figure("false alarms with several trainings", rows, text, figure=figures.alarms(rows))
