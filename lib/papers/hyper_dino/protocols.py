"""How methods are compared beyond the paper: who is in the gallery, whose group is known, who chooses the length."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.datasets.drawing import of_each_class
from lib.metrics.classes import over_classes
from lib.papers.hyper_dino import retrieval, validation
from lib.papers.hyper_dino.recipes import RAW
from lib.study import differences
from lib.study.scores import HEALTH as ENDED
from lib.study.scores import Answers, of_answers
from lib.training import classifier
from lib.training.experiment import answers, ask, fit
from lib.training.fit import Schedule
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split, has_own, longest_list, repeated, splits

LOGITS, PROBABILITY = (f"linear classifier, {ranking}" for ranking in classifier.RANKINGS)
"""One network, searched in two ways; the second is the stronger opponent over a list."""

FRACTIONS = (0.125, 0.25, 0.5, 1.0)

EQUAL, EPOCHS = "equal steps", "equal epochs"
"""How long is learnt from fewer images: as many steps as from all of them, or as many epochs."""

ON_VALIDATION, ON_TEST = "on validation images, fold by fold", "on the test folds, as the best row of a table"
"""Who chooses the length: images that were set aside for it, or those that the result is reported on."""

LONGEST = "none: the longest"
"""The length that nobody chooses."""

Galleries = dict[tuple[float, str, str, str], list[Answer]]
"""Fraction of the images learnt from, how long, gallery and method → one answer per half and training."""

Tested = dict[tuple[int, int], list[Answer]]
"""Fold and length of the input → the answers of every training."""


def curvature_methods(
    dim: int, recipe: Recipe, settings: Settings, schedule: Schedule, classes: int, classifier_lr: float
) -> list[Method]:
    """The ball, last, and its opponents: no labels, labels without a head, a flat head of half the margin (HD-8)."""
    nca = Method("NCA", Recipe("NCA", recipe.dim_out, 0), settings, schedule)
    given = dim, recipe.dim_in, recipe.dim_out, classes, settings, schedule, classifier_lr
    ball, raw, plain, logits, probability, half = retrieval.opponents(*given)
    methods = {RAW: raw, "no mapper": plain, "NCA": nca, LOGITS: logits, PROBABILITY: probability}
    methods |= {"flat, half margin": half, "ball": ball}
    return [replace(method, name=name) for name, method in methods.items()]


def dealt(
    x: np.ndarray,
    labels: np.ndarray,
    methods: Sequence[Method],
    parts: Sequence[Split],
    ks: Sequence[int],
    n_deals: int,
) -> Answers:
    """What methods get where nothing can be learnt: classes are dealt at random, anew for each of their trainings.

    parts: once each. What a method gains here over features as they are is what the measure favours in it, and chance.
    """
    deals = [
        answers(
            x,
            np.random.default_rng(deal).permutation(labels),
            methods,
            [split for split in repeated(parts, n_deals) if split.repeat == deal],
            ks,
            what=f"classes at random, {deal + 1} of {n_deals}",
        )
        for deal in range(n_deals)
    ]
    return {method.name: [answer for by_method in deals for answer in by_method[method.name]] for method in methods}


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
    n_seeds: int = 1,
    seed: int = 0,
) -> Galleries:
    """Queries of unseen groups against the training images (closed) and against other unseen groups (open).

    Half of the groups are learnt from, the other half are queries, and the other way round. Of the first half each head
    sees a fraction of the images of every class, smaller fractions being parts of larger ones. The closed gallery is
    what the head saw; the open one is the half of the queries without the query's own group. A PCA longer than the
    images learnt from is cut to their number. Lists longer than the open gallery are left out, and the open gallery
    itself where a half has one group only. Returns see :data:`Galleries`.
    """
    checks.values(ks=ks, seed=seed)
    half_of, apart = folds.apart(labels.astype(str), groups, 2, seed)
    halves = splits(half_of, seed)
    most = longest_list(halves, apart)
    ks = [k for k in ks if k <= most] or [max(most, 1)]
    whole = min(len(split.train) for split in halves)
    results: Galleries = {}
    for fraction in FRACTIONS:
        parts = [_part(split, labels, fraction) for split in halves]
        n = min(len(split.train) for split in parts)
        cut = replace(recipe, dim_in=min(recipe.dim_in, n))
        plans = {EQUAL: schedule.equal_steps(n, whole), EPOCHS: schedule}
        done = {}
        for plan in dict.fromkeys(plans.values()):  # of all images both are one
            methods = curvature_methods(x.shape[1], cut, settings, plan, len(set(labels)), classifier_lr)
            methods = [method for method in methods if method.name != "NCA"]
            about = f"galleries, {fraction:.1%}, {plan.epochs} epochs"
            fitted = fit(x, labels, methods, repeated(parts, n_seeds), what=about)
            done[plan] = {"closed": ask(fitted, x, labels, ks, what="galleries, closed")}  # lists may be longer than it
            if most:
                done[plan]["open"] = ask(fitted, x, labels, ks, gallery="open", groups=apart, what="galleries, open")
        for length, plan in plans.items():
            sides = done[plan]
            results |= {(fraction, length, side, name): sides[side][name] for name in sides["closed"] for side in sides}
    return results


def _part(split: Split, labels: np.ndarray, fraction: float) -> Split:
    """The split with a fraction of the images of every class to learn from, and to search."""
    rows = of_each_class(labels, split.seed, rows=split.train, fraction=fraction)
    return replace(split, train=rows, labelled=rows)


def of_all_images(results: Galleries) -> dict[str, dict[str, list[Answer]]]:
    """Gallery → method → the answers of heads that learnt from all images of their half."""
    whole: dict[str, dict[str, list[Answer]]] = {}
    for (fraction, length, gallery, name), done in results.items():
        if (fraction, length) == (1.0, EQUAL):
            whole.setdefault(gallery, {})[name] = done
    return whole


def gallery_values(results: Galleries) -> pd.DataFrame:
    """The answers of :func:`galleries` as rows: how long, and the number of images learnt from, added."""
    sides = {number: {method: done} for number, ((*_, method), done) in enumerate(results.items())}
    scores = of_answers(sides, rule="side", measure=lambda answer: {"n_train": len(answer.split.train)})
    about = pd.DataFrame([where for *where, _ in results], columns=["fraction", "length", "gallery"])
    rows = scores.means().query("metric == 'ap_min'").join(about, on="side").astype({"n_train": int})
    first, last = ["gallery", "method", "k"], ["fraction", "length", "n_train"]
    middle = [name for name in rows if name not in (*first, *last, "side", "metric")]
    return rows[first + middle + last].reset_index(drop=True)


def length_choice(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    recipes: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
    *,
    n_seeds: int = 1,
) -> tuple[pd.DataFrame, Tested]:
    """MAP@k of every recipe on the test part, and on a fifth of the training groups, which validates (HD-12).

    A PCA longer than the smallest part that is learnt from is cut to that. Heads that are validated learn from the rest
    of the training part, heads that are tested from all of it.

    Returns:
        One row per fold, recipe and k: fold, dim_in, k, validation, test (percent, means over the trainings); and the
        answers of the test part.
    """
    inner = validation.inner(where, labels, groups)
    smallest = min(len(split.train) for split in inner)
    recipes = list(dict.fromkeys(replace(recipe, dim_in=min(recipe.dim_in, smallest)) for recipe in recipes))
    methods = [Method(recipe.name, recipe, settings, schedule) for recipe in recipes]
    parts: dict[str, Tested] = {"validation": {}, "test": {}}
    for part, splits_of in {"validation": inner, "test": where}.items():
        done = answers(x, labels, methods, repeated(splits_of, n_seeds), ks, what=f"lengths, {part}")
        for answer in (answer for of_recipe in done.values() for answer in of_recipe):
            parts[part].setdefault((answer.split.fold, answer.method.recipe.dim_in), []).append(answer)
    means = {part: pd.DataFrame({pair: _mean(given) for pair, given in pairs.items()}) for part, pairs in parts.items()}
    table = pd.DataFrame({part: wide.unstack() for part, wide in means.items()})
    return table.rename_axis(["fold", "dim_in", "k"]).reset_index(), parts["test"]


def _mean(trainings: Sequence[Answer]) -> pd.Series:
    """MAP at every k in percent, the mean over the trainings of a split."""
    return 100 * pd.concat([answer.per_query.values["ap_min"].mean() for answer in trainings], axis=1).mean(axis=1)


def choose(table: pd.DataFrame, tested: Tested, k: int) -> pd.DataFrame:
    """Three ways to choose the length from :func:`length_choice`, by MAP@``k``, and what each reports at every k.

    Columns choice, k, value (mean over the folds), lengths (what was chosen), class_mean, chance, loss, rim, steps.
    """
    at, n = table[table["k"] == k], table["fold"].nunique()
    by_fold = at.loc[at.groupby("fold")["validation"].idxmax()].set_index("fold")["dim_in"]
    on_test, longest = at.groupby("dim_in")["test"].mean().idxmax(), at["dim_in"].max()
    choices = {ON_VALIDATION: list(by_fold), ON_TEST: [on_test] * n, LONGEST: [longest] * n}
    shown = {name: ", ".join(map(str, dims if name == ON_VALIDATION else dims[:1])) for name, dims in choices.items()}
    pairs = {name: zip(by_fold.index, lengths, strict=True) for name, lengths in choices.items()}
    chosen = {name: [answer for pair in places for answer in tested[pair]] for name, places in pairs.items()}
    rows = (
        of_answers({"": chosen})
        .means()
        .query("metric == 'ap_min'")
        .rename(columns={"method": "choice", "ours": "value"})
    )
    rows = rows.assign(lengths=rows["choice"].map(shown)).astype({"steps": float})
    rows = rows.sort_values("k", kind="stable", ignore_index=True)
    return rows[["choice", "k", "value", "lengths", "class_mean", "chance", *ENDED]]


def leakage(
    by_image: Answers, by_group: Answers, groups: np.ndarray, ks: Sequence[int], *, kind: str = "group", seed: int = 0
) -> pd.DataFrame:
    """What is lost when no image of the query's own group is in the gallery; the queries are the same both times.

    Only what can be lost is tested: the images whose group, a ``kind``, has another image in the gallery by image.

    Returns:
        One row per method and k: method, k, group_kind, n_queries (images that are tested), n_all (images that can be
        answered both times); by_image, by_group, chance (percent, of the tested images, averaged per group first);
        class_mean_by_image, ... (over classes); all_by_image, ... (as by_image, over all n_all); the health of both
        trainings (loss_by_image, ...); and the test of by group minus by image.
    """
    sides = ["by_image", "by_group"]
    scores = of_answers(dict(zip(sides, (by_image, by_group), strict=True)), groups)
    ends = scores.trainings.groupby(["rule", "method"]).agg(ENDED)
    touched = np.concatenate([a.split.test[has_own(a.split, groups)] for a in next(iter(by_image.values()))])
    rows = []
    for method in by_image:
        health = {f"{name}_{side}": value for side in sides for name, value in ends.loc[side, method].items()}
        for k in ks:
            chance = scores.chance["ap_min", k].xs(("by_group", method), level=scores.names).droplevel("fold")
            everyone = scores.beside({side: (side, method) for side in sides}, "ap_min", k)
            tested = everyone[everyone.index.get_level_values("query").isin(touched)]
            tested = tested.assign(chance=chance.loc[tested.index])
            label = tested.index.get_level_values("label").to_numpy()
            names = {"method": method, "k": k, "group_kind": kind}
            names |= {"n_queries": tested.index.unique("query").size, "n_all": everyone.index.unique("query").size}
            means = (100 * tested.groupby("group").mean().mean()).to_dict()
            means |= {f"class_mean_{side}": 100 * over_classes(tested[side], label) for side in sides}
            means |= (100 * everyone[sides].groupby("group").mean().mean()).add_prefix("all_").to_dict()
            test = differences.of_queries(*(tested[side] for side in sides[::-1]), seed=seed)
            rows.append(names | means | health | test)
    return differences.together(rows)
