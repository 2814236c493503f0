"""Fit what comes before a head, an NCA once and for all: it takes seconds to minutes, everything else milliseconds."""

import hashlib
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import torch

from lib.heads.reduction import Reduction
from lib.training import kept


def fit(
    train: np.ndarray,
    labels: np.ndarray,
    source: str,
    n: int,
    *,
    store: Path | None,
    half: bool = True,
    nca_images: int = 2000,
    seed: int = 0,
) -> Reduction:
    """:meth:`lib.heads.reduction.Reduction.fit`, to the bit; an NCA that was fitted before comes from ``store``."""
    options = {"half": half, "nca_images": nca_images, "seed": seed}
    if source != "NCA":
        return Reduction.fit(train, labels, source, n, **options)

    def matrix() -> torch.Tensor:
        return torch.from_numpy(Reduction.fit(train, labels, source, n, **options).matrix)

    found = kept.once(store, _key(train, labels, n, nca_images, seed, _code()), matrix)
    scaled = Reduction.fit(train, labels, "scaled", train.shape[1], **options)
    return replace(scaled, matrix=found.numpy())


def _code() -> str:
    """The fingerprint of the code that fits."""
    return kept.code({Reduction.__module__}, "sklearn", "scipy", "numpy")


def _key(train: np.ndarray, labels: np.ndarray, n: int, nca_images: int, seed: int, code: str) -> str:
    """A hash of everything that the matrix of an NCA depends on; ``half`` concerns what it makes of features."""
    return hashlib.sha256(f"NCA {n} {nca_images} {seed} {joblib.hash([train, labels])} {code}".encode()).hexdigest()
