"""What an archive knows of itself: how often its votes are right."""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lib.archive.novelty import SEED, drawn, others
from lib.datasets import folds
from lib.errors import InputError
from lib.metrics import votes as majority
from lib.training.experiment import answerable
from lib.training.methods import Fitted
from lib.training.splits import Split, splits

VOTES = (1, 3, 5)
FOLDS = 5
"""A head is fitted so often for this, each time without the patients that ask."""

Fit = Callable[[np.ndarray, np.ndarray, Sequence[Split]], list[Fitted]]
"""Fits a method on features (n, dim) and classes (n,) as whole numbers, once for each split."""


def measure(
    fit: Fit, fitted: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, kind: str
) -> dict[str, Any]:
    """Let the archive's own images ask, each without the images of its patient.

    What learns is fitted anew for this, without the patients that ask: a head has seen the labels of its own images.
    They then ask the images that it learnt from, as a new patient's image asks those of the archive.

    Args:
        fit: the method. fitted: on all images, as the archive keeps it.
        x: (n, dim) features. labels: (n,) classes as whole numbers. groups: (n,) patients, or what ``kind`` says.

    Returns:
        What the archive keeps. accuracy: k, as text → of the vote of k, the share that is right. asked: how many images
        did. how: in words, with how many did not, since no other patient has their class.
    """
    parts, how = _parts(fit, fitted, x, labels, groups, kind)
    right = []
    fewest = min([others(groups).min(), *(len(gallery) for _, _, gallery in parts)])
    ks = tuple(k for k in VOTES if k <= fewest)
    for head, asking, gallery in parts:
        points, queries = head.embed(x), answerable(asking, gallery, labels, groups)
        if ks and len(queries):
            ids = {"query_ids": groups[queries], "gallery_ids": groups[gallery]}
            voted = majority.votes(points[queries], points[gallery], labels[gallery], head.space, ks, **ids)
            right.append(voted == labels[queries, None])
    hits = np.concatenate(right) if right else np.empty((0, 0))
    accuracy = {str(k): float(hits[:, column].mean()) for column, k in enumerate(VOTES[: hits.shape[1]])}
    if parts and not accuracy:
        how = f"not measured: no class has images of enough {kind}s"
    if accuracy and (alone := sum(len(asking) for _, asking, _ in parts) - len(hits)):
        how += f"; without {alone:,} whose class no other {kind} has"
    return {"accuracy": accuracy, "asked": len(hits), "how": how}


def has_learnt(fitted: Fitted) -> bool:
    """Whether a method has seen the classes of the images that it was fitted on."""
    return fitted.network is not None or fitted.method.recipe.source == "NCA"


def _parts(
    fit: Fit, fitted: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, kind: str
) -> tuple[list[tuple[Fitted, np.ndarray, np.ndarray]], str]:
    """Heads, the images that ask with each, and those that answer; and how that was done."""
    asking = drawn(len(x))
    of_all = "" if len(asking) == len(x) else f", {len(asking):,} of {len(x):,} images"
    if not has_learnt(fitted):
        return [(fitted, asking, np.arange(len(x)))], f"own {kind} left out{of_all}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # fewer folds: how often it was fitted is said below
            fold_of = folds.by_group(labels.astype(str), groups, FOLDS, SEED)
    except InputError:
        return [], f"not measured: there are too few {kind}s to keep some aside from what learns"
    parts = splits(fold_of, SEED)
    try:
        heads = fit(x, labels, parts)
    except InputError as error:  # all images allow the method, but those of some patients do not
        return [], f"not measured: without some {kind}s, {error}"
    how = f"each asked of other {kind}s' images, from which alone a head had learnt ({len(parts)} times){of_all}"
    return [(head, np.intersect1d(part.test, asking), part.train) for head, part in zip(heads, parts, strict=True)], how
