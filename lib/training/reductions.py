"""Fit what comes before a head, an NCA or the PCA of a long feature once and for all: they take seconds to minutes."""

from dataclasses import replace

import numpy as np
import torch

from lib.heads.reduction import Reduction
from lib.training import kept

LONG = 256
"""Numbers, or images, from which on a PCA takes more than a moment."""


def fit(
    train: np.ndarray,
    labels: np.ndarray,
    source: str,
    n: int,
    *,
    store: kept.Store,
    half: bool = True,
    nca_images: int = 2000,
    seed: int = 0,
) -> Reduction:
    """:meth:`lib.heads.reduction.Reduction.fit`, to the bit; what was fitted before comes from ``store``.

    The principal components of all lengths are the first ones of the longest, which is what is kept.
    """
    options = {"half": half, "nca_images": nca_images, "seed": seed}
    longest = min(train.shape)
    if source == "NCA":
        kept_n, decides = n, (nca_images, seed, labels)
    elif source in ("PCA", "whitened") and longest >= LONG and 1 <= n <= longest:
        kept_n, decides = longest, ()
    else:
        return Reduction.fit(train, labels, source, n, **options)

    def matrix() -> torch.Tensor:
        return torch.from_numpy(Reduction.fit(train, labels, source, kept_n, **options).matrix)

    code = kept.code({Reduction.__module__}, "sklearn", "scipy", "numpy")
    fitted = kept.once(store, kept.key(source, kept_n, decides, train, code), matrix)
    scaled = Reduction.fit(train, labels, "scaled", train.shape[1], **options)
    first = fitted.numpy()[:, :n]
    return replace(scaled, matrix=first.copy(order="K") if source == "whitened" else first)
