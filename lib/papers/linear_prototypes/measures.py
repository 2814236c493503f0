"""What a head does to the space of the embeddings: compactness, separation, and is it linear?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.base import ClassifierMixin, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import davies_bouldin_score, silhouette_samples
from sklearn.neighbors import NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from lib.datasets import folds
from lib.metrics.classes import over_classes
from lib.metrics.directions import effective_rank
from lib.processes import spread
from lib.training.methods import Fitted
from lib.training.splits import Split

MEASURES = {
    "compactness": "within / between",
    "silhouette": "silhouette",
    "davies_bouldin": "Davies–Bouldin",
    "linear": "linear classifier, %",
    "kernel": "kernel classifier, %",
    "centroid": "nearest centroid, %",
    "effective_rank": "effective rank",
}
IMAGES = ("silhouette", "linear", "kernel", "centroid")
"""What every held-out image has a value of: its silhouette times 100, and whether a classifier is right (0 or 100)."""

GAMMAS = (0.3, 1.0, 3.0)
"""Widths of the kernel exp(−γ d²/D), where D is the mean squared distance of two training images."""
LANDMARKS = 200
"""Training images that the kernel classifier compares an image with."""
PENALTIES = np.logspace(-3, 1, 5)
CLASSIFIERS = ("linear", "kernel")


@dataclass(frozen=True, eq=False)
class Space:
    """Embeddings of one method on one split, of the training images and of the held-out ones, and all their groups."""

    train: np.ndarray
    held_out: np.ndarray
    train_labels: np.ndarray
    held_out_labels: np.ndarray
    train_groups: np.ndarray
    held_out_groups: np.ndarray


@dataclass(frozen=True, eq=False)
class Measured:
    """A space in numbers: the value of each of :data:`MEASURES`, and of each held-out image, with its group."""

    fold: int
    repeat: int
    values: dict[str, float]
    images: pd.DataFrame


def embed(fitted: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray) -> Space:
    """Both parts of the split of ``fitted``, rows scaled to length 1, as cosine search sees them.

    x: (n, dim) features; labels, groups: (n,).
    """
    train, held_out = fitted.split.train, fitted.split.held_out
    parts = [fitted.embed(x[rows]).double().numpy() for rows in (train, held_out)]
    unit = [part / np.maximum(np.linalg.norm(part, axis=1, keepdims=True), 1e-12) for part in parts]  # 0 stays 0
    return Space(*unit, labels[train], labels[held_out], groups[train], groups[held_out])


def compactness(x: np.ndarray, labels: np.ndarray) -> float:
    """Mean squared distance to the centroid of the own class over that between the centroids of two classes.

    >>> float(compactness(np.array([[0.0], [2.0], [10.0], [12.0]]), np.array([0, 0, 1, 1])))
    0.01
    """
    names = np.unique(labels)
    centres = np.stack([x[labels == name].mean(axis=0) for name in names])
    within = np.mean([((x[labels == n] - centre) ** 2).sum(1).mean() for n, centre in zip(names, centres, strict=True)])
    first, second = np.triu_indices(len(names), k=1)
    return within / ((centres[first] - centres[second]) ** 2).sum(1).mean()


def judge(space: Space, seed: int = 0) -> pd.DataFrame:
    """Every held-out image: columns label, group and :data:`IMAGES`; classifiers learn from the training images.

    Width and penalty of the classifiers are chosen by folds of the training groups. A class with one held-out image has
    no silhouette, one that the training images lack has no classifier: these images are left out. With fewer than two
    classes left there are none.
    """
    known = np.isin(space.held_out_labels, np.unique(space.train_labels))
    counts = pd.Series(space.held_out_labels[known]).value_counts()
    known &= np.isin(space.held_out_labels, counts.index[counts > 1])
    x, y = space.held_out[known], space.held_out_labels[known]
    images = pd.DataFrame({"label": y, "group": space.held_out_groups[known]}, index=np.flatnonzero(known))
    if len(np.unique(y)) < 2:
        return images.iloc[:0].reindex(columns=[*images.columns, *IMAGES])
    classifiers = {name: classifier(space, name, seed) for name in CLASSIFIERS}
    classifiers["centroid"] = NearestCentroid().fit(space.train, space.train_labels)
    right = {name: 100.0 * (model.predict(x) == y) for name, model in classifiers.items()}
    return images.assign(silhouette=100 * silhouette_samples(x, y), **right)


def classifier(space: Space, kind: str, seed: int = 0) -> ClassifierMixin:
    """A ridge classifier of the embeddings ("linear") or of an RBF kernel with :data:`LANDMARKS` images ("kernel").

    Width and penalty are those with the best mean over the classes in three folds of the training groups.
    """
    y, apart = space.train_labels, 2 * space.train.var(axis=0).sum()
    inner, _ = folds.apart(y.astype(str), space.train_groups, 3, seed)
    size = min(LANDMARKS, *(np.count_nonzero(inner != fold) for fold in np.unique(inner)))
    maps: dict[str, list[TransformerMixin]] = {
        "linear": [FunctionTransformer()],
        "kernel": [Nystroem(gamma=gamma / apart, n_components=size, random_state=seed) for gamma in GAMMAS],
    }
    scores = {}
    for number, feature_map in enumerate(maps[kind]):
        for fold in np.unique(inner):
            learn, ask = np.flatnonzero(inner != fold), np.flatnonzero(inner == fold)
            fitted = clone(feature_map).fit(space.train[learn])
            z, queries = fitted.transform(space.train[learn]), fitted.transform(space.train[ask])
            for alpha in PENALTIES:
                right = _ridge(alpha).fit(z, y[learn]).predict(queries) == y[ask]
                scores[number, alpha] = scores.get((number, alpha), 0) + _balanced(right, y[ask])
    number, alpha = max(scores, key=scores.__getitem__)
    return make_pipeline(maps[kind][number], _ridge(alpha)).fit(space.train, y)


def _ridge(alpha: float) -> RidgeClassifier:
    return RidgeClassifier(alpha, class_weight="balanced")


def _balanced(values: np.ndarray, labels: np.ndarray) -> float:
    """The mean over the classes of their means."""
    return float(over_classes(pd.Series(values), labels))


def measure(space: Space, images: pd.DataFrame) -> dict[str, float]:
    """All of :data:`MEASURES` on the held-out images that were judged, NaN where none was; images: of :func:`judge`.

    Accuracies are the mean over the classes, in percent.
    """
    if images.empty:
        return dict.fromkeys(MEASURES, np.nan)
    x, y = space.held_out[images.index], images["label"].to_numpy()
    return {
        "compactness": compactness(x, y),
        "silhouette": images["silhouette"].mean() / 100,
        "davies_bouldin": davies_bouldin_score(x, y),
        "effective_rank": effective_rank(torch.from_numpy(x)).item(),
    } | {name: _balanced(images[name].to_numpy(), y) for name in ("linear", "kernel", "centroid")}


def measured(
    fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray, groups: np.ndarray, seed: int = 0
) -> dict[str, list[Measured]]:
    """Name → its space on every split in numbers; what is not trained is measured once and is the same in each repeat.

    fitted: name → one per split. x: (n, dim) features; labels, groups: (n,).
    """
    todo = {
        (name, head.split.fold, head.split.repeat): head
        for name, trainings in fitted.items()
        for head in trainings
        if head.network is not None or head.split.repeat == 0
    }
    jobs = (joblib.delayed(_measured)(head, x, labels, groups, seed) for head in todo.values())
    done = dict(zip(todo, spread(jobs), strict=True))

    def on_split(name: str, split: Split) -> Measured:
        same = done.get((name, split.fold, split.repeat)) or done[name, split.fold, 0]
        return replace(same, repeat=split.repeat)

    return {name: [on_split(name, head.split) for head in trainings] for name, trainings in fitted.items()}


def _measured(fitted: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, seed: int) -> Measured:
    space = embed(fitted, x, labels, groups)
    images = judge(space, seed)
    return Measured(fitted.split.fold, fitted.split.repeat, measure(space, images), images)


def control(space: Space, seed: int = 0) -> dict[str, float]:
    """Could the probe have found what is not linear? Accuracy (percent) of both classifiers where it certainly is not.

    Principal components of the same variances, each shuffled over the images by itself so that none tells of another,
    and two classes: the first two components on the same side of their medians, or on different sides (XOR). No plane
    divides them, so that a linear classifier can only guess.
    """
    rng = np.random.default_rng(seed)
    pca = PCA(min(128, *space.train.shape), svd_solver="full").fit(space.train)
    middle = np.median(pca.transform(space.train)[:, :2], axis=0)
    shuffled = [rng.permuted(pca.transform(x), axis=0) for x in (space.train, space.held_out)]
    classes = [(x[:, :2] > middle).sum(axis=1) % 2 for x in shuffled]
    crossed = Space(*shuffled, *classes, space.train_groups, space.held_out_groups)
    return {
        kind: 100 * _balanced(classifier(crossed, kind, seed).predict(shuffled[1]) == classes[1], classes[1])
        for kind in CLASSIFIERS
    }


def first_components(space: Space, n: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Coordinates (m, n) of the held-out images on components of the training images, and their variance (percent)."""
    pca = PCA(n, svd_solver="full").fit(space.train)
    xyz = pca.transform(space.held_out)
    signs = np.where(np.abs(xyz).max(0) == xyz.max(0), 1, -1)  # the sign of a component means nothing: fix it
    return signs * xyz, 100 * pca.explained_variance_ratio_
