"""The linear prototypes beyond the paper: other distances and heads, the choice of temperature, fewer labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.queries import balanced
from lib.losses.linear_prototypes import Comparison
from lib.training import hyper_dino
from lib.training import linear_prototypes as experiment
from lib.training.episodes import Episodes
from lib.training.fit import Schedule
from lib.training.linear_prototypes import Answer, Settings, Split

PAPER = "the paper's: squared Euclidean, cosine search"


@dataclass(frozen=True)
class Variant:
    """A head beside the paper's: its settings, how it is searched, and whether it sees augmented views."""

    name: str
    settings: Settings
    search: str = "cosine"
    augmented: bool = True


def variants(cosine: Settings, poincare: Settings) -> list[Variant]:
    """The paper's head, and one thing changed at a time; ``cosine`` and ``poincare`` as :func:`choose` found them."""
    default = Settings()
    return [
        Variant(PAPER, default),
        Variant("the same, Euclidean search", default, "euclidean"),
        Variant("Euclidean, not squared (Fig. 1), cosine search", replace(default, comparison=Comparison("euclidean"))),
        Variant("cosine, cosine search", cosine),
        Variant("Poincaré, hyperbolic search", poincare, "own"),
        Variant("Poincaré, cosine search", poincare),
        Variant("one linear layer, cosine search", replace(default, hidden=0)),
        Variant("no augmented views, cosine search", default, augmented=False),
    ]


def words(settings: Settings) -> str:
    """Temperature, and curvature if there is one.

    >>> words(Settings(Comparison("poincare", 0.1), 0.3)), words(Settings(Comparison("cosine"), 0.3))
    ('c 0.1, temperature 0.3', 'temperature 0.3')
    """
    curved = f"c {settings.comparison.c:g}, " if settings.comparison.name == "poincare" else ""
    return f"{curved}temperature {settings.temperature:g}"


def compare_variants(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    todo: Sequence[Variant],
    schedule: Episodes,
    ks: Sequence[int],
) -> dict[str, dict[str, list[Answer]]]:
    """Gallery → variant → its answers; a head that is searched in two ways is trained once."""
    checks.values(ks=ks)
    trained = {}
    for one in todo:
        key = one.settings, one.augmented
        if key not in trained:
            seen = views if one.augmented else views[:1]
            what = f"head {len(trained) + 1} of {len({(v.settings, v.augmented) for v in todo})}"
            trained[key] = experiment.fit(seen, labels, where, one.settings, schedule, what=what)
    return {
        gallery: {
            one.name: experiment.ask(
                trained[one.settings, one.augmented], views[0], labels, groups, ks, search=one.search, gallery=gallery
            )
            for one in todo
        }
        for gallery in experiment.galleries(where, groups, max(ks))
    }


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
    k = experiment.allowed_support(labels, [rows[fold_of != 0]], k)
    drawn = balanced(labels[rows], units[rows], fold_of, 0, per_class, split.seed, needed=k + 1)
    (inner,) = experiment.splits({0: drawn}, split.seed)
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
) -> tuple[dict[str, Settings], pd.DataFrame]:
    """The best curvature and temperature of each comparison, on images that no test query's split has held out.

    Args:
        views, labels, groups, schedule: as in :func:`lib.training.linear_prototypes.fit`.
        split: its training part is divided once more.
        k: MAP@k decides, searched as in training; fewer where the gallery is smaller.
        per_class: validation queries of each class at most.

    Returns:
        The chosen settings of "cosine" and "poincare", and a row for every candidate: comparison, c, temperature,
        validation (percent), chosen.
    """
    checks.values(k=k, per_class=per_class)
    inner, units, support = inner_split(labels, groups, split, per_class, schedule.k)
    schedule = replace(schedule, k=support)
    k = min(k, len(inner.train))
    found, lines = {}, []
    for name, grid in GRIDS.items():
        values = []
        for number, settings in enumerate(grid, start=1):
            what = f"{name}, candidate {number} of {len(grid)}"
            fitted = experiment.fit(views, labels, [inner], settings, schedule, what=what)
            (answer,) = experiment.ask(fitted, views[0], labels, units, [k], search="own", workers=1)
            values.append(100 * answer.per_query.values["ap_min", k].mean())
        found[name] = grid[int(np.argmax(values))]
        lines += [
            {
                "comparison": name,
                "c": settings.comparison.c if name == "poincare" else np.nan,
                "temperature": settings.temperature,
                "validation": value,
                "chosen": settings == found[name],
            }
            for settings, value in zip(grid, values, strict=True)
        ]
    return found, pd.DataFrame(lines)


def supports(
    views: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    sizes: Sequence[int],
    schedule: Episodes,
    ks: Sequence[int],
) -> dict[int, list[Answer]]:
    """K → answers of heads whose episodes have K support images of each class; all training images have labels."""
    checks.values(supports=sizes, ks=ks)
    found = {}
    for k in sizes:
        fitted = experiment.fit(views, labels, where, Settings(), replace(schedule, k=k), what=f"K = {k}")
        found[k] = experiment.ask(fitted, views[0], labels, groups, ks)
    return found


def label_efficiency(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    sizes: Sequence[int],
    schedule: Episodes,
    mapper: hyper_dino.Settings,
    mapper_schedule: Schedule,
    ks: Sequence[int],
) -> dict[int, Mapping[str, list[Answer]]]:
    """Labelled images per class → method → answers; all training images are searched, labelled or not.

    Both heads get the same images, the original ones, and as many steps. K is 5, or one less than there are labels,
    so that a query is left; one labelled image per class makes neither a query nor a positive pair, so 2 is the
    smallest size.
    """
    checks.values(labelled=sizes, ks=ks)
    found = {}
    for size in sizes:
        few = [split.with_labels(labels, size) for split in where]
        episodes = replace(schedule, k=min(schedule.k, size - 1))
        what = f"{size} labels per class"
        heads = {
            "linear prototypes": experiment.fit(x[None], labels, few, Settings(), episodes, what=what),
            "Hyper-DINO": experiment.fit_mapper(x, labels, few, mapper, mapper_schedule, what=what),
        }
        own = {"linear prototypes": "cosine", "Hyper-DINO": "own"}
        found[size] = {
            name: experiment.ask(fitted, x, labels, groups, ks, search=own[name]) for name, fitted in heads.items()
        }
    return found
