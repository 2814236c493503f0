"""Frozen features → prototype head → retrieval (Section III), and beyond: other distances, another head."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lib import checks
from lib.losses.linear_prototypes import Comparison
from lib.papers.linear_prototypes.published import PT, SCALED, TL
from lib.training import classifier
from lib.training.episodes import Episodes
from lib.training.experiment import ask, fit
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Settings
from lib.training.methods import Answer, Fitted, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, galleries

PAPER = "the paper's head (squared Euclidean, cosine search)"
LINEAR, NO_VIEWS = "one linear layer, cosine search", "no augmented views, cosine search"
NCA = 32
OPPONENTS = (
    f"NCA({NCA}), Euclidean search",
    "linear classifier, by its logits",
    "linear classifier, by class probability",
)
"""What learns from the same labels without prototypes."""

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
    dim: int, dim_out: int, chosen: Mapping[str, Settings], default: Settings, schedule: Episodes
) -> list[Method]:
    """The paper's head, and one thing changed at a time; ``chosen``: the settings of "cosine" and "poincare"."""
    unsquared, linear = replace(default, comparison=Comparison("euclidean")), replace(default, hidden=0)
    kinds = {
        PAPER: (default, {}),
        "the same, Euclidean search": (default, {"search": "euclidean"}),
        "Euclidean, not squared (Fig. 1), cosine search": (unsquared, {}),
        "cosine, cosine search": (chosen["cosine"], {}),
        "Poincaré, hyperbolic search": (chosen["poincare"], {"search": "own"}),
        "Poincaré, cosine search": (chosen["poincare"], {}),
        LINEAR: (linear, {}),
        NO_VIEWS: (default, {"augmented": False}),
    }
    return [trained(name, dim, dim_out, kind, schedule, **options) for name, (kind, options) in kinds.items()]


def opponents(dim: int, n_classes: int, default: Settings, schedule: Episodes, classifier_lr: float) -> list[Method]:
    """What learns from the same labels without prototypes: NCA, and a linear classifier searched in two ways."""
    by_nca, *by_classifier = OPPONENTS
    seen = Recipe("scaled", dim, n_classes)
    return [Method(by_nca, Recipe("NCA", min(NCA, dim), 0), default)] + [
        classifier.method(name, seen, n_classes, schedule, classifier_lr, ranking)
        for name, ranking in zip(by_classifier, classifier.RANKINGS, strict=True)
    ]


def fit_by_fold(
    views: np.ndarray,
    labels: np.ndarray,
    methods: Mapping[int, Sequence[Method]],
    splits: Sequence[Split],
    what: str = "heads",
) -> dict[str, list[Fitted]]:
    """Fit methods that differ from fold to fold, as each chose them; those that folds share are fitted together.

    methods: fold → its methods, in every fold of the same names. Returns name → one per split, in the order of splits.
    """
    folds_of: dict[Method, tuple[int, ...]] = {}
    for fold, of_fold in methods.items():
        folds_of |= {method: (*folds_of.get(method, ()), fold) for method in of_fold}
    fitted: dict[tuple[str, int, int], Fitted] = {}
    for folds in dict.fromkeys(folds_of.values()):
        shared = [method for method, of_method in folds_of.items() if of_method == folds]
        own = [split for split in splits if split.fold in folds]
        for name, trainings in fit(views, labels, shared, own, what=what).items():
            fitted |= {(name, head.split.fold, head.split.repeat): head for head in trainings}
    names = [method.name for method in next(iter(methods.values()))]
    return {name: [fitted[name, split.fold, split.repeat] for split in splits] for name in names}


def in_galleries(
    fitted: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    ks: Sequence[int],
    what: str = "queries",
) -> Results:
    """Every fitted method in the closed gallery, and in the open one where it is large enough.

    fitted: name → one per split. x: (n, dim) features of the images themselves; labels, groups: (n,).
    """
    checks.values(ks=ks)
    splits = [head.split for head in next(iter(fitted.values()))]
    return {
        gallery: ask(fitted, x, labels, ks, gallery=gallery, groups=groups, what=f"{what}, {gallery}")
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
        methods = [replace(method, name=f"{encoder}, {method.name}") for method in methods]
        fitted = fit(views, labels, methods, splits, what=f"heads on {encoder}")
        for gallery, answers in in_galleries(fitted, views[0], labels, groups, ks, f"queries of {encoder}").items():
            results.setdefault(gallery, {}).update(answers)
    return results
