"""NCA alone as a fair opponent: each fold chooses its length on images that it learns from."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyper_dino import validation
from lib.results.markdown import markdown_table, percent
from lib.results.rates import FREE, RULE, choose_middle, marked
from lib.results.shown import Table
from lib.training import experiment
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

NAME = "NCA, validated length"

SHORT = (2, 3)
"""Lengths to choose from beside those of Table 1, which begin at 5.

They are there because 5 was the best of that table on the test images of Kather and BreakHis, which favours NCA; on
HAM10000 the longest are.
"""


def choose(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    several: Sequence[Split],
    lengths: Sequence[int],
    settings: Settings,
    k: int,
) -> pd.DataFrame:
    """MAP@``k`` of NCA of every length on the validation part of every fold, which chooses by the rule of rates.

    Args:
        x: (n, dim) features. labels, groups: (n,); groups are kept apart when the training part is divided.
        several: one split for each fold. The validation part is a fifth of the groups of its training part.
        lengths: to choose from; those beyond ``dim`` are left out, so that one list serves every encoder.
        settings: rounding, and how many images NCA learns from.
        k: of MAP@k, or the smallest gallery where that is smaller.

    Returns:
        One row per fold and length: fold, length, k, chance (percent), and those of
        :func:`lib.results.rates.choose_middle`, paired over groups.
    """
    inner = validation.inner(several, labels, groups)
    k = min(k, *(len(split.train) for split in inner))
    todo = _methods(sorted({n for n in lengths if n <= x.shape[1]}), settings)
    done = experiment.answers(x, labels, todo, inner, [k], what="NCA, validation")
    tables = []
    for split, *of_fold in zip(inner, *done.values(), strict=True):
        rows = pd.concat(
            answer.per_query.mean().query("metric == 'ap_min'").assign(length=answer.method.recipe.dim_in)
            for answer in of_fold
        )
        rows = rows[["length", "k", "chance"]].assign(fold=split.fold, chance=100 * rows["chance"])
        values = [100 * answer.per_query.values["ap_min", k] for answer in of_fold]
        tables.append(choose_middle(rows, values, groups[split.test], "fold", ["length"]))
    return pd.concat(tables, ignore_index=True)


def fit(
    x: np.ndarray, labels: np.ndarray, where: Sequence[Split], choice: pd.DataFrame, settings: Settings
) -> list[Fitted]:
    """NCA on every split, of the length that its fold chose.

    x: (n, dim) features. labels: (n,). where: splits, and repeats of them. choice: of :func:`choose`.
    """
    length_of = choice[choice["chosen"]].set_index("fold")["length"]
    fitted = experiment.fit(x, labels, _methods(sorted(set(length_of)), settings), where, what="NCA")
    return [fitted[_name(length_of[split.fold])][number] for number, split in enumerate(where)]


def _methods(lengths: Sequence[int], settings: Settings) -> list[Method]:
    return [Method(_name(n), Recipe("NCA", int(n), 0), settings, Schedule()) for n in lengths]


def _name(length: int) -> str:
    return Recipe("NCA", int(length), 0).name


def table(choices: Mapping[str, pd.DataFrame]) -> Table:
    """The choice of every fold; choices: fold rule → rows of :func:`choose`."""
    rows = pd.concat([rows.assign(rule=rule) for rule, rows in choices.items()], ignore_index=True)
    lines = []
    for (rule, length), part in rows.groupby(["rule", "length"], sort=False):
        folds = part["fold"].map(lambda fold: f"fold {fold + 1}")
        lines.append({"folds": rule, "numbers": length} | dict(zip(folds, marked(part), strict=True)))
    chance = rows.groupby("rule", sort=False)["chance"].mean()
    text = (
        f"MAP@k of NCA only, on the validation part of each fold, k = {' or '.join(map(str, rows['k'].unique()))}, in "
        f"percent, AP divided by min(k, relevant). {RULE} The validation part is about a fifth of "
        "its training part, divided by the rule of the folds: no query image of the fold is in it, though query "
        "images of other folds are. Chance, the mean over the folds: "
        f"{', '.join(f'{percent(value)} {rule}' for rule, value in chance.items())}."
    )
    return Table("NCA's length, on validation parts", rows, text, FREE, markdown=markdown_table(pd.DataFrame(lines)))


def said(rows: pd.DataFrame) -> list[str]:
    """What the folds chose, a sentence for each rule, and how many of them an end of the row."""
    lines = []
    for rule, part in rows.groupby("rule", sort=False):
        told = part[part["chosen"]].sort_values("fold")["length"]
        tried, listed = part["length"], ", ".join(map(str, told))
        at_end = told.isin([tried.min(), tried.max()]).sum()
        beyond = f"; {at_end} of them at an end of what was tried, {tried.min()} to {tried.max()}" if at_end else ""
        lines.append(f"NCA only, folds {rule}: of {tried.nunique()} lengths the folds take {listed} numbers{beyond}")
    return lines
