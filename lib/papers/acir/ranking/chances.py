"""Wilcoxon's test over queries, as in the paper, and how often it sees a difference where there is none."""

import itertools
from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import stats

from lib.metrics.significance import paired_permutation
from lib.results.markdown import markdown_table
from lib.results.paired import p_cell

LEVEL = 0.05


def wilcoxon(differences: np.ndarray) -> np.ndarray:
    """Two-sided p of the signed-rank test of each row of ``differences: (r, q)``, by its normal approximation.

    Differences of 0 are left out, ties share a mean rank, as in :func:`scipy.stats.wilcoxon`; 1 for a row of zeros. Of
    many rows with the same absolute values, as sign flips are, the ranks are taken once.
    """
    absolute = np.abs(differences[0])
    if not np.array_equal(np.abs(differences), np.broadcast_to(absolute, differences.shape)):
        raise ValueError("the rows differ in more than their signs")
    ranks = np.zeros(len(absolute))
    ranks[absolute > 0] = stats.rankdata(absolute[absolute > 0])
    width = np.sqrt((ranks**2).sum())
    z = np.sign(differences) @ ranks / width if width else np.zeros(len(differences))
    return 2 * stats.norm.sf(np.abs(z))


def shift(differences: np.ndarray) -> float:
    """The difference that Wilcoxon's test is about: the median of the means of all pairs (Hodges and Lehmann).

    >>> shift(np.array([0.0, 0.0, 0.0, 10.0])), shift(np.array([1.0, 2.0, 6.0]))
    (0.0, 2.75)
    """
    first, second = np.triu_indices(len(differences))
    return float(np.median((differences[first] + differences[second]) / 2))


def false_alarms(differences: np.ndarray, groups: np.ndarray, n: int = 2000, seed: int = 0) -> dict[str, float]:
    """How often Wilcoxon's test over queries says p < 0.05 where no method is better, percent of ``n`` permutations.

    Args:
        differences: (q,) of two methods, one value a query.
        groups: (q,) whose query it is.
        n, seed: permutations, in which the two methods change places at random. The :func:`shift` is taken out before,
            so that a group agrees with itself only as far as it differs from others.

    Returns:
        p: of the test as it is made. by_query: alarms where they change places for every query by itself, which is
        what the test assumes. by_group: where they do so for all queries of a group at once, as patients differ.
        p_groups, p_floor: of the sign flips of groups, and their smallest p. n_groups.
    """
    rng = np.random.default_rng(seed)
    _, of = np.unique(groups, return_inverse=True)
    signs = {"by_query": rng.choice([-1.0, 1.0], (n, len(differences)))}
    signs["by_group"] = rng.choice([-1.0, 1.0], (n, of.max() + 1))[:, of]
    centred = differences - shift(differences)
    alarms = {name: 100 * float((wilcoxon(some * centred) < LEVEL).mean()) for name, some in signs.items()}
    fair = paired_permutation(differences, np.zeros_like(differences), groups, seed=seed)
    return (
        {"p": float(wilcoxon(differences[None])[0])}
        | alarms
        | {
            "p_groups": fair.p_value,
            "p_floor": fair.p_floor,
            "n_groups": fair.n_units,
        }
    )


def table(compared: Mapping[str, pd.Series], groups: np.ndarray, seed: int = 0) -> pd.DataFrame:
    """:func:`false_alarms` of several comparisons: name → difference of every query, by its image; groups: (n,).

    A query whose class the archive does not have has no difference, and is left out.
    """
    answered = {name: d.dropna() for name, d in compared.items()}
    return pd.DataFrame(
        [
            {"comparison": name} | false_alarms(d.to_numpy(), groups[d.index.to_numpy()], seed=seed)
            for name, d in answered.items()
        ]
    )


def between_trainings(values: pd.DataFrame, bits: int) -> pd.DataFrame:
    """How often the test sees a difference between two trainings of one method, of which none is better.

    values: of :func:`lib.papers.acir.ranking.experiment.measured`; ranked by Hamming distance alone. Columns method,
    n_pairs, n_alarms (p < 0.05).
    """
    part = values[(values["bits"] == bits) & (values["ranking"] == "Hamming alone")]
    rows = []
    for method, own in part.groupby("method", sort=False):
        by = own.pivot_table(index="query", columns="repeat", values="ap_min", sort=True)
        pairs = [(by[a] - by[b]).to_numpy() for a, b in itertools.combinations(by.columns, 2)]
        alarms = sum(bool(wilcoxon(d[None])[0] < LEVEL) for d in pairs)
        rows.append({"method": method, "n_pairs": len(pairs), "n_alarms": alarms})
    return pd.DataFrame(rows)


def trainings_sentence(rows: pd.DataFrame) -> str:
    """The same in words."""
    told = ", ".join(f"{row.method} {row.n_alarms} of {row.n_pairs}" for row in rows.itertuples())
    return (
        f"of pairs of trainings that differ in their seed alone it tells apart, as if the method were another: {told}"
    )


def alarms_layout(rows: pd.DataFrame) -> str:
    """Wilcoxon over queries and its false alarms, as Markdown."""
    lines = [
        {
            "difference of mAP": row.comparison,
            "Wilcoxon over queries, p": f"{row.p:.2g}",
            "sign flips of groups, p": p_cell(row.p_groups, row.p_floor),
            "false alarms, queries permuted": f"{row.by_query:.1f} %",
            "false alarms, groups permuted": f"{row.by_group:.1f} %",
        }
        for row in rows.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def alarms_sentence(rows: pd.DataFrame) -> str:
    """How far Wilcoxon's test over queries is from the 5 % that it promises."""
    only = int(((rows["p"] < 0.05) & (rows["p_groups"] >= 0.05)).sum())
    return (
        f"where no method is better, Wilcoxon's test over queries sees a difference in {rows['by_query'].min():.0f} to "
        f"{rows['by_query'].max():.0f} % of permutations of queries, and in {rows['by_group'].min():.0f} to "
        f"{rows['by_group'].max():.0f} % of those that keep the {rows['n_groups'].iloc[0]} groups together; of "
        f"{len(rows)} comparisons, clear to it and not to the sign flips of groups (p < 0.05, not corrected): {only}"
    )
