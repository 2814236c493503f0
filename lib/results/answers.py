"""Answers of methods as rows: means over splits, health of the training, paired tests."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.results import paired
from lib.results.markdown import markdown_table, percent
from lib.training.methods import Answer

Answers = Mapping[str, Sequence[Answer]]
"""Method → its answer on each split."""


def values(found: Mapping[str, Answers]) -> pd.DataFrame:
    """Mean and spread over the splits of what a rule, or a gallery, gave; percent.

    Columns rule, method, metric, k, ours, spread (standard deviation over the splits), n_queries, n_without_relevant,
    and the health of the training: loss (mean over the splits), rim (the largest share, percent) and steps.
    """
    frames = [
        answer.per_query.mean().assign(rule=rule, method=method, split=number, **vars(answer.health))
        for rule, methods in found.items()
        for method, answers in methods.items()
        for number, answer in enumerate(answers)
    ]
    rows = pd.concat(frames, ignore_index=True)
    rows["value"] *= 100
    grouped = rows.groupby(["rule", "method", "metric", "k"], sort=False)
    return grouped.agg(
        ours=("value", "mean"),
        spread=("value", "std"),
        n_queries=("n_queries", "sum"),
        n_without_relevant=("n_without_relevant", "sum"),
        loss=("loss", "mean"),
        rim=("rim", "max"),
        steps=("steps", "max"),
    ).reset_index()


def layout(table: pd.DataFrame, what: str = "folds", metric: str = "ap_min") -> str:
    """A row per method and rule, a column per k, as Markdown; ``what`` heads the column of the rule."""
    lines = []
    for (rule, method), rows in table[table["metric"] == metric].groupby(["rule", "method"], sort=False):
        cells = {what: rule, "method": method}
        cells |= {f"MAP@{row.k}": f"{percent(row.ours)} ± {percent(row.spread)}" for row in rows.itertuples()}
        cells |= {"queries": rows["n_queries"].iloc[0], "left out": rows["n_without_relevant"].iloc[0]}
        lines.append(cells | health(rows.iloc[0]))
    return markdown_table(pd.DataFrame(lines))


def health(row: pd.Series) -> dict[str, str]:
    """The health of a row of :func:`values` as cells; dashes where nothing was trained.

    >>> health(pd.Series({"loss": 0.25, "rim": 0.0, "steps": 100}))
    {'last loss': '0.250', 'at the rim': '0.0 %', 'steps': '100'}
    """
    return {
        "last loss": "–" if np.isnan(row["loss"]) else f"{row['loss']:.3f}",
        "at the rim": "–" if np.isnan(row["rim"]) else f"{row['rim']:.1f} %",
        "steps": f"{row['steps']:.0f}" if row["steps"] else "–",
    }


def compare(
    found: Mapping[str, Answers],
    groups: np.ndarray,
    pairs: Sequence[tuple[str, str]],
    ks: Sequence[int],
    *,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired tests between methods on the same queries; groups of images are the unit.

    Args:
        found: per fold rule, or gallery, the answers of each method.
        groups: (n,) the group (patient, lesion, source image) of each image.
        pairs: names of methods, which is compared with which.
        ks: list lengths.
        seed: of the random sign flips.

    Returns:
        One row per rule, pair and k: rule, first, second, k, difference (first minus second, percentage points),
        p_value, p_floor (the smallest p that this test can give), n_units, low and high (95 % interval), n_tests and
        p_holm (p corrected for all rows).
    """
    lines = []
    for rule, methods in found.items():
        for first, second in pairs:
            units = np.concatenate([groups[answer.split.test] for answer in methods[first]])
            for k in ks:
                a, b = ([answer.per_query for answer in methods[name]] for name in (first, second))
                names = {"rule": rule, "first": first, "second": second, "k": k}
                lines.append(names | paired.difference(a, b, units, k, seed=seed))
    return paired.together(lines)
