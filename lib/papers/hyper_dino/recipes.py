"""What Hyper-DINO trains (Table 1): which features go in, and how long the embedding is."""

from collections.abc import Sequence

from lib import checks
from lib.training.recipes import Recipe

LENGTHS = (5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 160, 200, 230, 270, 310, 350, 384)
"""Input lengths of Table 1; for 32 outputs the paper takes those from 40 on."""

RAW = "raw features, cosine"
"""The opponent without scaler, PCA or training."""


def recipes(
    dim: int,
    lengths: Sequence[int | str],
    dim_out: int = 32,
    longest: int | None = None,
    sources: Sequence[str] = ("PCA", "NCA"),
    nca_lengths: Sequence[int | str] | None = None,
) -> list[Recipe]:
    """The recipes of Table 1 for features of ``dim`` numbers, and the baselines of [9].

    Args:
        dim: length of the feature.
        lengths: of PCA and NCA, and ``"full"``; the scaled features are always there. Lengths beyond ``dim`` are left
            out, so that the paper's list serves every encoder.
        dim_out: embedding length of the compact family (published: 32), from inputs that are longer than it.
        longest: the most principal components that the training images allow (:func:`longest_pca`).
        sources: of :data:`lib.heads.reduction.SOURCES`.
        nca_lengths: of NCA alone, which takes long from many numbers; by default ``lengths``.

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
        of_source = nca_lengths if source == "NCA" and nca_lengths is not None else lengths
        wanted = [most if length == "full" else int(length) for length in of_source]
        inputs += [(source, n) for n in wanted if n <= most]
    return [
        Recipe(source, n, out)
        for source, n in dict.fromkeys(inputs)
        for out in dict.fromkeys([0, dim_out, n] if n > dim_out else [0, n])
    ]
