"""Who asks where the published split has no leaf on both sides: In-Shop, erratum LT-14."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.training.splits import Split

LEARNT = {"in_shop": "train"}
"""Dataset → the part of its column ``split`` that is learnt from, as published."""


def disjoint(table: ImageTable, leaves: np.ndarray) -> bool:
    """Whether no leaf that is learnt from asks in the published split; False for a dataset without one.

    A classifier fitted there can answer with none of the leaves that ask, so Top-1 is 0 and HF1 undefined (LT-14).
    """
    if table.name not in LEARNT:
        return False
    learnt = table.rows["split"].to_numpy() == LEARNT[table.name]
    return not set(leaves[learnt]) & set(leaves[~learnt])


def asked(table: ImageTable, leaves: np.ndarray, several: Sequence[Split]) -> list[Split]:
    """The same splits; where the published one is :func:`disjoint`, without test images of leaves not learnt from.

    There the folds are by image, over all published parts, so that a garment is on both sides and HF1 is defined: LT-14
    decided so. Every other dataset keeps its queries, and a leaf without a training image counts as not found.

    Raises:
        InputError: if no test image of a split remains.
    """
    if not disjoint(table, leaves):
        return list(several)
    found = []
    for split in several:
        test = split.test[np.isin(leaves[split.test], leaves[split.train])]
        if not len(test):
            raise InputError(
                f"{table.name}, fold {split.fold}: no class of the query images has a training image, and HF1 needs "
                "that (LT-14). Take folds by image, and at least two images of a class."
            )
        held_out = test if split.held_out is split.test else split.held_out
        found.append(replace(split, test=test, held_out=held_out))
    return found


def sentence(table: ImageTable, leaves: np.ndarray, before: Sequence[Split], after: Sequence[Split]) -> str:
    """What was decided about who asks, and how many images are left out; empty where nothing had to be decided."""
    if not disjoint(table, leaves):
        return ""
    out = [len(a.test) - len(b.test) for a, b in zip(before, after, strict=True) if a.repeat == 0]
    return (
        "published split: training and query images share no class, so no HF1 (LT-14); here folds by image, each class "
        f"on both sides; images left out whose class is on one side only: {', '.join(map(str, out))}"
    )
