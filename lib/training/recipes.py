"""Which features go into a head, and how long the embedding is."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lib import checks


@dataclass(frozen=True)
class Recipe:
    """Which features go in, and how long the embedding is: one row of Hyper-DINO's Table 1.

    ``source`` is one of :data:`lib.heads.reduction.SOURCES`; ``dim_out`` 0 means no mapper at all: Euclidean
    retrieval on the reduced features. Raises InputError for a length without meaning.
    """

    source: str
    dim_in: int
    dim_out: int

    def __post_init__(self) -> None:
        checks.values(dim_in=self.dim_in)
        checks.whole("dim_out", self.dim_out, least=0)

    @property
    def family(self) -> str:
        """Column of the paper's tables: ``baseline``, ``dim_in``, or the embedding length."""
        return {0: "baseline", self.dim_in: "dim_in"}.get(self.dim_out, str(self.dim_out))

    @property
    def input(self) -> str:
        """What goes in: ``PCA(384)``, or ``384 scaled`` for the paper's [CLS]."""
        return f"{self.dim_in} scaled" if self.source == "scaled" else f"{self.source}({self.dim_in})"

    @property
    def name(self) -> str:
        """As the paper writes it: ``Hyper-DINO(PCA(384), 32)``, and the bare input for the baseline."""
        return f"Hyper-DINO({self.input}, {self.dim_out})" if self.dim_out else self.input


def allowed_ks(ks: Sequence[int], folds_of: Iterable[np.ndarray]) -> list[int]:
    """The list lengths that the smallest gallery of training images can fill, or its size where none fits.

    Longer ones are left out with a warning: they would be counted as if filled up with wrong answers.

    >>> allowed_ks([1, 5], [np.arange(10) % 5])
    [1, 5]
    """
    smallest = _smallest_training_part(folds_of)
    if max(ks) <= smallest:
        return list(ks)
    kept = [k for k in ks if k <= smallest] or [smallest]
    left_out = ", ".join(str(k) for k in ks if k > smallest)
    warnings.warn(f"k = {left_out} is left out: a gallery has {smallest} images only.", stacklevel=2)
    return kept


def longest_pca(dim: int, folds_of: Iterable[np.ndarray]) -> int:
    """The most components that every training part allows: ``dim``, or its number of images if that is smaller.

    >>> longest_pca(156, [np.array([0, 0, 0, 1, 1])])
    2
    """
    return min(dim, _smallest_training_part(folds_of))


def _smallest_training_part(folds_of: Iterable[np.ndarray]) -> int:
    return int(min(len(fold_of) - np.bincount(fold_of).max() for fold_of in folds_of))
