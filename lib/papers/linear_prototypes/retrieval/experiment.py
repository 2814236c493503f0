"""Frozen features → prototype head → retrieval (Section III), and beyond: other heads, temperature, fewer labels."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.drawing import of_each_class
from lib.datasets.queries import balanced
from lib.losses.linear_prototypes import Comparison
from lib.papers.linear_prototypes.published import PT, SCALED, TL
from lib.training.episodes import Episodes
from lib.training.experiment import ask, fit
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Settings, allowed_support
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, galleries, query_splits

PAPER = "the paper's: squared Euclidean, cosine search"

Results = dict[str, dict[str, list[Answer]]]
"""Gallery → method → its answer on each split."""


def trained(name: str, dim: int, dim_out: int, settings: Settings, schedule: Schedule, **options: Any) -> Method:
    """A head on standardised features of ``dim`` numbers, searched by cosine if ``options`` do not say otherwise.

    Features are standardised first, since the numbers of an encoder may have any unit; the paper does not say whether
    its are.
    """
    return Method(name, Recipe("scaled", dim, dim_out), settings, schedule, **{"search": "cosine"} | options)


def frozen(dim: int) -> list[Method]:
    """PT: features of ``dim`` numbers as they are, and standardised; cosine search."""
    sources = {PT: "raw", SCALED: "scaled"}
    return [Method(name, Recipe(source, dim, 0), Settings(), search="cosine") for name, source in sources.items()]


def variants(
    dim: int, dim_out: int, cosine: Settings, poincare: Settings, default: Settings, schedule: Episodes
) -> list[Method]:
    """The paper's head, and one thing changed at a time; ``cosine`` and ``poincare`` as :func:`choose` found them."""
    unsquared, linear = replace(default, comparison=Comparison("euclidean")), replace(default, hidden=0)
    kinds = {
        PAPER: (default, {}),
        "the same, Euclidean search": (default, {"search": "euclidean"}),
        "Euclidean, not squared (Fig. 1), cosine search": (unsquared, {}),
        "cosine, cosine search": (cosine, {}),
        "Poincaré, hyperbolic search": (poincare, {"search": "own"}),
        "Poincaré, cosine search": (poincare, {}),
        "one linear layer, cosine search": (linear, {}),
        "no augmented views, cosine search": (default, {"augmented": False}),
    }
    return [trained(name, dim, dim_out, kind, schedule, **options) for name, (kind, options) in kinds.items()]


def words(settings: Settings) -> str:
    """Temperature, and curvature if there is one.

    >>> words(Settings(Comparison("poincare", 0.1), 0.3)), words(Settings(Comparison("cosine"), 0.3))
    ('c 0.1, temperature 0.3', 'temperature 0.3')
    """
    curved = f"c {settings.comparison.c:g}, " if settings.comparison.name == "poincare" else ""
    return f"{curved}temperature {settings.temperature:g}"


def in_galleries(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    methods: Sequence[Method],
    ks: Sequence[int],
    what: str = "heads",
) -> Results:
    """Every method in the closed gallery, and in the open one where it is large enough.

    views: (V, n, dim) features of V views of each image; labels, groups: (n,).
    """
    checks.values(ks=ks)
    fitted = fit(views, labels, methods, splits, what=what)
    return {
        gallery: ask(fitted, views[0], labels, ks, gallery=gallery, groups=groups, what=f"{what}, {gallery}")
        for gallery in galleries(splits, groups, max(ks))
    }


def pretrained_and_trained(
    features: Mapping[str, np.ndarray],
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    head: Method,
    ks: Sequence[int],
) -> Results:
    """Gallery → "encoder, method" → its answers, for PT, scaled PT and TL of every encoder; cosine search.

    features: encoder → (V, n, dim) features of V views, V of each encoder's own. head: what is trained, of any input.
    """
    results: Results = {}
    for encoder, views in features.items():
        dim = views.shape[2]
        methods = [*frozen(dim), replace(head, name=TL, recipe=replace(head.recipe, dim_in=dim))]
        of_encoder = in_galleries(views, labels, groups, splits, methods, ks, f"heads on {encoder}")
        for gallery, answers in of_encoder.items():
            results.setdefault(gallery, {}).update({f"{encoder}, {name}": done for name, done in answers.items()})
    return results


GRIDS = {
    "cosine": [Settings(Comparison("cosine"), t) for t in (1.0, 0.3, 0.1, 0.03)],
    "poincare": [Settings(Comparison("poincare", c), t) for c, t in product((0.1, 1.0), (1.0, 0.1))],
}
"""What the paper does not have, or does not print, and is chosen on validation images."""


def inner_split(
    labels: np.ndarray, groups: np.ndarray, split: Split, per_class: int, k: int
) -> tuple[Split, np.ndarray, int]:
    """A split inside the training part of ``split``, where a quarter of its groups asks the others, its groups, and K.

    K is ``k``, or what the smaller training part allows. The groups (n,) are those of all images, or, as
    :func:`lib.datasets.folds.apart` has it, every image by itself where the training groups are too few to be divided
    once more.
    """
    rows, units = split.train, np.array(groups, dtype=object)
    fold_of, units[rows] = folds.apart(labels[rows], groups[rows], 4, split.seed)
    k = allowed_support(labels, [rows[fold_of != 0]], k)
    drawn = balanced(labels[rows], units[rows], fold_of, 0, per_class, split.seed, needed=k + 1)
    (inner,) = query_splits({0: drawn}, split.seed)
    parts = {name: rows[getattr(inner, name)] for name in ("train", "labelled", "test", "held_out")}
    return replace(inner, **parts), units, k


def choose(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    split: Split,
    schedule: Episodes,
    *,
    k: int,
    per_class: int,
    dim_out: int = 128,
) -> tuple[dict[str, Settings], pd.DataFrame]:
    """The best curvature and temperature of each comparison, on images that no test query's split has held out.

    Args:
        views, labels, groups: as in :func:`in_galleries`.
        split: its training part is divided once more.
        schedule: episodes.
        k: MAP@k decides, searched as in training; fewer where the gallery is smaller.
        per_class: validation queries of each class at most.
        dim_out: length of the embedding.

    Returns:
        The chosen settings of "cosine" and "poincare", and a row for every candidate: comparison, c, temperature,
        validation (percent), chosen.
    """
    checks.values(k=k, per_class=per_class)
    inner, units, support = inner_split(labels, groups, split, per_class, schedule.k)
    schedule = replace(schedule, k=support)
    k = min(k, len(inner.train))
    candidates = {f"{name}, {words(one)}": (name, one) for name, grid in GRIDS.items() for one in grid}
    methods = [
        trained(title, views.shape[2], dim_out, one, schedule, search="own") for title, (_, one) in candidates.items()
    ]
    fitted = fit(views, labels, methods, [inner], what="temperature and curvature")
    answers = ask(fitted, views[0], labels, [k], groups=units, what="validation")
    lines = [
        {
            "comparison": name,
            "c": one.comparison.c if name == "poincare" else np.nan,
            "temperature": one.temperature,
            "validation": 100 * answers[title][0].per_query.values["ap_min", k].mean(),
            "settings": one,
        }
        for title, (name, one) in candidates.items()
    ]
    table = pd.DataFrame(lines)
    best = table.loc[table.groupby("comparison", sort=False)["validation"].idxmax()]
    table["chosen"] = table.index.isin(best.index)
    return dict(zip(best["comparison"], best["settings"], strict=True)), table.drop(columns="settings")


def supports(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    head: Method,
    ks: Sequence[int],
) -> dict[int, list[Answer]]:
    """K → answers of ``head`` with K support images of each class; all training images have labels."""
    checks.values(supports=sizes, ks=ks)
    methods = [replace(head, name=f"K = {k}", schedule=replace(head.schedule, k=k)) for k in sizes]
    fitted = fit(views, labels, methods, splits, what="support")
    answers = ask(fitted, views[0], labels, ks, groups=groups, what="support, queries")
    return dict(zip(sizes, answers.values(), strict=True))


def label_efficiency(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    splits: Sequence[Split],
    sizes: Sequence[int],
    head: Method,
    mapper: Method,
    ks: Sequence[int],
) -> dict[int, Mapping[str, list[Answer]]]:
    """Labelled images per class → method → answers; all training images are searched, labelled or not.

    Both heads get the same images, the original ones, ``x: (n, dim)``. K is that of ``head``, or one less than there
    are labels, so that a query is left; one labelled image per class makes neither a query nor a positive pair, so 2 is
    the smallest size.
    """
    checks.values(labelled=sizes, ks=ks)
    results = {}
    for size in sizes:
        few = [
            replace(split, labelled=of_each_class(labels, split.seed, rows=split.train, per_class=size))
            for split in splits
        ]
        episodes = replace(head, schedule=replace(head.schedule, k=min(head.schedule.k, size - 1)))
        fitted = fit(x, labels, [episodes, mapper], few, what=f"{size} labels per class")
        results[size] = ask(fitted, x, labels, ks, groups=groups, what=f"{size} labels per class, queries")
    return results
