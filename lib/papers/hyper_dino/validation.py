"""A part of each training part validates: where something is chosen, it is chosen without test images."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lib.datasets import folds
from lib.training.splits import Split

N_FOLDS = 5
"""Into how many parts the training groups are divided, one of which validates, by default."""


def inner(splits: Sequence[Split], labels: np.ndarray, groups: np.ndarray, n_folds: int = N_FOLDS) -> list[Split]:
    """The training part of each split divided once more, by group: who is learnt from, and who validates.

    labels, groups: (n,) of all images. One of ``n_folds`` parts validates; no image of the test part is in either.
    """
    parts = []
    for split in splits:
        part_of, _ = folds.apart(labels[split.train].astype(str), groups[split.train], n_folds, split.seed)
        kept, checked = folds.split(part_of, 0)
        rows = {"train": split.train[kept], "labelled": None, "test": split.train[checked], "held_out": None}
        parts.append(replace(split, **rows))
    return parts
