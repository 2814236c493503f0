"""Folds by image, as the papers have them, and folds by group, where no patient is on both sides."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from lib import checks
from lib.datasets.table import ImageTable
from lib.errors import InputError

BY_IMAGE = "by image"
FEWER = "Use fewer folds (n_folds in params.yaml, or in the parameters cell of the notebook)"


def enough(table: ImageTable, n_folds: int) -> ImageTable:
    """Return the table without the classes that have fewer images than folds, with a warning; ``skipped`` lists them.

    Raises InputError if fewer than two classes remain.
    """
    counts = table.rows["label"].value_counts().sort_index()
    few = counts[counts < n_folds]
    if few.empty:
        return table
    named = _counted(few)
    if len(counts) - len(few) < 2:
        raise InputError(
            f"{table.name}: {n_folds} folds need {n_folds} images of a class, and two such classes or more; too few "
            f"in {named}. {FEWER}, or add images to {table.root}."
        )
    way_out = f" {FEWER} to keep them." if few.max() > 1 else ""
    warnings.warn(
        f"{table.name}: left out, because {n_folds} folds need {n_folds} images of a class: {named}.{way_out}",
        stacklevel=2,
    )
    reasons = tuple((label, f"class of {n} images, fewer than {n_folds} folds") for label, n in few.items())
    kept = table.rows[~table.rows["label"].isin(few.index)]
    return replace(table, rows=kept, skipped=(*table.skipped, *reasons))


def usable(table: ImageTable, n_folds: int, seed: int) -> ImageTable:
    """Return the table as folds can use it, and warn of what that changes.

    Classes with fewer images than folds are left out (:func:`enough`). If the groups cannot be kept apart, as for a
    single patient or two patients of one class each, every image becomes a group of its own.

    Raises InputError for fewer than 2 folds and if fewer than two classes remain.
    """
    checks.values(n_folds=n_folds, seed=seed)
    table = enough(table, n_folds)
    if len(set(table.groups)) == len(table):
        return table
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # whoever makes the folds hears how many there are
            by_group(table.labels, table.groups, n_folds, seed)
        return table
    except InputError as error:
        warnings.warn(f"{table.name}: every image is taken for a group of its own. {error}", stacklevel=2)
    return replace(table, rows=table.rows.assign(group=table.rows["image_id"]), group_kind="image")


def rules(table: ImageTable, n_folds: int, seed: int) -> dict[str, np.ndarray]:
    """Return the folds under each rule that the table allows: rule → (n,) as :func:`assign`.

    "by image" is always there; "by patient", or whatever a group is, unless every image is a group of its own (with a
    warning), so that both rules are one. It has fewer folds if there are fewer groups (:func:`by_group`).

    Raises InputError for too few images of a class and for groups that cannot be kept apart; see :func:`usable`.
    """
    rules = {BY_IMAGE: assign(table.labels, table.groups, n_folds, "image", seed)}
    if len(set(table.groups)) < len(table):
        rules[f"by {table.group_kind}"] = by_group(table.labels, table.groups, n_folds, seed)
    else:
        warnings.warn(
            f"{table.name}: every image is a group of its own, so there are folds by image only. If several images "
            "come from one patient, put them into a sub-folder of their class that is named after the patient.",
            stacklevel=2,
        )
    return rules


def strictest(rules: Mapping[str, np.ndarray]) -> str:
    """Return the name of the rule that keeps groups apart, "by image" if there is no other.

    >>> strictest({"by image": np.array([0, 1]), "by patient": np.array([1, 0])})
    'by patient'
    """
    return next((rule for rule in rules if rule != BY_IMAGE), BY_IMAGE)


def count(rules: Mapping[str, np.ndarray]) -> int | str:
    """Return how many folds there are, for captions.

    >>> count({"by image": np.array([0, 1, 2]), "by patient": np.array([0, 1, 1])})
    '3 by image and 2 by patient'
    """
    counts = {rule: len(set(fold_of.tolist())) for rule, fold_of in rules.items()}
    if len(set(counts.values())) == 1:
        return counts[BY_IMAGE]
    return " and ".join(f"{n} {rule}" for rule, n in counts.items())


def by_group(labels: Sequence[str], groups: Sequence[str], n_folds: int, seed: int) -> np.ndarray:
    """Return folds by group as :func:`assign` does, fewer if the groups allow no more, with a warning.

    In every fold some query has an image of its class among the training images, and these are of two classes or more.
    Raises InputError if no number of folds gives that, as for a single group or two groups of one class each, and for
    fewer than 2 folds.
    """
    checks.values(n_folds=n_folds, seed=seed)
    labels, groups = _names(labels, "label"), _names(groups, "group")
    n_groups = len(set(groups))
    for n in range(min(n_folds, n_groups), 1, -1):
        try:
            fold_of = assign(labels, groups, n, "group", seed)
        except InputError:  # too few images, or a fold without a group: fewer folds may do
            continue
        if _answerable(labels, fold_of):
            if n < n_folds:
                warnings.warn(f"{n} folds by group instead of {n_folds}: there are {n_groups} groups.", stacklevel=2)
            return fold_of
    raise InputError(
        f"{n_groups} group{'s' * (n_groups != 1)} cannot be divided into folds that leave two classes to learn from "
        "and something to find for the others. Add groups (patients) of every class."
    )


def apart(labels: Sequence[str], groups: Sequence[str], n_folds: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return folds by group and the groups that they keep apart, both (n,).

    The groups are those given, or, with a warning, every image by itself if those cannot be kept apart.
    """
    try:
        return by_group(labels, groups, n_folds, seed), np.asarray(groups, dtype=str)
    except InputError as error:
        warnings.warn(
            f"In a part of {len(labels)} images every image is taken for a group of its own. {error}", stacklevel=2
        )
        single = np.arange(len(labels)).astype(str)
        return by_group(labels, single, n_folds, seed), single


def assign(
    labels: Sequence[str], groups: Sequence[str], n_folds: int, rule: Literal["image", "group"], seed: int
) -> np.ndarray:
    """Return the number of the fold in which each image is a test query, (n,) int64 from 0 to n_folds - 1.

    labels, groups: (n,); rule "image": classes spread evenly, groups ignored; rule "group": a group is never
    split, classes as even as that allows.

    Groups are shuffled here because scikit-learn's own shuffle mixed up their counts in older versions (its pull
    request 32540). Folds by group do not depend on the order of the images.

    Raises InputError for fewer than 2 folds, an empty label or group, too few images of a class (rule "image"), too few
    groups (rule "group"), or a fold that no group fell into.
    """
    labels, groups = _names(labels, "label"), _names(groups, "group")
    if len(labels) != len(groups):
        raise InputError(f"{len(labels)} labels but {len(groups)} groups: give one of each per image.")
    checks.values(n_folds=n_folds, seed=seed)
    counts = pd.Series(labels).value_counts(sort=False)
    if rule == "image":
        few = counts[counts < n_folds]
        if len(few):
            raise InputError(
                f"{n_folds} folds need {n_folds} images of every class; too few in {_counted(few)}. "
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


def _answerable(labels: np.ndarray, fold_of: np.ndarray) -> bool:
    """Whether in every fold some query has its class among the training images, and these are of two classes."""
    queries = pd.crosstab(labels, fold_of)
    training = queries.rsub(queries.sum(axis=1), axis=0)
    return bool(((queries > 0) & (training > 0)).any().all() and ((training > 0).sum() > 1).all())


def _counted(images: pd.Series) -> str:
    """Classes with their numbers of images, for a message."""
    return ", ".join(f"{label} ({n})" for label, n in images.items())


def _names(values: Sequence[str], what: str) -> np.ndarray:
    """Return `values` as str, after a check that none is missing (numpy would spell NaN as a name)."""
    values = np.asarray(values, dtype=object)
    blank = np.flatnonzero(pd.isna(values) | (values == ""))
    if len(blank):
        raise InputError(f"{len(blank)} images have no {what}, the first at row {blank[0]}. Fill it in.")
    return values.astype(str)
