"""Answers of methods as rows: means over splits, health of the training, paired tests."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.metrics.votes import KS, macro_f1
from lib.study.columns import printed
from lib.study.markdown import markdown_table, percent
from lib.study.scores import HEALTH
from lib.training.experiment import Voted
from lib.training.methods import Health

CLASS_MEAN = "Class mean: over all queries of all folds, averaged per class first."
"""What captions say of a class mean, wherever one stands."""


def layout(table: pd.DataFrame, what: str = "folds", metric: str = "ap_min") -> str:
    """A row per method and rule, a column per k, as Markdown; ``what`` heads the column of the rule.

    Beside MAP@k of the smallest and the largest k stands the mean over classes; ± is over folds, "± seeds" over
    trainings, at the largest k. The last row of a rule is chance.
    """
    lines = []
    for rule, of_rule in table[table["metric"] == metric].groupby("rule", sort=False):
        for method, rows in of_rule.groupby("method", sort=False):
            last = rows.iloc[-1]
            cells = {what: rule, "method": method} | _scores(rows, "ours") | class_cells(rows)
            cells |= {"± seeds": "–" if np.isnan(last["seeds_spread"]) else f"{percent(last['seeds_spread'])}"}
            cells |= {"queries": last["n_queries"], "left out": last["n_without_relevant"]}
            cells |= health(last)
            lines.append(cells)
        lines.append(dict.fromkeys(cells, "–") | {what: rule, "method": "chance"} | _scores(rows, "chance"))
    return markdown_table(pd.DataFrame(lines))


def _scores(rows: pd.DataFrame, column: str) -> dict[str, str]:
    """MAP@k as cells: ours ± the spread over folds where there are several, chance without."""
    spread = {row.k: f" ± {percent(row.spread)}" if column == "ours" else "" for row in rows.itertuples()}
    return {f"MAP@{row['k']}": f"{percent(row[column])}{spread[row['k']]}" for _, row in rows.iterrows()}


def class_cells(rows: pd.DataFrame) -> dict[str, str]:
    """The mean over classes as cells, at the smallest and the largest k."""
    ends = rows[rows["k"].isin([rows["k"].min(), rows["k"].max()])]
    return {f"class mean@{row.k}": percent(row.class_mean) for row in ends.itertuples()}


def health(row: pd.Series) -> dict[str, str]:
    """The health of a row of :func:`values` as cells; dashes where nothing was trained.

    >>> health(pd.Series({"loss": 0.25, "rim": 0.0, "steps": 100}))
    {'last loss': '0.250', 'at the rim': '0.0 %', 'steps': '100'}
    """
    return {
        "last loss": printed(row["loss"], "3"),
        "at the rim": printed(row["rim"], "1 %"),
        "steps": f"{row['steps']:.0f}" if row["steps"] else "–",
    }


def ended(several: Sequence[Health]) -> dict[str, float]:
    """The health of several trainings as one: columns of a row of :func:`values`.

    >>> ended([Health(0.25, 0.0, 100), Health(0.75, 2.0, 100)])
    {'loss': 0.5, 'rim': 2.0, 'steps': 100.0}
    """
    return pd.DataFrame([vars(one) for one in several]).agg(HEALTH).to_dict()


def chance_said(rows: pd.DataFrame) -> str:
    """Chance at the smallest and the largest k of rows of :func:`values`, for a caption.

    >>> chance_said(pd.DataFrame({"k": [1, 20], "chance": [12.5, 3.52]}))
    'chance is 12.5 at k = 1 and 3.5 at k = 20'
    """
    at = rows.groupby("k")["chance"].mean()
    return f"chance is {' and '.join(f'{at[k]:.1f} at k = {k}' for k in dict.fromkeys([at.index[0], at.index[-1]]))}"


def votes(found: Mapping[str, Mapping[str, Sequence[Voted]]]) -> pd.DataFrame:
    """Macro F1 of the vote of the nearest images, over the classes that can be answered; percent.

    A class can be answered in an archive if some query of it has an answer there, an image of its class. Queries
    without one are left out and counted, as everywhere: they are no false alarms either, as every method would have
    them. Every other query counts once a training, all folds together.

    found: archive → method → one for each split, as :func:`lib.training.experiment.votes`.

    Returns:
        Columns archive, method, k (the first answer, the majority of the first 3 and 5), macro_f1 (mean over
        trainings; NaN where no query has an answer), seeds_spread (their standard deviation), n_seeds, n_queries (all
        of them), n_without_relevant, n_classes (those of the mean).
    """
    lines = []
    for archive, method, several in ((a, name, of) for a, methods in found.items() for name, of in methods.items()):
        asked = pd.concat(
            pd.DataFrame(one.votes, columns=list(KS)).assign(label=one.classes, repeat=one.repeat) for one in several
        )
        n_without = sum(one.n_without_relevant for one in several if one.repeat == 0)
        counts = {"n_seeds": len({one.repeat for one in several}), "n_without_relevant": n_without}
        counts |= {"n_queries": int((asked["repeat"] == 0).sum()) + n_without, "n_classes": asked["label"].nunique()}
        for k in KS:
            scores = pd.Series([100 * macro_f1(part["label"], part[k]) for _, part in asked.groupby("repeat")])
            cells = {"archive": archive, "method": method, "k": k}
            lines.append(cells | {"macro_f1": scores.mean(), "seeds_spread": scores.std()} | counts)
    return pd.DataFrame(lines)


VOTES = {1: "first answer", 3: "majority of 3", 5: "majority of 5"}
"""How the votes of :data:`lib.metrics.votes.KS` are called."""


def votes_layout(table: pd.DataFrame) -> str:
    """The table of :func:`votes` as Markdown: a row per archive and method, ± over trainings."""
    lines = []
    for (archive, method), rows in table.groupby(["archive", "method"], sort=False):
        cells: dict[str, object] = {"archive": archive, "method": method}
        for row in rows.itertuples():
            seeds = "" if np.isnan(row.seeds_spread) else f" ± {percent(row.seeds_spread)}"
            cells[f"macro F1, {VOTES[row.k]}"] = f"{percent(row.macro_f1)}{seeds}"
        first = rows.iloc[0]
        cells |= {"classes": first["n_classes"], "queries": first["n_queries"]}
        lines.append(cells | {"left out": first["n_without_relevant"]})
    return markdown_table(pd.DataFrame(lines))
