"""ACIR's Algorithm 1: a query is refused with the reason, or answered by Hamming distance and then by content."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from lib import checks
from lib.errors import InputError
from lib.metrics import hashing
from lib.search.refusal import Gate, refuse


@dataclass(frozen=True, eq=False)
class Recommended:
    """What an archive says to one query.

    reason: why it is refused; None if it is answered, and then: images: (k,) places in the archive, best first;
    distance: (k,) bits; content: (k,) mean Pearson coefficient, from −1 to 1. All three are empty for a refused query.
    """

    reason: str | None
    images: np.ndarray
    distance: np.ndarray
    content: np.ndarray


@dataclass(frozen=True, eq=False)
class Archive:
    """Step 1 for m images, and what a query has to pass.

    codes: (m, bytes) uint8, as :func:`lib.metrics.hashing.pack` makes them. levels: features (m, ·) of each level of
    the network. gates: Step 3's limits; without any, every query is answered. Raises InputError for codes that are not
    packed, and for levels of another number of images.
    """

    codes: np.ndarray
    levels: Sequence[np.ndarray]
    gates: Sequence[Gate] = ()

    def __post_init__(self) -> None:
        hashing.check_packed("archive", self.codes)
        for number, level in enumerate(self.levels, start=1):
            if len(level) != len(self.codes):
                raise InputError(f"level {number} has {len(level)} images, but there are {len(self.codes)} codes")

    def recommend(
        self, code: np.ndarray, levels: Sequence[ArrayLike], scores: Sequence[float] = (), k: int = 10
    ) -> Recommended:
        """Steps 2 to 5 for one query; of images equal in distance and content, the first in the archive comes first.

        Args:
            code: (bytes,) uint8, as long as those of the archive.
            levels: (·,) features of the query at each level.
            scores: what the ``gates`` look at, in their order, such as the reconstruction error.
            k: how many images.

        Raises:
            InputError: for a code or levels unlike the archive's, a k larger than it, or scores that do not fit.

        >>> archive = Archive(np.array([[1], [0], [1]], np.uint8), [np.array([[0, 1], [1, 0], [1, 0]])])
        >>> archive.recommend(np.array([1], np.uint8), [[2, 1]], k=3).images.tolist()
        [2, 0, 1]
        """
        self._check(code, levels, k)
        if reason := refuse(self.gates, scores):
            nothing = np.empty(0)
            return Recommended(reason, nothing.astype(int), nothing.astype(int), nothing)
        distance = hashing.hamming(code[None], self.codes)[0].astype(int)
        content = hashing.content_similarity([np.asarray(level)[None] for level in levels], self.levels)[0]
        first = np.lexsort((-content, distance))[:k]
        return Recommended(None, first, distance[first], content[first])

    def _check(self, code: np.ndarray, levels: Sequence[ArrayLike], k: int) -> None:
        m, width = self.codes.shape
        if code.dtype != np.uint8 or code.shape != (width,):
            raise InputError(
                f"the query's code is {code.dtype} of shape {code.shape}; codes of this archive are uint8 of {width} "
                "bytes: train and pack both alike"
            )
        if (theirs := [np.shape(level) for level in levels]) != (ours := [level.shape[1:] for level in self.levels]):
            raise InputError(f"the query's levels are {theirs}, those of the archive {ours}: take the same network's")
        checks.within(k, m, f"archive has {m} images")
