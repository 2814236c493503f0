"""Hyper-DINO beyond the paper: other heads on the same splits, other galleries, and who chooses the length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.drawing import of_each_class
from lib.papers.hyper_dino import validation
from lib.papers.hyper_dino.recipes import RAW
from lib.results.answers import HEALTH, class_means
from lib.training import classifier
from lib.training.experiment import answers, ask, fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings, flat
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, longest_list, repeated, splits

LOGITS, PROBABILITY = (f"linear classifier, {ranking}" for ranking in classifier.RANKINGS)
"""One network, searched in two ways; sentences are about the second, the stronger opponent over a list."""

FRACTIONS = (0.125, 0.25, 0.5, 1.0)

EQUAL, EPOCHS = "equal steps", "equal epochs"
"""How long is learnt from fewer images: as many steps as from all of them, or as many epochs."""

ON_VALIDATION, ON_TEST = "on validation images, fold by fold", "on the test folds, as the best row of a table"
"""Who chooses the length: images that were set aside for it, or those that the result is reported on."""

LONGEST = "none: the longest"
"""The length that nobody chooses."""

Found = dict[tuple[float, str, str, str], list[Answer]]
"""Fraction of the images learnt from, how long, gallery and method → one answer per half and training."""


Tested = dict[tuple[int, int], list[Answer]]
"""Fold and length of the input → the answers of every training."""


def curvature_methods(
    dim: int, recipe: Recipe, settings: Settings, schedule: Schedule, classes: int, classifier_lr: float
) -> list[Method]:
    """The ball and its opponents: no labels, labels without a head, and flat heads.

    Without labels: the feature of ``dim`` numbers by its cosine, and the head's input as it is. Labels without a head:
    NCA to as many numbers as the head gives, and a linear classifier of the head's input, searched by its logits and by
    its class probabilities, at a learning rate of its own, ``classifier_lr``. Flat: the same head and loss with
    Euclidean distances and half the base margin (HD-8).
    """
    return [
        Method(RAW, Recipe("raw", dim, 0), settings, schedule, search="cosine"),
        Method("no mapper", replace(recipe, dim_out=0), settings, schedule),
        Method("NCA", Recipe("NCA", recipe.dim_out, 0), settings, schedule),
        *(
            classifier.method(name, recipe, classes, schedule, classifier_lr, ranking, settings.half)
            for name, ranking in zip((LOGITS, PROBABILITY), classifier.RANKINGS, strict=True)
        ),
        Method("flat, half margin", recipe, flat(settings, settings.m0 / 2), schedule),
        Method("ball", recipe, settings, schedule),
    ]


def switch_methods(recipe: Recipe, dim: int, settings: Settings, schedule: Schedule) -> list[Method]:
    """One switch at a time that the paper leaves open, the default first (HD-6, HD-7, HD-9, HD-10, HD-17)."""
    scaled, longer = replace(recipe, source="scaled", dim_in=dim), replace(recipe, dim_out=recipe.dim_in)
    printed = replace(settings, start_norm=0.0)
    kinds = {
        "default": (recipe, settings),
        "as printed, not scaled": (recipe, printed),
        "start norm 0.1": (recipe, replace(settings, start_norm=0.1)),
        "start norm 0.8": (recipe, replace(settings, start_norm=0.8)),
        "pairs with themselves count": (recipe, replace(settings, self_pairs=True)),
        "gradient through the mean distance": (recipe, replace(settings, detach_mean=False)),
        "delta 1e-5": (recipe, replace(settings, delta=1e-5)),
        "float32 throughout": (recipe, replace(settings, half=False)),
        "scaled features, no PCA": (scaled, settings),
        "whitened PCA": (replace(recipe, source="whitened"), settings),
        "dim_in outputs, PCA": (longer, settings),
        "dim_in outputs, PCA, as printed": (longer, printed),
    }
    return [Method(name, *kind, schedule) for name, kind in kinds.items()]


def galleries(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    recipe: Recipe,
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
    *,
    classifier_lr: float,
    fractions: Sequence[float] = FRACTIONS,
    n_seeds: int = 1,
    seed: int = 0,
    what: str = "galleries",
) -> Found:
    """Queries of unseen groups against the training images (closed) and against other unseen groups (open).

    Half of the groups are learnt from, the other half asks, and the other way round. Of the first half each head sees a
    fraction of the images of every class, smaller fractions being parts of larger ones. The closed gallery is what the
    head saw; the open one is the asking half without the query's own group.

    Args:
        classifier_lr: as in :func:`curvature_methods`.
        recipe: of the heads; a PCA longer than the images learnt from is cut to their number.
        fractions: of the images of each class.
        n_seeds: trainings of each head.

    Returns:
        See :data:`Found`; gallery is "closed" or "open". Lists longer than the open gallery are left out, and the open
        gallery itself where a half has one group only.
    """
    checks.values(ks=ks, seed=seed)
    checks.several("fractions", fractions, checks.portion)
    half_of, apart = folds.apart(labels.astype(str), groups, 2, seed)
    halves = splits(half_of, seed)
    most = longest_list(halves, apart)
    ks = [k for k in ks if k <= most] or [max(most, 1)]
    whole = min(len(split.train) for split in halves)
    found: Found = {}
    for fraction in fractions:
        parts = [_part(split, labels, fraction) for split in halves]
        n = min(len(split.train) for split in parts)
        cut = replace(recipe, dim_in=min(recipe.dim_in, n))
        for length, plan in {EQUAL: schedule.equal_steps(n, whole), EPOCHS: schedule}.items():
            methods = _learners(x.shape[1], cut, settings, plan, len(set(labels)), classifier_lr)
            fitted = fit(x, labels, methods, repeated(parts, n_seeds), what=f"{what}, {fraction:.1%}, {length}")
            asked = {"closed": ask(fitted, x, labels, ks, what=f"{what}, closed")}
            if most:
                asked["open"] = ask(fitted, x, labels, ks, gallery="open", groups=apart, what=f"{what}, open")
            found |= {(fraction, length, side, name): asked[side][name] for name in fitted for side in asked}
    return found


def of_all_images(found: Found) -> dict[str, dict[str, list[Answer]]]:
    """Gallery → method → the answers of heads that learnt from all images of their half."""
    parts: dict[str, dict[str, list[Answer]]] = {}
    for (fraction, length, side, name), done in found.items():
        if (fraction, length) == (1.0, EQUAL):
            parts.setdefault(side, {})[name] = done
    return parts


def _part(split: Split, labels: np.ndarray, fraction: float) -> Split:
    """The split with a fraction of the images of every class to learn from, and to search."""
    rows = of_each_class(labels, split.seed, rows=split.train, fraction=fraction)
    return replace(split, train=rows, labelled=rows)


def _learners(
    dim: int, recipe: Recipe, settings: Settings, schedule: Schedule, classes: int, classifier_lr: float
) -> list[Method]:
    """Those of :func:`curvature_methods` that are asked of every size."""
    wanted = (RAW, "no mapper", LOGITS, PROBABILITY, "flat, half margin", "ball")
    several = curvature_methods(dim, recipe, settings, schedule, classes, classifier_lr)
    return [one for one in several if one.name in wanted]


def length_choice(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    several: Sequence[Split],
    todo: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
) -> tuple[pd.DataFrame, Tested]:
    """MAP@k of every recipe on the test part, and on a validation part that was cut off the training part (HD-12).

    Args:
        several: the splits; the validation part is a fifth of the training groups.
        todo: the recipes to choose from; a PCA longer than the smallest part that is learnt from is cut to that.
        n_seeds: trainings of each head.

    Returns:
        One row per fold, recipe and k: fold, dim_in, k, validation, test (percent, means over the trainings); of the
        test part chance, and the health of the heads: loss, rim, steps. Heads that are validated learn from the rest of
        the training part, heads that are tested from all of it. And the answers of the latter.
    """
    inner = validation.inner(several, labels, groups)
    smallest = min(len(split.train) for split in inner)
    todo = list(dict.fromkeys(replace(recipe, dim_in=min(recipe.dim_in, smallest)) for recipe in todo))
    methods = [Method(recipe.name, recipe, settings, schedule) for recipe in todo]
    frames, tested = [], {}
    for part, where in {"validation": inner, "test": several}.items():
        done = answers(x, labels, methods, repeated(where, n_seeds), ks, what=f"lengths, {part}")
        frames += [
            answer.per_query.mean()
            .query("metric == 'ap_min'")
            .assign(fold=answer.split.fold, dim_in=answer.method.recipe.dim_in, part=part, **vars(answer.health))
            for of_one in done.values()
            for answer in of_one
        ]
    for answer in (answer for of_one in done.values() for answer in of_one):
        tested.setdefault((answer.split.fold, answer.method.recipe.dim_in), []).append(answer)
    rows = pd.concat(frames)
    keys, scores = ["fold", "dim_in", "k"], ["value", "chance"]
    rows[scores] *= 100
    parts = rows.groupby(["part", *keys], sort=False).agg(dict.fromkeys(scores, "mean") | HEALTH)
    table = parts.loc["test"].rename(columns={"value": "test"})
    table.insert(0, "validation", parts.loc["validation"]["value"])
    return table.reset_index(), tested


def choose(table: pd.DataFrame, tested: Tested, k: int) -> pd.DataFrame:
    """Three ways to choose the length from :func:`length_choice`, by MAP@``k``, and what each reports at every k.

    Returns columns choice, k, value (percent, mean over the folds), lengths (what was chosen), class_mean (over the
    queries of all folds, each with the head of its chosen length), chance (mean over the folds), loss, rim, steps.
    """
    at, n = table[table["k"] == k], table["fold"].nunique()
    by_fold = at.loc[at.groupby("fold")["validation"].idxmax()].set_index("fold")["dim_in"]
    on_test, longest = at.groupby("dim_in")["test"].mean().idxmax(), at["dim_in"].max()
    several = {ON_VALIDATION: list(by_fold), ON_TEST: [on_test] * n, LONGEST: [longest] * n}
    how = dict.fromkeys(("test", "chance"), "mean") | HEALTH
    pairs = {name: list(zip(by_fold.index, lengths, strict=True)) for name, lengths in several.items()}
    alike = {name: class_means([one for pair in of for one in tested[pair]]) for name, of in pairs.items()}
    lines = []
    for each, part in table.groupby("k"):
        cells = part.set_index(["fold", "dim_in"])
        for name, lengths in several.items():
            reported = cells.loc[pairs[name]].agg(how)
            told = ", ".join(map(str, lengths if name == ON_VALIDATION else lengths[:1]))
            line = {"choice": name, "k": each, "value": reported.pop("test"), "lengths": told}
            class_mean = alike[name]["class_mean"]["ap_min", each]
            lines.append(line | {"class_mean": class_mean} | dict(reported))
    return pd.DataFrame(lines)
