"""Hyper-DINO's experiment (sections 3.2 and 3.3): reduced features → mapper → retrieval, cross-validated."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import joblib
import numpy as np
import torch
from torch import Tensor

from lib.datasets import folds
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall
from lib.heads import HyperbolicMapper, Reduction
from lib.losses import hyper_dino
from lib.metrics import retrieval
from lib.progress import track
from lib.training.fit import Schedule, fit_head


@dataclass(frozen=True)
class Recipe:
    """One row of Hyper-DINO's Table 1: which features go in, and how long the embedding is.

    ``source`` is ``"scaled"`` (the paper's [CLS]) or ``"PCA"``; ``dim_out`` 0 means no mapper at all: Euclidean
    retrieval on the reduced features, the baseline of [9].
    """

    source: str
    dim_in: int
    dim_out: int

    @property
    def family(self) -> str:
        """Column of the paper's tables: ``baseline``, ``dim_in``, or the embedding length."""
        return {0: "baseline", self.dim_in: "dim_in"}.get(self.dim_out, str(self.dim_out))

    @property
    def name(self) -> str:
        """As the paper writes it: ``Hyper-DINO(PCA(384), 32)``, and the bare input for the baseline."""
        source = f"PCA({self.dim_in})" if self.source == "PCA" else f"{self.dim_in} scaled"
        return f"Hyper-DINO({source}, {self.dim_out})" if self.dim_out else source


def longest_pca(dim: int, folds_of: Iterable[np.ndarray]) -> int:
    """The most components that every training part allows: ``dim``, or its number of images if that is smaller.

    >>> longest_pca(156, [np.array([0, 0, 0, 1, 1])])
    2
    """
    smallest = [len(fold_of) - np.bincount(fold_of).max() for fold_of in folds_of]
    return int(min([dim, *smallest]))


def recipes(dim: int, lengths: Sequence[int | str], dim_out: int = 32, longest: int | None = None) -> list[Recipe]:
    """The recipes of the three families (baseline, ``dim_out``, ``dim_in``) for features of ``dim`` numbers.

    Args:
        dim: length of the feature.
        lengths: PCA lengths, and ``"full"``; the scaled features without PCA are always there.
        dim_out: embedding length of the compact family (published: 32).
        longest: the most components that the training images allow (:func:`longest_pca`), what ``"full"`` means;
            longer lengths are left out.

    Raises:
        InputError: if a length is not between 1 and ``dim``.

    >>> [(r.source, r.dim_in, r.family) for r in recipes(8, [4], dim_out=2)][3:]
    [('PCA', 4, 'baseline'), ('PCA', 4, '2'), ('PCA', 4, 'dim_in')]
    """
    longest = dim if longest is None else longest
    inputs = [("scaled", dim)]
    for length in lengths:
        n = longest if length == "full" else int(length)
        if not 1 <= n <= dim:
            raise InputError(f"PCA length {n} does not fit features of {dim} numbers; choose 1 to {dim} or 'full'")
        if n <= longest:
            inputs.append(("PCA", n))
    return [Recipe(source, n, out) for source, n in dict.fromkeys(inputs) for out in dict.fromkeys((0, dim_out, n))]


def contrasts(todo: Sequence[Recipe]) -> list[tuple[Recipe, Recipe]]:
    """The questions worth a test: at full PCA length, the compact embedding against no mapper and against ``dim_in``.

    >>> [(a.name, b.name) for a, b in contrasts(recipes(8, [4, 8], dim_out=2))]
    [('Hyper-DINO(PCA(8), 2)', 'PCA(8)'), ('Hyper-DINO(PCA(8), 2)', 'Hyper-DINO(PCA(8), 8)')]
    """
    longest = max(recipe.dim_in for recipe in todo if recipe.source == "PCA")
    baseline, compact, *others = (r for r in todo if r.source == "PCA" and r.dim_in == longest)
    return [(compact, other) for other in (baseline, *others)]


@dataclass(frozen=True)
class Settings:
    """Mapper and loss; the defaults are the published values where the paper prints one."""

    hidden: int = 256
    geometry: Geometry = field(default_factory=PoincareBall)
    delta: float = 1e-3
    m0: float = 0.5
    alpha: float = 0.1
    norm_weight: float = 1e-3
    self_pairs: bool = False
    detach_mean: bool = True
    whiten: bool = False


@dataclass(frozen=True)
class Outcome:
    """One recipe on one test fold: loss per epoch, norms of the gallery's embeddings, values per query."""

    recipe: Recipe
    fold: int
    history: list[float]
    norms: np.ndarray
    per_query: retrieval.PerQuery


def run(
    recipe: Recipe,
    x: np.ndarray,
    labels: np.ndarray,
    fold_of: np.ndarray,
    fold: int,
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
    seed: int,
) -> Outcome:
    """Fit scaler, PCA and mapper on the training folds; let every image of the test fold query the training images.

    Args:
        recipe: what to fit.
        x: (n, dim) features.
        labels: (n,) integer classes.
        fold_of: (n,) the test fold of each image.
        fold: which fold is the test fold.
        settings: mapper and loss.
        schedule: training of the mapper.
        ks: list lengths at which the metrics are taken.
        seed: decides initial weights and order of images; recipes with one seed see the images in one order.
    """
    train, test = folds.split(fold_of, fold)
    reduction = Reduction.fit(x[train], whiten=settings.whiten)
    reduced = reduction.scale(x) if recipe.source == "scaled" else reduction(x, recipe.dim_in)
    geometry: Geometry = Euclidean()
    history: list[float] = []
    embedding = torch.from_numpy(reduced)
    if recipe.dim_out:
        geometry = settings.geometry
        head = HyperbolicMapper(
            recipe.dim_in,
            recipe.dim_out,
            hidden=settings.hidden,
            geometry=geometry,
            delta=settings.delta,
            generator=torch.Generator().manual_seed(seed),
        )
        history = fit_head(head, _loss(settings), reduced[train], labels[train], schedule, seed=seed)
        with torch.inference_mode():
            embedding = head(embedding)
    per_query = retrieval.evaluate(
        embedding[test], embedding[train], labels[test], labels[train], geometry, ks=tuple(ks)
    )
    return Outcome(recipe, fold, history, embedding[train].norm(dim=-1).numpy(), per_query)


def _loss(settings: Settings) -> Callable[[Tensor, Tensor], Tensor]:
    options = {name: getattr(settings, name) for name in ("m0", "alpha", "norm_weight", "self_pairs", "detach_mean")}
    return lambda h, y: hyper_dino.contrastive(h, y, settings.geometry, **options).total


def _run_alone(*arguments) -> Outcome:
    """One thread per worker: the result does not depend on how many processors there are."""
    torch.set_num_threads(1)
    return run(*arguments)


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
    workers: int = -1,
    what: str = "heads",
) -> list[Outcome]:
    """Run every recipe on every fold, several at a time, with a progress bar; folds vary slowest in the result.

    Args:
        x, labels, fold_of, settings, schedule, ks: as in :func:`run`.
        todo: the recipes.
        seed: fold ``f`` uses ``seed + f``.
        workers: processes; -1 takes all processors. The result does not depend on it.
        what: the name of the work in the progress bar.
    """
    jobs = [
        joblib.delayed(_run_alone)(recipe, x, labels, fold_of, fold, settings, schedule, ks, seed + fold)
        for fold in sorted(set(fold_of.tolist()))
        for recipe in todo
    ]
    outcomes = joblib.Parallel(n_jobs=workers, return_as="generator")(jobs)
    return list(track(outcomes, total=len(jobs), what=what, unit="heads"))
