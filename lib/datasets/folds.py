"""Folds by image, as the papers have them, and folds by group, where no patient is on both sides."""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from lib.datasets.table import ImageTable
from lib.errors import InputError

FEWER = "Use fewer folds (n_folds in params.yaml, or in the parameters cell of the notebook)"


def enough(table: ImageTable, n_folds: int) -> ImageTable:
    """Return the table without the classes that have fewer images than folds, which are named in a warning.

    Such a class cannot be in every fold by image. It is listed in ``skipped``, and stays in the folder.

    Raises InputError if fewer than two classes remain.
    """
    counts = table.rows["label"].value_counts().sort_index()
    few = counts[counts < n_folds]
    if few.empty:
        return table
    named = ", ".join(f"{label} ({n})" for label, n in few.items())
    if len(counts) - len(few) < 2:
        raise InputError(
            f"{table.name}: {n_folds} folds need {n_folds} images of a class, and two such classes or more; too few "
            f"in {named}. {FEWER}, or add images to {table.root}."
        )
    warnings.warn(
        f"{table.name}: left out, because {n_folds} folds need {n_folds} images of a class: {named}. {FEWER} "
        "to keep them.",
        stacklevel=2,
    )
    reasons = tuple((label, f"class of {n} images, fewer than {n_folds} folds") for label, n in few.items())
    kept = table.rows[~table.rows["label"].isin(few.index)]
    return replace(table, rows=kept, skipped=(*table.skipped, *reasons))


def assign(
    labels: Sequence[str], groups: Sequence[str], n_folds: int, rule: Literal["image", "group"], seed: int
) -> np.ndarray:
    """Return the number of the fold in which each image is a test query, (n,) int64 from 0 to n_folds - 1.

    labels, groups: (n,); rule "image": classes spread evenly, groups ignored; rule "group": a group is never
    split, classes as even as that allows.

    Groups are shuffled here because scikit-learn's own shuffle mixed up their counts in older versions (its pull
    request 32540). Folds by group do not depend on the order of the images.

    Raises InputError for an empty label or group, too few images of a class (rule "image"), too few groups
    (rule "group"), or a fold that no group fell into.
    """
    labels, groups = _names(labels, "label"), _names(groups, "group")
    if len(labels) != len(groups):
        raise InputError(f"{len(labels)} labels but {len(groups)} groups: give one of each per image.")
    if n_folds < 2:
        raise InputError(f"{n_folds} folds cannot be made: use 2 or more.")
    counts = pd.Series(labels).value_counts(sort=False)
    if rule == "image":
        few = counts[counts < n_folds]
        if len(few):
            named = ", ".join(f"{label} ({n})" for label, n in few.items())
            raise InputError(
                f"{n_folds} folds need {n_folds} images of every class; too few in {named}. "
                f"{FEWER}, or leave these classes out with folds.enough."
            )
        splits = StratifiedKFold(n_folds, shuffle=True, random_state=seed).split(labels, labels)
    elif rule == "group":
        names, codes = np.unique(groups, return_inverse=True)
        if len(names) < n_folds or counts.max() < n_folds:
            raise InputError(
                f"{n_folds} folds by group need {n_folds} groups and a class with {n_folds} images; there are "
                f"{len(names)} groups and at most {counts.max()} images in a class. {FEWER}."
            )
        shuffled = np.random.default_rng(seed).permutation(len(names))[codes]
        splits = StratifiedGroupKFold(n_folds).split(labels, labels, shuffled)
    else:
        raise InputError(f"fold rule {rule!r} is unknown. Use 'image' or 'group'.")
    fold_of = np.full(len(labels), -1, dtype=np.int64)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        for fold, (_, test) in enumerate(splits):
            fold_of[test] = fold
    empty = sorted(set(range(n_folds)) - set(fold_of.tolist()))
    if empty:
        raise InputError(f"no group fell into fold {empty[0]} of {n_folds}. {FEWER}, or another seed.")
    return fold_of


def split(fold_of: np.ndarray, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the (train, test) indices of one fold: the test images are those that `assign` gave this number.

    >>> train, test = split(np.array([0, 1, 1, 2]), 1)
    >>> train.tolist(), test.tolist()
    ([0, 3], [1, 2])
    """
    test = np.asarray(fold_of) == fold
    if not test.any():
        raise InputError(f"there is no fold {fold}. Use one of {sorted(set(np.asarray(fold_of).tolist()))}.")
    return np.flatnonzero(~test), np.flatnonzero(test)


def report(labels: Sequence[str], groups: Sequence[str], fold_of: np.ndarray) -> pd.DataFrame:
    """Return one row per class: images, groups, and the folds whose queries no training image can answer.

    unanswerable_folds: folds with test images of the class and no training image of it; unanswerable_queries: how
    many test images these are. They are left out of a mean, not counted as failures.

    >>> report(["a", "a", "b", "b"], ["p", "q", "r", "r"], np.array([0, 1, 0, 0])).loc["b", "unanswerable_folds"]
    (0,)
    """
    images = pd.DataFrame({"label": _names(labels, "label"), "group": _names(groups, "group"), "fold": fold_of})
    by_class = images.groupby("label")
    queries = pd.crosstab(images["label"], images["fold"])
    unanswerable = queries.eq(queries.sum(axis=1), axis=0)  # all images of the class in this fold
    return pd.DataFrame(
        {
            "images": by_class.size(),
            "groups": by_class["group"].nunique(),
            "unanswerable_folds": [tuple(row.index[row]) for _, row in unanswerable.iterrows()],
            "unanswerable_queries": queries.where(unanswerable, 0).sum(axis=1),
        }
    )


def _names(values: Sequence[str], what: str) -> np.ndarray:
    """Return `values` as str, after a check that none is missing (numpy would spell NaN as a name)."""
    values = np.asarray(values, dtype=object)
    blank = np.flatnonzero(pd.isna(values) | (values == ""))
    if len(blank):
        raise InputError(f"{len(blank)} images have no {what}, the first at row {blank[0]}. Fill it in.")
    return values.astype(str)
