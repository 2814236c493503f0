"""Temperature and curvature, which the paper does not print or have: every fold chooses inside its training groups."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.losses.linear_prototypes import Comparison
from lib.metrics.classes import over_classes
from lib.study.columns import HEALTH, Column, Layout
from lib.study.markdown import percent
from lib.study.scores import HEALTH as HEALTHY
from lib.study.scores import of_answers
from lib.training.experiment import ask, fit
from lib.training.linear_prototypes import Settings, allowed_support
from lib.training.methods import Answer, Method
from lib.training.splits import Split, query_splits

GRIDS = {
    "cosine": [(Comparison("cosine"), t) for t in (1.0, 0.3, 0.1, 0.03)],
    "poincare": [(Comparison("poincare", c), t) for c, t in product((0.1, 1.0), (1.0, 0.1))],
}
"""The candidates of each comparison, with their temperature."""

Choice = Mapping[str, Settings]
"""Comparison, "cosine" or "poincare" → its settings."""


def described(settings: Settings) -> str:
    """Temperature, and curvature if there is one.

    >>> described(Settings(Comparison("poincare", 0.1), 0.3)), described(Settings(Comparison("cosine"), 0.3))
    ('c 0.1, temperature 0.3', 'temperature 0.3')
    """
    curved = f"c {settings.comparison.c:g}, " if settings.comparison.name == "poincare" else ""
    return f"{curved}temperature {settings.temperature:g}"


def inner_split(
    labels: np.ndarray, groups: np.ndarray, split: Split, per_class: int, k: int
) -> tuple[Split, np.ndarray, int]:
    """A split inside the training part of ``split``, where a quarter of its groups asks the others, its groups, and K.

    K is ``k``, or what the smaller training part allows. The groups (n,) are those of all images, or, as
    :func:`lib.datasets.folds.apart` has it, every image by itself where the training groups are too few to be divided
    once more.
    """
    rows, units = split.train, np.array(groups, dtype=object)
    fold_of, units[rows] = folds.apart(labels[rows], groups[rows], 4, split.seed)
    k = allowed_support(labels, [rows[fold_of != 0]], k)
    drawn = balanced(labels[rows], units[rows], fold_of, 0, per_class, split.seed, needed=k + 1)
    (inner,) = query_splits({split.fold: drawn}, split.seed)
    parts = {name: rows[getattr(inner, name)] for name in ("train", "labelled", "test", "held_out")}
    return replace(inner, **parts), units, k


LEFT = "at the rim, not chosen"
"""Said of a candidate with training images at the rim that its fold left."""


def choose(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    head: Method,
    *,
    k: int,
    per_class: int,
) -> tuple[dict[int, Choice], pd.DataFrame]:
    """The best curvature and temperature of each comparison, for each fold from images that it learns from.

    Args:
        views: (V, n, dim) features of V views of each image; labels, groups: (n,).
        splits: one per fold; the training part of each is divided once more, and only that fold uses its choice.
        head: the paper's, of which each candidate changes comparison and temperature.
        k: MAP@k decides, searched as in training; fewer where the gallery is smaller.
        per_class: validation queries of each class at most.

    Returns:
        Fold → its choice, of candidates without a training image at the rim if there are any: a head that reaches it on
        the fewer images here goes on with all of them. And a row for every fold and candidate: fold, comparison, c,
        temperature, validation (percent), chosen; class_mean (of all folds, the same in each of their rows), chance,
        and the health of the training: loss, rim, steps; note: :data:`LEFT` where that is so.
    """
    checks.values(k=k, per_class=per_class)
    tables, chosen, answered = [], {}, {}
    for split in splits:
        table, answers = _candidates(views, labels, groups, split, head, k, per_class)
        for name, of_split in answers.items():
            answered.setdefault(name, []).extend(of_split)
        best = _best(table)
        chosen[split.fold] = dict(zip(best["comparison"], best["settings"], strict=True))
        tables.append(table.drop(columns="settings").assign(fold=split.fold, chosen=table.index.isin(best.index)))
    rows = pd.concat(tables, ignore_index=True)
    rows["class_mean"] = rows.pop("name").map({name: _class_mean(of_folds) for name, of_folds in answered.items()})
    rows["note"] = np.where((rows["rim"] > 0) & ~rows["chosen"], LEFT, "")
    names = ["fold", "comparison", "c", "temperature", "validation", "chosen"]
    return chosen, rows[names + [name for name in rows if name not in names]]


def _class_mean(of_folds: Sequence[Answer]) -> float:
    """Percent, over the validation queries of all folds; a fold's list is as long as its gallery allows."""
    values = pd.concat([answer.per_query.values["ap_min"].iloc[:, 0] for answer in of_folds])
    return 100 * over_classes(values, np.concatenate([answer.per_query.classes for answer in of_folds]))


def _best(candidates: pd.DataFrame) -> pd.DataFrame:
    """The best candidate of each comparison of those that are off the rim; of all of them if none is.

    Not the middle one, as of rates: pairs of curvature and temperature lie in no order.
    """
    held = candidates["rim"] > 0
    held &= ~held.groupby(candidates["comparison"]).transform("all")
    return candidates.loc[candidates[~held].groupby("comparison", sort=False)["validation"].idxmax()]


def _candidates(
    views: np.ndarray, labels: np.ndarray, groups: np.ndarray, split: Split, head: Method, k: int, per_class: int
) -> tuple[pd.DataFrame, dict[str, list[Answer]]]:
    """How every candidate of one fold does on its validation queries, and its answers by its name."""
    inner, units, support = inner_split(labels, groups, split, per_class, head.schedule.k)
    k = min(k, len(inner.train))
    head = replace(head, schedule=replace(head.schedule, k=support), search="own")
    settings = [
        replace(head.head, comparison=comparison, temperature=temperature)
        for grid in GRIDS.values()
        for comparison, temperature in grid
    ]
    methods = [replace(head, name=f"{each.comparison.name}, {described(each)}", head=each) for each in settings]
    fitted = fit(views, labels, methods, [inner], what=f"temperature and curvature, fold {split.fold}")
    answers = ask(fitted, views[0], labels, [k], groups=units, what="validation")
    numbers = of_answers({"": answers}).means().query("metric == 'ap_min'").set_index("method")
    rows = pd.DataFrame(
        {
            "name": method.name,
            "comparison": method.head.comparison.name,
            "c": method.head.comparison.c if method.head.comparison.name == "poincare" else np.nan,
            "temperature": method.head.temperature,
            "validation": numbers["ours"][method.name],
            "settings": method.head,
        }
        | numbers.loc[method.name, ["chance", *HEALTHY]].to_dict()
        for method in methods
    )
    return rows, answers


def _by_candidate(candidates: pd.DataFrame) -> pd.DataFrame:
    """Validation bold where the fold chose a candidate; of each the health of all folds."""
    cells = candidates["validation"].map(percent)
    of_all = candidates.groupby(["comparison", "c", "temperature"], sort=False, dropna=False)
    health = {name: of_all[name].transform(how) for name, how in HEALTHY.items()}
    return candidates.assign(cell=cells.mask(candidates["chosen"], "**" + cells + "**"), **health)


LAYOUT = Layout(
    [
        Column("comparison"),
        Column("curvature c", "c", "{:g}"),
        Column("temperature", form="{:g}"),
        Column("fold {}", "cell", over="fold", chance="chance"),
        Column("class mean", "class_mean"),
        *HEALTH,
    ],
    by=("comparison", "c", "temperature"),
    prepare=_by_candidate,
)
"""A line per candidate, a column per fold with its validation MAP; the mean over classes, of all folds; chance."""
