"""Hyper-DINO's experiment (sections 3.2 and 3.3): reduced features → mapper → retrieval, cross-validated."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import joblib
import numpy as np
import torch
from torch import Tensor

from lib import checks
from lib.datasets import folds
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.heads import HyperbolicMapper, Reduction
from lib.losses import hyper_dino
from lib.metrics import retrieval
from lib.processes import spread
from lib.progress import track
from lib.training import sweep
from lib.training.fit import Schedule
from lib.training.recipes import Recipe


@dataclass(frozen=True)
class Settings:
    """Mapper and loss; the defaults are the published values where the paper prints one.

    Raises InputError for a value without meaning.
    """

    hidden: int = 256
    geometry: Geometry = field(default_factory=PoincareBall)
    delta: float = 1e-3
    m0: float = 0.5
    alpha: float = 0.1
    norm_weight: float = 1e-3
    self_pairs: bool = False
    detach_mean: bool = True
    half: bool = True
    nca_images: int = 2000

    def __post_init__(self) -> None:
        checks.values(**vars(self))
        checks.whole("hidden", self.hidden)

    def mapper(self, recipe: Recipe, seed: int) -> HyperbolicMapper:
        """The untrained mapper of a recipe."""
        generator = torch.Generator().manual_seed(seed)
        return HyperbolicMapper(
            recipe.dim_in,
            recipe.dim_out,
            hidden=self.hidden,
            geometry=self.geometry,
            delta=self.delta,
            generator=generator,
        )

    def loss(self, h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """The contrastive loss of one batch, or of a stack of batches."""
        options = {name: getattr(self, name) for name in ("m0", "alpha", "norm_weight", "self_pairs", "detach_mean")}
        return hyper_dino.contrastive(h, labels, self.geometry, valid=valid, **options).total

    @torch.inference_mode()
    def embed(self, head: HyperbolicMapper | None, x: np.ndarray) -> Tensor:
        """Embeddings of reduced features ``x: (n, dim_in)``, the features themselves without a ``head``.

        With ``half`` they are rounded to float16 as they would be stored, then projected again, since rounding can
        put a point onto the rim (HD-10); distances are taken in float32. Raises InputError for an embedding too large
        for float16, which a flat one can be.
        """
        values = torch.from_numpy(x)
        if head is None:
            return values
        values = head(values)
        if not self.half:
            return values
        largest = values.abs().max().item() if values.numel() else 0.0
        checks.fits("embeddings", largest, 16, "keep float32 (half=False), or train with a lower learning rate")
        return head.onto(values.half().float())


@dataclass(frozen=True)
class Split:
    """Who may be learnt from and who asks: indices of images, and the seed of all that is drawn at random."""

    fold: int
    train: np.ndarray
    test: np.ndarray
    seed: int


def splits(fold_of: np.ndarray, seed: int) -> list[Split]:
    """Cross-validation: every fold asks once, the others are learnt from and searched; fold ``f`` has seed + f."""
    return [Split(f, *folds.split(fold_of, f), seed + f) for f in sorted(set(fold_of.tolist()))]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A recipe fitted on one split: its map from features to embeddings, and how the training went."""

    recipe: Recipe
    split: Split
    reduction: Reduction
    head: HyperbolicMapper | None
    history: list[float]
    settings: Settings

    @property
    def geometry(self) -> Geometry:
        """Where the embeddings live: flat space without a mapper."""
        return Euclidean() if self.head is None else self.settings.geometry

    def embed(self, x: np.ndarray) -> Tensor:
        """Embeddings (n, d) of features ``x: (n, dim)``."""
        return self.settings.embed(self.head, self.reduction(x))


def fit(
    x: np.ndarray,
    labels: np.ndarray,
    todo: Sequence[Recipe],
    where: Sequence[Split],
    settings: Settings,
    schedule: Schedule,
    *,
    store: Path | None = None,
    workers: int = -1,
    what: str = "heads",
) -> list[Fitted]:
    """Fit every recipe on the training part of every split: scaler and PCA or NCA, then all mappers at once.

    Args:
        x: (n, dim) features.
        labels: (n,) integer classes.
        todo: the recipes.
        where: the splits; they vary slowest in the result. Recipes of one split see the images in one order.
        settings, schedule: mapper, loss and training.
        store, workers, what: as in :func:`lib.training.sweep.fit`.
    """
    inputs = list(
        dict.fromkeys((split_, recipe.source, recipe.dim_in) for split_ in range(len(where)) for recipe in todo)
    )
    jobs = (joblib.delayed(_reduce)(x, labels, where[s], source, n, settings) for s, source, n in inputs)
    found = spread(jobs, workers)
    reduced = dict(zip(inputs, track(found, total=len(inputs), what=f"{what}, inputs", unit="inputs"), strict=True))

    pairs = [(s, recipe) for s in range(len(where)) for recipe in todo]
    heads = {pair: settings.mapper(pair[1], where[pair[0]].seed) for pair in pairs if pair[1].dim_out}
    tasks = []
    for (s, recipe), head in heads.items():
        part = where[s]
        rows = reduced[s, recipe.source, recipe.dim_in][1]
        tasks.append(sweep.Task(f"{recipe.name}, fold {part.fold}", head, rows, labels[part.train], part.seed))
    histories = sweep.fit(tasks, settings.loss, schedule, store=store, workers=workers, what=what)
    history = dict(zip(heads, histories, strict=True))
    return [
        Fitted(
            recipe,
            where[s],
            reduced[s, recipe.source, recipe.dim_in][0],
            heads.get((s, recipe)),
            history.get((s, recipe), []),
            settings,
        )
        for s, recipe in pairs
    ]


def _reduce(
    x: np.ndarray, labels: np.ndarray, where: Split, source: str, n: int, settings: Settings
) -> tuple[Reduction, np.ndarray]:
    """A reduction fitted on the training part, and that part reduced."""
    options = {"half": settings.half, "nca_images": settings.nca_images, "seed": where.seed}
    reduction = Reduction.fit(x[where.train], labels[where.train], source, n, **options)
    return reduction, reduction(x[where.train])


@dataclass(frozen=True, eq=False)
class Outcome:
    """One recipe on one split: loss per epoch, norms of the gallery's embeddings, values per query."""

    recipe: Recipe
    fold: int
    history: list[float]
    norms: np.ndarray
    per_query: retrieval.PerQuery


def crossvalidate(
    x: np.ndarray,
    labels: np.ndarray,
    fold_of: np.ndarray,
    todo: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    *,
    ks: Sequence[int] = (1, 5, 10, 20),
    seed: int = 0,
    store: Path | None = None,
    workers: int = -1,
    what: str = "heads",
) -> list[Outcome]:
    """Fit every recipe on every fold's training part; let every image of the fold query the training images.

    Args:
        x: (n, dim) features.
        labels: (n,) integer classes.
        fold_of: (n,) the test fold of each image.
        todo: the recipes.
        settings, schedule: mapper, loss and training.
        ks: list lengths at which the metrics are taken.
        seed: fold ``f`` uses ``seed + f``.
        store, workers, what: as in :func:`lib.training.sweep.fit`. The result does not depend on ``workers``.

    Returns:
        The outcomes, folds vary slowest.
    """
    checks.values(ks=ks)
    fitted = fit(x, labels, todo, splits(fold_of, seed), settings, schedule, store=store, workers=workers, what=what)
    jobs = (joblib.delayed(ask)(one, x, labels, one.split.test, one.split.train, ks) for one in fitted)
    asked = spread(jobs, workers)
    values = track(asked, total=len(fitted), what=f"{what}, queries", unit="recipes")
    return [
        Outcome(one.recipe, one.split.fold, one.history, norms, per_query)
        for one, (norms, per_query) in zip(fitted, values, strict=True)
    ]


def ask(
    fitted: Fitted,
    x: np.ndarray,
    labels: np.ndarray,
    queries: np.ndarray,
    gallery: np.ndarray,
    ks: Sequence[int],
    ids: np.ndarray | None = None,
) -> tuple[np.ndarray, retrieval.PerQuery]:
    """Let the images ``queries`` search the images ``gallery`` (indices); the gallery's norms and the values.

    ``ids: (n,)`` of all images leaves out what shares the query's id, as in :func:`lib.metrics.retrieval.evaluate`.
    """
    embedded = fitted.embed(x[gallery])
    known = (None, None) if ids is None else (ids[queries], ids[gallery])
    per_query = retrieval.evaluate(
        fitted.embed(x[queries]), embedded, labels[queries], labels[gallery], fitted.geometry, tuple(ks), *known
    )
    return embedded.norm(dim=-1).numpy(), per_query
