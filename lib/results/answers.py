"""Answers of methods as rows: means over splits, health of the training, paired tests."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.metrics.retrieval import PerQuery, together
from lib.metrics.votes import KS, macro_f1
from lib.results import differences
from lib.results.markdown import markdown_table, percent
from lib.training.experiment import Voted
from lib.training.methods import Answer, Health

Answers = Mapping[str, Sequence[Answer]]
"""Method → its answer on each split."""


KEYS = ["rule", "method", "metric", "k"]
HEALTH = {"loss": "mean", "rim": "max", "steps": "max"}
"""How the health of several trainings is told as one."""


def values(found: Mapping[str, Answers]) -> pd.DataFrame:
    """Mean and spread over splits and trainings of what a rule, or a gallery, gave; percent.

    Columns rule, method, metric, k, ours; spread (standard deviation over the folds, of the means over trainings);
    seeds_spread (over the trainings, of the means over folds; NaN where there is one) and n_seeds; class_mean (of
    :func:`class_means`), chance and class_chance (the same two of a gallery in random order); n_queries,
    n_without_relevant; and the health of the training: loss (mean), rim (the largest share, percent) and steps.
    """
    frames = [
        answer.per_query.mean().assign(
            rule=rule, method=method, fold=answer.split.fold, repeat=answer.split.repeat, **vars(answer.health)
        )
        for rule, methods in found.items()
        for method, answers in methods.items()
        for answer in answers
    ]
    rows = pd.concat(frames, ignore_index=True)
    rows[["value", "chance"]] *= 100
    first = rows["repeat"] == 0  # every training is asked by the same queries
    rows = rows.assign(**{name: rows[name].where(first, 0) for name in ("n_queries", "n_without_relevant")})
    table = rows.groupby(KEYS, sort=False).agg(
        ours=("value", "mean"),
        chance=("chance", "mean"),
        n_seeds=("repeat", "nunique"),
        n_queries=("n_queries", "sum"),
        n_without_relevant=("n_without_relevant", "sum"),
        **{name: (name, how) for name, how in HEALTH.items()},
    )
    table.insert(1, "spread", _spread(rows, "fold"))
    table.insert(2, "seeds_spread", _spread(rows, "repeat"))
    pooled = {(rule, name): class_means(of) for rule, methods in found.items() for name, of in methods.items()}
    of_classes = pd.concat(pooled, names=KEYS[:2])
    table.insert(3, "class_mean", of_classes["class_mean"])
    table.insert(5, "class_chance", of_classes["class_chance"])
    return table.reset_index()


CLASS_MEAN = "Class mean: over all queries of all folds, averaged per class first."
"""What captions say of a class mean, wherever one stands."""


def class_means(several: Sequence[Answer]) -> pd.DataFrame:
    """The mean over classes of all queries of all folds, and chance of it; percent.

    Index metric, k; columns class_mean and class_chance. The queries of all folds of one training are pooled before
    classes are averaged (:func:`lib.metrics.classes.over_classes`); of several trainings it is the mean.
    """
    of_training: dict[int, list[PerQuery]] = {}
    for answer in several:
        of_training.setdefault(answer.split.repeat, []).append(answer.per_query)
    means = pd.concat([together(parts).mean() for parts in of_training.values()])
    return 100 * means.groupby(["metric", "k"], sort=False)[["class_mean", "class_chance"]].mean()


def _spread(rows: pd.DataFrame, over: str) -> pd.Series:
    """Standard deviation of the means of each fold, or of each repeat."""
    return rows.groupby([*KEYS, over], sort=False)["value"].mean().groupby(KEYS, sort=False).std()


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
        "last loss": "–" if np.isnan(row["loss"]) else f"{row['loss']:.3f}",
        "at the rim": "–" if np.isnan(row["rim"]) else f"{row['rim']:.1f} %",
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


def chance_cells(rows: pd.DataFrame) -> dict[str, str]:
    """Chance as cells "MAP@k, archive" of a table, in brackets averaged over the classes first; by k.

    rows: columns archive, k, chance and class_chance.

    >>> rows = {"archive": "open", "k": [20, 1], "chance": [3.5, 48.0], "class_chance": [2.0, 14.0]}
    >>> chance_cells(pd.DataFrame(rows))
    {'MAP@1, open': '48.0 (14.0)', 'MAP@20, open': '3.5 (2.0)'}
    """
    by_archive = rows.groupby(["k", "archive"], sort=False)[["chance", "class_chance"]].mean()
    by_archive = by_archive.sort_index(level="k", sort_remaining=False)
    return {f"MAP@{k}, {archive}": f"{a:.1f} ({b:.1f})" for (k, archive), (a, b) in by_archive.iterrows()}


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


def compare(
    found: Mapping[str, Answers],
    groups: np.ndarray,
    pairs: Sequence[tuple[str, str]],
    ks: Sequence[int],
    *,
    metric: str = "ap_min",
    by_class: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """Paired tests between methods on the same queries, over groups of images and over trainings.

    Args:
        found: per fold rule, or gallery, the answers of each method.
        groups: (n,) the group (patient, lesion, source image) of each image.
        pairs: names of methods, which is compared with which.
        ks: list lengths.
        metric: what is compared, of :class:`lib.metrics.retrieval.PerQuery`.
        by_class: compare means over classes (:func:`lib.results.differences.of_classes`).
        seed: of the random sign flips.

    Returns:
        One row per rule, pair and k: rule, first, second, k, difference (first minus second, percentage points),
        p_value, p_floor (the smallest p that the groups can give), n_units, low and high (95 % interval), n_seeds,
        p_seeds, n_tests and p_holm (p corrected for all rows).

    Raises:
        InputError: where two methods were not trained equally often.
    """
    lines = []
    for rule, methods in found.items():
        for first, second in pairs:
            units = np.concatenate([groups[answer.split.test] for answer in methods[first]])
            repeats = np.concatenate([[answer.split.repeat] * len(answer.split.test) for answer in methods[first]])
            for k in ks:
                a, b = ([answer.per_query for answer in methods[name]] for name in (first, second))
                names = {"rule": rule, "first": first, "second": second, "k": k}
                how = {"repeats": repeats, "metric": metric, "by_class": by_class, "seed": seed}
                lines.append(names | differences.difference(a, b, units, k, **how))
    return differences.together(lines)
