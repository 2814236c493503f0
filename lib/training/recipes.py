"""What Hyper-DINO trains (Table 1): which features go in, and how long the embedding is."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lib import checks

LENGTHS = (5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 160, 200, 230, 270, 310, 350, 384)
"""Input lengths of Table 1; for 32 outputs the paper takes those from 40 on."""


@dataclass(frozen=True)
class Recipe:
    """One row of Hyper-DINO's Table 1: which features go in, and how long the embedding is.

    ``source`` is one of :data:`lib.heads.reduction.SOURCES`; ``dim_out`` 0 means no mapper at all: Euclidean
    retrieval on the reduced features, the baseline of [9]. Raises InputError for a length without meaning.
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


def recipes(
    dim: int,
    lengths: Sequence[int | str],
    dim_out: int = 32,
    longest: int | None = None,
    sources: Sequence[str] = ("PCA", "NCA"),
) -> list[Recipe]:
    """The recipes of Table 1 for features of ``dim`` numbers, and the baselines of [9].

    Args:
        dim: length of the feature.
        lengths: of PCA and NCA, and ``"full"``; the scaled features are always there. Lengths beyond ``dim`` are left
            out, so that the paper's list serves every encoder.
        dim_out: embedding length of the compact family (published: 32), from inputs that are longer than it.
        longest: the most principal components that the training images allow (:func:`longest_pca`).
        sources: of :data:`lib.heads.reduction.SOURCES`.

    Raises:
        InputError: if a length is neither a whole number from 1 on nor ``"full"``.

    >>> [recipe.name for recipe in recipes(8, [1, 4], dim_out=2, sources=["PCA"])][3:]
    ['PCA(1)', 'Hyper-DINO(PCA(1), 1)', 'PCA(4)', 'Hyper-DINO(PCA(4), 2)', 'Hyper-DINO(PCA(4), 4)']

    The paper's 62 configurations:

    >>> sum(recipe.dim_out > 0 for recipe in recipes(384, LENGTHS))
    62
    """
    checks.values(lengths=lengths, dim_out=dim_out)
    longest = dim if longest is None else longest
    inputs = [("scaled", dim)]
    for source in sources:
        most = dim if source == "NCA" else longest
        wanted = [most if length == "full" else int(length) for length in lengths]
        inputs += [(source, n) for n in wanted if n <= most]
    return [
        Recipe(source, n, out)
        for source, n in dict.fromkeys(inputs)
        for out in dict.fromkeys([0, dim_out, n] if n > dim_out else [0, n])
    ]


def contrasts(todo: Sequence[Recipe]) -> list[tuple[Recipe, Recipe]]:
    """The questions worth a test: at full PCA length, the compact embedding against no mapper and against ``dim_in``.

    >>> [(a.name, b.name) for a, b in contrasts(recipes(8, [4, 8], dim_out=2))]
    [('Hyper-DINO(PCA(8), 2)', 'PCA(8)'), ('Hyper-DINO(PCA(8), 2)', 'Hyper-DINO(PCA(8), 8)')]
    """
    longest = max(recipe.dim_in for recipe in todo if recipe.source == "PCA")
    baseline, compact, *others = (r for r in todo if r.source == "PCA" and r.dim_in == longest)
    return [(compact, other) for other in (baseline, *others)]
