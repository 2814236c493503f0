"""Hyper-DINO beyond the paper: other heads on the same splits, other galleries, and who chooses the length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.drawing import of_each_class
from lib.training.experiment import answers, ask, fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, longest_list, splits

FRACTIONS = (0.125, 0.25, 0.5, 1.0)

ON_VALIDATION, ON_TEST = "on validation images, fold by fold", "on the test folds, as the best row of a table"
"""Who chooses the length: images that were set aside for it, or those that the result is reported on."""


def curvature_methods(recipe: Recipe, settings: Settings, schedule: Schedule) -> list[Method]:
    """No mapper, the ball, the flat control at matched margin, and the flat control at the ball's margin."""
    return [
        Method("no mapper", replace(recipe, dim_out=0), settings, schedule),
        Method("ball", recipe, settings, schedule),
        Method("flat, half margin", recipe, flat(settings, settings.m0 / 2), schedule),
        Method("flat, same margin", recipe, flat(settings, settings.m0), schedule),
    ]


def switch_methods(recipe: Recipe, dim: int, settings: Settings, schedule: Schedule) -> list[Method]:
    """One switch at a time that the paper leaves open, the default first (HD-6, HD-7, HD-9, HD-10)."""
    scaled, whitened = replace(recipe, source="scaled", dim_in=dim), replace(recipe, source="whitened")
    kinds = {
        "default": (recipe, settings),
        "pairs with themselves count": (recipe, replace(settings, self_pairs=True)),
        "gradient through the mean distance": (recipe, replace(settings, detach_mean=False)),
        "both of these": (recipe, replace(settings, self_pairs=True, detach_mean=False)),
        "delta 1e-5": (recipe, replace(settings, delta=1e-5)),
        "float32 throughout": (recipe, replace(settings, half=False)),
        "scaled features, no PCA": (scaled, settings),
        "whitened PCA": (whitened, settings),
        "dim_in outputs, PCA": (replace(recipe, dim_out=recipe.dim_in), settings),
        "dim_in outputs, scaled": (replace(scaled, dim_out=dim), settings),
        "dim_in outputs, whitened": (replace(whitened, dim_out=recipe.dim_in), settings),
    }
    return [Method(name, *kind, schedule) for name, kind in kinds.items()]


def galleries(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    dim_out: int,
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
    *,
    fractions: Sequence[float] = FRACTIONS,
    seed: int = 0,
    what: str = "galleries",
) -> dict[tuple[float, str, str], list[Answer]]:
    """Queries of unseen groups against the training images (closed) and against other unseen groups (open).

    Half of the groups are learnt from, the other half asks, and the other way round. Of the first half each head sees a
    fraction of the images of every class, smaller fractions being parts of larger ones. The closed gallery is what the
    head saw; the open one is the asking half without the query's own group.

    Returns:
        fraction, gallery ("closed", "open") and method → one answer per half. Lists longer than the open gallery are
        left out, and the open gallery itself where a half has one group only.
    """
    checks.values(ks=ks, dim_out=dim_out, seed=seed)
    checks.several("fractions", fractions, checks.portion)
    half_of, apart = folds.apart(labels.astype(str), groups, 2, seed)
    most = longest_list(splits(half_of, seed), apart)
    ks = [k for k in ks if k <= most] or [max(most, 1)]
    found: dict[tuple[float, str, str], list[Answer]] = {}
    for fraction in fractions:
        parts = []
        for split in splits(half_of, seed):
            rows = of_each_class(labels, split.seed, rows=split.train, fraction=fraction)
            parts.append(replace(split, train=rows, labelled=rows))
        n = min(x.shape[1], *(len(split.train) for split in parts))
        methods = curvature_methods(Recipe("PCA", n, dim_out), settings, schedule)[:3]
        fitted = fit(x, labels, methods, parts, what=f"{what}, {fraction:.1%}")
        closed = ask(fitted, x, labels, ks, what=f"{what}, closed")
        asked = {"closed": closed}
        if most:
            asked["open"] = ask(fitted, x, labels, ks, gallery="open", groups=apart, what=f"{what}, open")
        found |= {(fraction, gallery, name): asked[gallery][name] for name in fitted for gallery in asked}
    return found


def length_choice(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    several: Sequence[Split],
    todo: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
) -> pd.DataFrame:
    """MAP@k of every recipe on the test part, and on a validation part that was cut off the training part (HD-12).

    Args:
        several: the splits; the validation part is a fifth of the training groups.
        todo: the recipes to choose from; a PCA longer than the smallest part that is learnt from is cut to that.

    Returns:
        One row per fold, recipe and k: fold, dim_in, k, validation, test (percent). Heads that are validated learn
        from the rest of the training part, heads that are tested from all of it.
    """
    inner = []
    for split in several:
        part, _ = folds.apart(labels[split.train].astype(str), groups[split.train], 5, split.seed)
        kept, checked = folds.split(part, 0)
        inner.append(Split(split.fold, split.train[kept], split.train[checked], split.seed))
    smallest = min(len(split.train) for split in inner)
    todo = list(dict.fromkeys(replace(recipe, dim_in=min(recipe.dim_in, smallest)) for recipe in todo))
    methods = [Method(recipe.name, recipe, settings, schedule) for recipe in todo]
    values = {
        "validation": answers(x, labels, methods, inner, ks, what="lengths, validation"),
        "test": answers(x, labels, methods, several, ks, what="lengths, test"),
    }
    lines = []
    for row, split in enumerate(several):
        for recipe in todo:
            for k in ks:
                line = {"fold": split.fold, "dim_in": recipe.dim_in, "k": k}
                for part, by_name in values.items():
                    line[part] = 100 * by_name[recipe.name][row].per_query.values["ap_min", k].mean()
                lines.append(line)
    return pd.DataFrame(lines)


def choose(table: pd.DataFrame, k: int) -> pd.DataFrame:
    """Three ways to choose the length from :func:`length_choice`, by MAP@``k``, and what each reports at every k.

    Returns columns choice, k, value (percent, mean over the folds), lengths (what was chosen).

    >>> rows = [(0, 40, 20, 70.0, 60.0), (0, 80, 20, 60.0, 64.0), (1, 40, 20, 50.0, 60.0), (1, 80, 20, 90.0, 66.0)]
    >>> rows = pd.DataFrame(rows, columns=["fold", "dim_in", "k", "validation", "test"])
    >>> choose(rows, 20)["value"].tolist()  # 40 then 80; always 80; 80, the longest
    [63.0, 65.0, 65.0]
    """
    at = table[table["k"] == k]
    by_fold = at.loc[at.groupby("fold")["validation"].idxmax()].set_index("fold")["dim_in"]
    on_test = at.groupby("dim_in")["test"].mean().idxmax()
    longest = at["dim_in"].max()
    lines = []
    for each, part in table.groupby("k"):
        cells = part.set_index(["fold", "dim_in"])["test"]
        honest = np.mean([cells[fold, length] for fold, length in by_fold.items()])
        for name, value, lengths in (
            (ON_VALIDATION, honest, ", ".join(map(str, by_fold))),
            (ON_TEST, cells.xs(on_test, level=1).mean(), str(on_test)),
            ("none: the longest", cells.xs(longest, level=1).mean(), str(longest)),
        ):
            lines.append({"choice": name, "k": each, "value": float(value), "lengths": lengths})
    return pd.DataFrame(lines)
