"""The experiment of the linear prototypes (Section III): frozen features → prototype head → retrieval.

PT, "pre-trained", is the search with frozen features, TL, "transfer-learned", the search with a trained head.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import joblib
import numpy as np
import pandas as pd
import torch
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from lib import checks
from lib.datasets.queries import Queries
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, Sphere
from lib.heads import PrototypeEncoder
from lib.losses.linear_prototypes import Comparison, EpisodeLoss
from lib.metrics import retrieval
from lib.processes import spread
from lib.training import hyper_dino, sweep
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.recipes import Recipe

CHUNK = 2
"""Heads in a stack: one is as large as three of Hyper-DINO's, and five folds should keep two processors busy."""


@dataclass(frozen=True)
class Settings:
    """A prototype head and how it is trained; the defaults are the published values.

    ``comparison``, ``temperature``: of the loss (published: squared Euclidean distance, none, which is 1).
    ``hidden``: width of the hidden layer, 0 for a single linear layer (LP-7). ``dim_out``: length of the embedding.
    Raises InputError for a value without meaning.
    """

    comparison: Comparison = field(default_factory=Comparison)
    temperature: float = 1.0
    hidden: int = 512
    dim_out: int = 128

    def __post_init__(self) -> None:
        checks.values(**vars(self))

    def head(self, dim_in: int, seed: int) -> PrototypeEncoder:
        """The untrained head."""
        generator = torch.Generator().manual_seed(seed)
        geometry = self.comparison.geometry
        return PrototypeEncoder(dim_in, self.dim_out, hidden=self.hidden, geometry=geometry, generator=generator)


@dataclass(frozen=True)
class Split:
    """Who is learnt from and who asks: indices of images, and the seed of all that is drawn at random.

    ``train``: the images of the training groups, which are the closed gallery; ``labelled``: those of them whose labels
    are known, usually all; ``test``: the class-balanced queries; ``held_out``: all images of the groups that asked.
    """

    fold: int
    train: np.ndarray
    labelled: np.ndarray
    test: np.ndarray
    held_out: np.ndarray
    seed: int

    def with_labels(self, labels: np.ndarray, per_class: int) -> "Split":
        """The same split where only ``per_class`` random training images of each class have a label."""
        rng = np.random.default_rng(self.seed)
        classes = [rng.permutation(self.train[labels[self.train] == c]) for c in np.unique(labels[self.train])]
        return replace(self, labelled=np.sort(np.concatenate([images[:per_class] for images in classes])))


def splits(queries: Mapping[int, Queries], seed: int) -> list[Split]:
    """The splits of cross-validation by group, from the query set of each fold; fold ``f`` has seed + f."""
    return [Split(f, one.train, one.train, one.queries, one.held_out, seed + f) for f, one in queries.items()]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A head fitted on one split; without a head it stands for the frozen features, without a scaler for raw ones.

    ``geometry``: where the embeddings live; ``history``: mean loss of every epoch.
    """

    split: Split
    scaler: StandardScaler | None = None
    head: nn.Module | None = None
    geometry: Geometry = field(default_factory=Euclidean)
    history: tuple[float, ...] = ()

    @torch.inference_mode()
    def embed(self, x: np.ndarray) -> Tensor:
        """Embeddings of features ``x: (n, dim)``."""
        values = x if self.scaler is None else self.scaler.transform(x)
        values = torch.from_numpy(np.asarray(values, dtype=np.float32))
        return values if self.head is None else self.head(values)


def frozen(x: np.ndarray, where: Sequence[Split], scaled: bool) -> list[Fitted]:
    """PT: features ``x: (n, dim)`` as they are, or standardised by the training images of each split."""
    return [Fitted(split, StandardScaler().fit(x[split.train]) if scaled else None) for split in where]


def fit(
    views: np.ndarray,
    labels: np.ndarray,
    where: Sequence[Split],
    settings: Settings,
    schedule: Episodes,
    *,
    workers: int = -1,
    what: str = "heads",
) -> list[Fitted]:
    """TL: one head per split, trained by episodes on the labelled images of the split.

    Features are standardised first, since the numbers of an encoder may have any unit; the paper does not say whether
    its are. A class with fewer than K + 1 labelled images is no prototype, its images stay in the gallery.

    Args:
        views: (V, n, dim) features of V views of each image, the first of which is the image itself.
        labels: (n,) integer classes.
        where: the splits.
        settings: head and loss.
        schedule: episodes; its ``views`` is set to V.
        workers, what: as in :func:`lib.training.sweep.fit`. The result does not depend on ``workers``.
    """
    schedule = replace(schedule, views=len(views))
    scalers = [StandardScaler().fit(views[0][split.train]) for split in where]
    heads = [settings.head(views.shape[2], split.seed) for split in where]
    tasks, losses = [], []
    for split, scaler, head in zip(where, scalers, heads, strict=True):
        rows = learnable(labels, split, schedule.k)
        x = np.concatenate([scaler.transform(view[rows]) for view in views]).astype(np.float32)
        classes, y = np.unique(labels[rows], return_inverse=True)
        tasks.append(sweep.Task(f"fold {split.fold}", head, x, np.tile(y, len(views)), split.seed))
        losses.append(EpisodeLoss(schedule.k, len(classes), settings.comparison, settings.temperature))
    histories = [()] * len(where)
    for loss in dict.fromkeys(losses):  # a fold may lack a class
        mine = [i for i, one in enumerate(losses) if one == loss]
        done = sweep.fit([tasks[i] for i in mine], loss, schedule, workers=workers, chunk=CHUNK, what=what)
        for i, history in zip(mine, done, strict=True):
            histories[i] = tuple(history)
    space = settings.comparison.geometry
    return [Fitted(*parts[:3], space, parts[3]) for parts in zip(where, scalers, heads, histories, strict=True)]


def fit_mapper(
    x: np.ndarray,
    labels: np.ndarray,
    where: Sequence[Split],
    settings: hyper_dino.Settings,
    schedule: Schedule,
    *,
    dim_out: int = 32,
    workers: int = -1,
    what: str = "mappers",
) -> list[Fitted]:
    """Hyper-DINO's mapper on the labelled images of every split, from the same standardised features ``x: (n, dim)``.

    Other arguments as :func:`fit`, with settings and schedule of :mod:`lib.training.hyper_dino`.
    """
    recipe = Recipe("scaled", x.shape[1], dim_out)
    scalers = [StandardScaler().fit(x[split.train]) for split in where]
    heads = [settings.mapper(recipe, split.seed) for split in where]
    tasks = [
        sweep.Task(
            f"fold {split.fold}",
            head,
            scaler.transform(x[split.labelled]).astype(np.float32),
            labels[split.labelled],
            split.seed,
        )
        for split, scaler, head in zip(where, scalers, heads, strict=True)
    ]
    histories = sweep.fit(tasks, settings.loss, schedule, workers=workers, chunk=CHUNK, what=what)
    return [
        Fitted(split, scaler, head, settings.geometry, tuple(history))
        for split, scaler, head, history in zip(where, scalers, heads, histories, strict=True)
    ]


def learnable(labels: np.ndarray, split: Split, k: int) -> np.ndarray:
    """The labelled images of the split whose class has at least k + 1 of them, as an episode needs.

    Raises InputError where fewer than two classes have.
    """
    known = labels[split.labelled]
    classes, counts = np.unique(known, return_counts=True)
    enough = classes[counts > k]
    if len(enough) < 2:
        few = ", ".join(f"{count} of class number {c}" for c, count in zip(classes, counts, strict=True) if count <= k)
        raise InputError(
            f"fold {split.fold}: K = {k} needs at least {k + 1} labelled images of two classes or more; there are only "
            f"{few}. Choose a smaller K"
        )
    return split.labelled[np.isin(known, enough)]


@dataclass(frozen=True, eq=False)
class Answer:
    """One method on one split: the values of every query."""

    split: Split
    per_query: retrieval.PerQuery


SEARCHES = ("cosine", "euclidean", "own")
"""How embeddings are compared in search: as the paper does, by their Euclidean distance, or as in training."""

GALLERIES = ("closed", "open")

PT, SCALED, TL = "PT, as they are", "PT, scaled", "TL"
"""Frozen features as the paper searches them, the same standardised as our heads get them, and the trained head."""


def pretrained_and_trained(
    features: Mapping[str, np.ndarray],
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    settings: Settings,
    schedule: Episodes,
    ks: Sequence[int],
) -> dict[str, dict[str, list[Answer]]]:
    """Gallery → "encoder, method" → its answers, for PT, scaled PT and TL of every encoder; cosine search.

    features: encoder → (V, n, dim) features of V views, V of each encoder's own. Other arguments as :func:`fit`.
    """
    checks.values(ks=ks)
    found: dict[str, dict[str, list[Answer]]] = {gallery: {} for gallery in galleries(where, groups, max(ks))}
    for encoder, views in features.items():
        methods = {
            PT: frozen(views[0], where, scaled=False),
            SCALED: frozen(views[0], where, scaled=True),
            TL: fit(views, labels, where, settings, schedule, what=f"heads on {encoder}"),
        }
        for gallery, answers in found.items():
            for method, fitted in methods.items():
                answers[f"{encoder}, {method}"] = ask(fitted, views[0], labels, groups, ks, gallery=gallery)
    return found


def galleries(where: Sequence[Split], groups: np.ndarray, k: int) -> list[str]:
    """Those of :data:`GALLERIES` in which every query has ``k`` images; a warning says why the open one is left out.

    The closed one is always there; a ``k`` too large for it is an error where it is searched.
    """
    most = min(len(split.held_out) - _own(split, groups, split.held_out).max() for split in where)
    if k <= most:
        return list(GALLERIES)
    warnings.warn(
        f"no open gallery: without its own group some query has {most} images of unseen groups, fewer than k = {k}.",
        stacklevel=2,
    )
    return ["closed"]


def ask(
    fitted: Sequence[Fitted],
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    ks: Sequence[int],
    *,
    search: str = "cosine",
    gallery: str = "closed",
    workers: int = -1,
) -> list[Answer]:
    """Let the queries of every split search its gallery.

    Args:
        fitted: one per split.
        x: (n, dim) features of the images. labels, groups: (n,).
        ks: list lengths.
        search: one of :data:`SEARCHES`.
        gallery: "closed": the training images; "open": the images of the held-out groups, without the query's own.

    Raises:
        InputError: for a query that is in its own gallery, and a k that is larger than the gallery.
    """
    jobs = (joblib.delayed(_ask)(one, x, labels, groups, tuple(ks), search, gallery) for one in fitted)
    return list(spread(jobs, workers))


def _ask(
    one: Fitted, x: np.ndarray, labels: np.ndarray, groups: np.ndarray, ks: tuple[int, ...], search: str, gallery: str
) -> Answer:
    split = one.split
    rows = {"closed": split.train, "open": split.held_out}[gallery]
    ids = (None, None) if gallery == "closed" else (groups[split.test], groups[rows])
    check(split, groups, rows, max(ks), own_left_out=gallery == "open")
    space = {"cosine": Sphere(), "euclidean": Euclidean(), "own": one.geometry}[search]
    query, items = one.embed(x[split.test]), one.embed(x[rows])
    return Answer(split, retrieval.evaluate(query, items, labels[split.test], labels[rows], space, ks, *ids))


def check(split: Split, groups: np.ndarray, gallery: np.ndarray, k: int, own_left_out: bool = False) -> None:
    """Raise InputError if a query searches images of its own group, or for more images than its gallery has.

    ``gallery``: indices; with ``own_left_out`` images of the query's group may be in it, and do not count.
    """
    own = _own(split, groups, gallery)
    if own.any() and not own_left_out:
        first = split.test[own.argmax()]
        asks = "is in the gallery itself" if first in gallery else f"finds images of its own group, {groups[first]}"
        raise InputError(
            f"fold {split.fold}: query image {first} {asks}, and so do {np.count_nonzero(own) - 1} others. "
            "Make the folds by group, and take the queries out of the gallery"
        )
    smallest = len(gallery) - own.max()
    if k > smallest:
        raise InputError(f"fold {split.fold}: k = {k}, but a query has a gallery of {smallest} images. Use a smaller k")


def _own(split: Split, groups: np.ndarray, gallery: np.ndarray) -> np.ndarray:
    """How many images of the gallery (indices) are of each query's own group."""
    return pd.Series(groups[gallery]).value_counts().reindex(groups[split.test], fill_value=0).to_numpy()
