"""Pictures of many numbers on a page, and how much of the neighbourhoods they keep (Fig. 4)."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from sklearn.manifold import TSNE, trustworthiness
from sklearn.neighbors import NearestNeighbors

from lib.errors import InputError
from lib.heads.scaling import widths
from lib.papers.acir.novelty.experiment import Coder
from lib.papers.acir.novelty.scene import FAR, KNOWN, NEAR, Scene

NEIGHBOURS = 10
MOST = 250
"""Known images on a page: all novel ones are there."""


@dataclass(frozen=True, eq=False)
class Page:
    """Points of a t-SNE (n, 2), and what is left of neighbourhoods.

    kept: of the 10 nearest neighbours of a point, how many are so on the page as well. trust: scikit-learn's
    trustworthiness, 1 where no neighbour on the page comes from far away. chance: ``kept`` of a page in random order.
    """

    points: np.ndarray
    kept: float
    trust: float
    chance: float


def page(x: np.ndarray, seed: int, perplexity: float = 30.0) -> Page:
    """A t-SNE of ``x: (n, d)`` from its principal components; each column is standardised, as distances are Euclidean.

    Raises InputError for too few points for the perplexity.
    """
    if len(x) <= 3 * perplexity:
        raise InputError(
            f"{len(x)} points are too few for a perplexity of {perplexity:g}: take more than three times it"
        )
    z = ((x - x.mean(axis=0)) / widths(x.std(axis=0))).astype(np.float32)
    points = TSNE(init="pca", random_state=seed, perplexity=perplexity, n_jobs=1).fit_transform(z)
    trust = trustworthiness(z, points, n_neighbors=NEIGHBOURS)
    return Page(points, kept(z, points), float(trust), NEIGHBOURS / (len(x) - 1))


def kept(x: np.ndarray, y: np.ndarray, k: int = NEIGHBOURS) -> float:
    """Which share of the ``k`` nearest neighbours of the points ``x: (n, d)`` are so in ``y: (n, e)`` too.

    >>> kept(np.array([[0.0], [1.0], [3.0]]), np.array([[0.0], [1.0], [1.5]]), k=1)
    0.6666666666666666
    """
    first, second = (NearestNeighbors(n_neighbors=k).fit(points).kneighbors(return_distance=False) for points in (x, y))
    return float(np.mean([len(set(a) & set(b)) / k for a, b in zip(first.tolist(), second.tolist(), strict=True)]))


def chosen(scene: Scene, seed: int) -> np.ndarray:
    """Who is drawn: at most :data:`MOST` known images of those who ask, at random, and all novel ones."""
    known = np.random.default_rng(seed).permutation(scene.rows(KNOWN))[:MOST]
    return np.concatenate([np.sort(known), scene.rows(NEAR, FAR)])


def spaces(csq: Coder, acir: Coder) -> dict[str, np.ndarray]:
    """What comes before the last layer, and what comes out of it before the sign."""
    return {
        "before CSQ's layer: frozen features": csq.inside,
        "before ACIR's KAN": acir.inside,
        "CSQ, code before the sign": csq.h,
        "ACIR, code before the sign": acir.h,
    }


def frame(pages: dict[str, Page], kind: np.ndarray, part: np.ndarray) -> pd.DataFrame:
    """All pages as rows: panel, x, y, kind, part, and the panel's kept and trust."""
    frames = [
        pd.DataFrame({"panel": name, "x": one.points[:, 0], "y": one.points[:, 1], "kind": kind, "part": part}).assign(
            kept=one.kept, trust=one.trust
        )
        for name, one in pages.items()
    ]
    return pd.concat(frames, ignore_index=True)
