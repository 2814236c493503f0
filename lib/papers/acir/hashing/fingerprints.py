"""Fingerprints, small copies of images: how they are read, how alike they are, and which pairs they call neutral."""

import numpy as np
import pandas as pd
import torch

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.losses.acir import fingerprints, likeness
from lib.training.splits import Split


def small_copies(images: ImageTable, side: int) -> np.ndarray:
    """The fingerprint of every image, (n, 3·side²) float32, values from 0 to 1."""
    return np.concatenate([_small(images, i, side) for i in range(len(images))])


def _small(images: ImageTable, i: int, side: int) -> np.ndarray:
    pixels = torch.from_numpy(np.array(read_image(images.path(i)))).permute(2, 0, 1)[None]
    return fingerprints(pixels.float() / 255, side).numpy()


def looks(prints: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> pd.DataFrame:
    """How alike pairs of fingerprints are, by both measures: quantiles over pairs of one class, and of two.

    Columns likeness, pairs, n_pairs, low, median, high (tenths 1, 5 and 9).
    """
    first, second = np.triu_indices(len(labels), k=1)
    own, same = labels[first] == labels[second], groups[first] == groups[second]
    kinds = {"one class": own, "two classes": ~own, "two classes, one group": ~own & same}
    rows = []
    for kind in ("pearson", "cosine"):
        h = likeness(torch.from_numpy(prints), kind).numpy()[first, second]
        for name, chosen in kinds.items():
            if chosen.any():
                low, median, high = np.quantile(h[chosen], [0.1, 0.5, 0.9])
                counts = {"likeness": kind, "pairs": name, "n_pairs": int(chosen.sum())}
                rows.append(counts | {"low": low, "median": median, "high": high})
    return pd.DataFrame(rows)


def neutral_limit(prints: np.ndarray, labels: np.ndarray, split: Split) -> float:
    """The median likeness of fingerprints (n, p) of two images of one class, among those that teach."""
    of = labels[split.train]
    first, second = np.triu_indices(len(of), k=1)
    h = likeness(torch.from_numpy(prints[split.train])).numpy()[first, second]
    return float(np.median(h[of[first] == of[second]]))
