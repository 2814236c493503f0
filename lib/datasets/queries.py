"""Class-balanced queries of patients that nothing was fitted on.

The paper about linear prototypes draws "class-balanced images that were disjoint from the training and test galleries"
and gives neither their number nor a rule for patients (erratum LP-9). Here both are stated, and no patient of a query
is among the training images.
"""

import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.errors import InputError


class NoClass(InputError):
    """A fold of which no class has enough images for queries."""


@dataclass(frozen=True, eq=False)
class Queries:
    """The images of one fold in three parts, each int64 indices in ascending order; every image is in one of them.

    train: images of the other folds. queries: ``per_class`` held-out images of each class. rest: all other held-out
    images. left_out: class → why it has no queries; its images stay in ``train`` and ``rest``.
    """

    train: np.ndarray
    queries: np.ndarray
    rest: np.ndarray
    per_class: int
    left_out: dict[str, str]

    @property
    def held_out(self) -> np.ndarray:
        """The open gallery, images of groups that nothing was fitted on: ``rest`` and the queries themselves.

        Give groups as ids to the search, so that a query finds none of its own group. The queries belong to it because
        a small held-out part has little else: of ten slides in five folds a query meets one other slide, or none. If
        ``rest`` is large enough, it is the stricter gallery, in which no query is found by another.
        """
        return np.union1d(self.queries, self.rest)


def balanced(
    labels: Sequence[str],
    groups: Sequence[str],
    fold_of: np.ndarray,
    fold: int,
    per_class: int,
    seed: int,
    least: int = 1,
    needed: int = 1,
    image_ids: Sequence[str] | None = None,
) -> Queries:
    """Draw the same number of queries for each class from the groups of one fold.

    labels, groups, fold_of: (n,), fold_of from ``folds.assign(..., rule="group")``; per_class: queries wanted of each
        class, fewer if the smallest of these classes has fewer held-out images.
    least, needed: a class has queries if it has `least` held-out and `needed` training images (K + 1 for episodes with
        K images of each class in their support); the others are named in ``left_out``.
    image_ids: (n,) unique; with them the draw does not depend on the order of the images.

    In each class every group gives one image before any gives a second. The draw of a class depends on the seed and
    its held-out images alone, and a smaller one is part of a larger one.

    Raises InputError for a number below 1, lengths that differ, a fold that does not exist, a group in the fold and
    outside it, image_ids that repeat, and if no class has queries.

    >>> drawn = balanced(list("aaabbb"), list("112334"), np.array([0, 0, 1, 0, 0, 1]), 0, per_class=1, seed=0)
    >>> drawn.train.tolist(), len(drawn.queries), len(drawn.rest)
    ([2, 5], 2, 2)
    """
    checks.values(per_class=per_class, seed=seed)
    checks.whole("least", least)
    checks.whole("needed", needed)
    labels, groups, fold_of = np.asarray(labels, dtype=str), np.asarray(groups, dtype=str), np.asarray(fold_of)
    ids = np.arange(len(labels)) if image_ids is None else np.asarray(image_ids)
    if not len(labels) == len(groups) == len(fold_of) == len(ids):
        raise InputError(
            f"{len(labels)} labels, {len(groups)} groups, {len(fold_of)} folds and {len(ids)} image_ids: "
            "give one of each per image"
        )
    if len(set(ids.tolist())) < len(ids):
        raise InputError(f"image_id {Counter(ids.tolist()).most_common(1)[0][0]} occurs more than once")
    train, held_out = folds.split(fold_of, fold)
    if both := sorted(set(groups[train]) & set(groups[held_out])):
        raise InputError(
            f"{len(both)} groups are in fold {fold} and outside it, such as {both[0]}; assign folds with rule='group'"
        )
    left_out = _left_out(labels[train], labels[held_out], least, needed)
    classes = sorted(set(labels) - set(left_out))
    if not classes:
        reasons = "; ".join(f"{label}: {why}" for label, why in left_out.items())
        raise NoClass(
            f"no class has enough query images in fold {fold} ({reasons}). Lower `least` or `needed`, or use more folds"
        )
    rows_of = {label: held_out[labels[held_out] == label] for label in classes}
    number = min(per_class, *map(len, rows_of.values()))
    drawn = [
        _spread(rows[np.argsort(ids[rows])], groups, np.random.default_rng([seed, crc32(label.encode())]))[:number]
        for label, rows in rows_of.items()
    ]
    queries = np.sort(np.concatenate(drawn))
    return Queries(train, queries, np.setdiff1d(held_out, queries), number, left_out)


def of_folds(
    labels: Sequence[str],
    groups: Sequence[str],
    fold_of: np.ndarray,
    folds_used: int,
    per_class: int,
    seed: int,
    least: int = 1,
    needed: int = 1,
    image_ids: Sequence[str] | None = None,
) -> dict[int, Queries]:
    """Draw queries from each of the first ``folds_used`` folds, or from all if there are fewer: fold → its queries.

    Arguments as :func:`balanced`, but if no class has ``least`` held-out images, as many as the largest has are enough.
    A fold in which no class has queries is left out with a warning. Raises InputError if no fold is left.
    """
    drawn, reasons = {}, []
    for fold in range(min(folds_used, int(np.max(fold_of)) + 1)):
        largest = max(Counter(np.asarray(labels)[fold_of == fold].tolist()).values())
        options = {"least": min(least, largest), "needed": needed, "image_ids": image_ids}
        try:
            drawn[fold] = balanced(labels, groups, fold_of, fold, per_class, seed, **options)
        except NoClass as error:
            reasons.append(str(error))
    if not drawn:
        raise InputError("; ".join(reasons))
    for reason in reasons:
        warnings.warn(f"fold left out: {reason}", stacklevel=2)
    return drawn


def _left_out(train: np.ndarray, held_out: np.ndarray, least: int, needed: int) -> dict[str, str]:
    """Class → why it has no queries, from the labels of both parts; classes in order."""
    left_out = {}
    trained, held = Counter(train.tolist()), Counter(held_out.tolist())
    for label in sorted(trained | held):
        parts = (("held-out", held[label], least), ("training", trained[label], needed))
        lacking = [f"{part} images: {there}, needed: {wanted}" for part, there, wanted in parts if there < wanted]
        if lacking:
            left_out[label] = "; ".join(lacking)
    return left_out


def _spread(rows: np.ndarray, groups: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Return `rows` in random order, one of each group first, then a second of each, and so on."""
    rows = random.permutation(rows)
    names, group = np.unique(groups[rows], return_inverse=True)
    turn = pd.Series(group).groupby(group).cumcount().to_numpy()
    return rows[np.lexsort((random.permutation(len(names))[group], turn))]
