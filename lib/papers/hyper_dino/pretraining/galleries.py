"""Encoders side by side: images of unseen groups search the training images, and each other."""

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler

from lib.geometry import Euclidean
from lib.metrics import retrieval

GALLERIES = ("closed", "open")


def search(
    x: np.ndarray, labels: np.ndarray, groups: np.ndarray, train: np.ndarray, test: np.ndarray, ks: Sequence[int]
) -> dict[str, retrieval.PerQuery]:
    """Let the images ``test`` ask two galleries by Euclidean distance of standard-scaled features.

    Args:
        x: (n, dim) features of all images; the scaler is fitted on ``train``.
        labels, groups: (n,) of all images.
        train, test: indices, without a group in common.
        ks: list lengths.

    Returns:
        ``"closed"``: the gallery is ``train``; ``"open"``: it is ``test`` itself without the query's own group, as in
        an archive that nothing was fitted on.
    """
    known, query = scaled(x, train, train), scaled(x, train, test)
    asked = labels[test]
    closed = retrieval.evaluate(query, known, asked, labels[train], Euclidean(), ks)
    opened = retrieval.evaluate(query, query, asked, asked, Euclidean(), ks, groups[test], groups[test])
    return dict(zip(GALLERIES, (closed, opened), strict=True))


def scaled(x: np.ndarray, train: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """The features of the images ``rows``, scaled as features ``x: (n, dim)`` of the images ``train`` ask for."""
    return torch.from_numpy(StandardScaler().fit(x[train]).transform(x[rows]).astype(np.float32))
