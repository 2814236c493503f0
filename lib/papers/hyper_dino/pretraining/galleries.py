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
    scaled = torch.from_numpy(StandardScaler().fit(x[train]).transform(x).astype(np.float32))
    query, asked = scaled[test], labels[test]
    closed = retrieval.evaluate(query, scaled[train], asked, labels[train], Euclidean(), ks)
    opened = retrieval.evaluate(query, query, asked, asked, Euclidean(), ks, groups[test], groups[test])
    return dict(zip(GALLERIES, (closed, opened), strict=True))
