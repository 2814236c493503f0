"""Encoders side by side: images of unseen groups search the training images, and each other."""

from collections.abc import Sequence

import numpy as np
import torch

from lib.geometry import Euclidean, Sphere
from lib.heads.reduction import standard
from lib.metrics import retrieval

GALLERIES = ("closed", "open")

BY_COSINE = ", by cosine"
"""Behind an encoder's name: its features unscaled, searched by the cosine."""


def search(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    ks: Sequence[int],
    *,
    cosine: bool = False,
) -> dict[str, retrieval.PerQuery]:
    """Let the images ``test`` ask two galleries by Euclidean distance of standard-scaled features, or by the cosine.

    Args:
        x: (n, dim) features of all images; the scaler is fitted on ``train``.
        labels, groups: (n,) of all images.
        train, test: indices, without a group in common.
        ks: list lengths.
        cosine: features as they are, by their cosine.

    Returns:
        ``"closed"``: the gallery is ``train``; ``"open"``: it is ``test`` itself without the query's own group, as in
        an archive that nothing was fitted on.
    """
    space = Sphere() if cosine else Euclidean()
    known, query = (torch.from_numpy(x[rows]) if cosine else scaled(x, train, rows) for rows in (train, test))
    asked = labels[test]
    closed = retrieval.evaluate(query, known, asked, labels[train], space, ks)
    opened = retrieval.evaluate(query, query, asked, asked, space, ks, groups[test], groups[test])
    return dict(zip(GALLERIES, (closed, opened), strict=True))


def scaled(x: np.ndarray, train: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """The features of the images ``rows``, scaled as features ``x: (n, dim)`` of the images ``train`` ask for."""
    return torch.from_numpy(standard(x[train]).transform(x[rows]).astype(np.float32))
