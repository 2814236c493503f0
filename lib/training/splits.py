"""Who is learnt from, who asks, and what is searched."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.queries import Queries
from lib.errors import InputError

GALLERIES = ("closed", "open")
"""What queries search: the images that were learnt from, or images of groups that nothing was fitted on."""


@dataclass(frozen=True, eq=False)
class Split:
    """Who is learnt from and who asks: indices of images, and the seed of all that is drawn at random.

    train: images of the training part, which are the closed gallery; test: the queries; labelled: those of ``train``
    whose labels are known, by default all; held_out: the open gallery, by default the queries themselves. repeat: which
    training of the same images this is, with another seed.
    """

    fold: int
    train: np.ndarray
    test: np.ndarray
    seed: int
    labelled: np.ndarray = None  # type: ignore[assignment]
    held_out: np.ndarray = None  # type: ignore[assignment]
    repeat: int = 0

    def __post_init__(self) -> None:
        for name, other in (("labelled", self.train), ("held_out", self.test)):
            if getattr(self, name) is None:
                object.__setattr__(self, name, other)

    def gallery(self, name: str) -> np.ndarray:
        """The images of one of :data:`GALLERIES`, or "all" of them: both, as a whole archive is searched."""
        both = np.union1d(self.train, self.held_out)
        return {"closed": self.train, "open": self.held_out, "all": both}[name]


def splits(fold_of: np.ndarray, seed: int) -> list[Split]:
    """Cross-validation: every fold asks once, the others are learnt from and searched; fold ``f`` has seed + f."""
    return [Split(f, *folds.split(fold_of, f), seed + f) for f in sorted(set(fold_of.tolist()))]


def query_splits(queries: Mapping[int, Queries], seed: int) -> list[Split]:
    """The same where only some of each fold's images ask: splits from the query set of each fold."""
    return [Split(f, part.train, part.queries, seed + f, held_out=part.held_out) for f, part in queries.items()]


def repeated(once: Sequence[Split], n_seeds: int) -> list[Split]:
    """The same splits ``n_seeds`` times over, each time with other training seeds: all of the first, then the second.

    The first time the seeds are those that the splits have.

    >>> [(part.fold, part.repeat, part.seed) for part in repeated(splits(np.array([0, 1]), seed=7), 2)]
    [(0, 0, 7), (1, 0, 8), (0, 1, 1007), (1, 1, 1008)]
    """
    checks.values(n_seeds=n_seeds)
    return [replace(part, seed=part.seed + 1000 * n, repeat=n) for n in range(n_seeds) for part in once]


def galleries(parts: Sequence[Split], groups: np.ndarray, k: int) -> list[str]:
    """Those of :data:`GALLERIES` in which every query has ``k`` images; a warning says why the open one is left out.

    The closed one is always there; a ``k`` too large for it is an error where it is searched.
    """
    most = longest_list(parts, groups)
    if k <= most:
        return list(GALLERIES)
    warnings.warn(
        f"no open gallery: without its own group some query has {most} images of unseen groups, fewer than k = {k}.",
        stacklevel=2,
    )
    return ["closed"]


def longest_list(parts: Sequence[Split], groups: np.ndarray) -> int:
    """How many images of other groups every query has in the open gallery; groups: (n,) of all images."""
    return int(min(len(split.held_out) - _own(split, groups, split.held_out).max() for split in parts))


def check(split: Split, groups: np.ndarray, gallery: np.ndarray, k: int, own_left_out: bool = False) -> None:
    """Raise InputError if a query searches images of its own group, or for more images than its gallery has.

    ``gallery``: indices; with ``own_left_out`` images of the query's group may be in it, and do not count.
    """
    own = _own(split, groups, gallery)
    if own.any() and not own_left_out:
        first = split.test[own.argmax()]
        asks = "is in the gallery itself" if first in gallery else f"finds images of its own group, {groups[first]}"
        raise InputError(
            f"fold {split.fold}: query image {first} {asks}, and so do {np.count_nonzero(own) - 1} others. "
            "Make the folds by group, and take the queries out of the gallery"
        )
    smallest = len(gallery) - own.max()
    if k > smallest:
        raise InputError(f"fold {split.fold}: k = {k}, but a query has a gallery of {smallest} images. Use a smaller k")


def has_own(split: Split, groups: np.ndarray) -> np.ndarray:
    """Which queries have an image of their own group in the closed gallery: (q,) of ``groups: (n,)`` of all images.

    >>> split = Split(0, train=np.array([2, 3]), test=np.array([0, 1]), seed=0)
    >>> has_own(split, np.array(["p", "q", "p", "r"])).tolist()
    [True, False]
    """
    return _own(split, groups, split.train) > 0


def _own(split: Split, groups: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """How many images of the gallery (indices) are of each query's own group."""
    return pd.Series(groups[gallery]).value_counts().reindex(groups[split.test], fill_value=0).to_numpy()
