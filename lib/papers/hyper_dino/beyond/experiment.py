"""Hyper-DINO beyond the paper: other heads on the same splits, other galleries, and who chooses the length."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from lib import checks
from lib.datasets import folds
from lib.geometry import Euclidean
from lib.metrics.retrieval import PerQuery
from lib.training import hyper_dino
from lib.training.fit import Schedule
from lib.training.hyper_dino import Fitted, Settings, Split
from lib.training.recipes import Recipe

FRACTIONS = (0.125, 0.25, 0.5, 1.0)


@dataclass(frozen=True)
class Arm:
    """A method under comparison: what goes in and how long the embedding is, and its mapper and loss."""

    name: str
    recipe: Recipe
    settings: Settings


@dataclass(frozen=True, eq=False)
class Answer:
    """One arm on one split: the values of every query, and the Euclidean norms of the gallery's embeddings."""

    split: Split
    norms: np.ndarray
    per_query: PerQuery


def flat(settings: Settings, margin: float) -> Settings:
    """The same mapper and loss with Euclidean distances and base margin ``margin``.

    Near the centre the ball's distance is 2‖x − y‖, so that the flat head with half the base margin asks for the same
    picture (HD-8). ``alpha`` stays, as it multiplies a mean distance, which halves by itself.
    """
    return replace(settings, geometry=Euclidean(), m0=margin)


def curvature_arms(recipe: Recipe, settings: Settings) -> list[Arm]:
    """No mapper, the ball, the flat control at matched margin, and the flat control at the ball's margin."""
    return [
        Arm("no mapper", replace(recipe, dim_out=0), settings),
        Arm("ball", recipe, settings),
        Arm("flat, half margin", recipe, flat(settings, settings.m0 / 2)),
        Arm("flat, same margin", recipe, flat(settings, settings.m0)),
    ]


def switch_arms(recipe: Recipe, dim: int, settings: Settings) -> list[Arm]:
    """One switch at a time that the paper leaves open, the default first (HD-6, HD-7, HD-9, HD-10)."""
    scaled, whitened = replace(recipe, source="scaled", dim_in=dim), replace(recipe, source="whitened")
    return [
        Arm("default", recipe, settings),
        Arm("pairs with themselves count", recipe, replace(settings, self_pairs=True)),
        Arm("gradient through the mean distance", recipe, replace(settings, detach_mean=False)),
        Arm("both of these", recipe, replace(settings, self_pairs=True, detach_mean=False)),
        Arm("delta 1e-5", recipe, replace(settings, delta=1e-5)),
        Arm("float32 throughout", recipe, replace(settings, half=False)),
        Arm("scaled features, no PCA", scaled, settings),
        Arm("whitened PCA", whitened, settings),
        Arm("dim_in outputs, PCA", replace(recipe, dim_out=recipe.dim_in), settings),
        Arm("dim_in outputs, scaled", replace(scaled, dim_out=dim), settings),
        Arm("dim_in outputs, whitened", replace(whitened, dim_out=recipe.dim_in), settings),
    ]


def fitted(
    x: np.ndarray, labels: np.ndarray, arms: Sequence[Arm], where: Sequence[Split], schedule: Schedule, what: str
) -> dict[str, list[Fitted]]:
    """Every arm fitted on the training part of every split; arms with the same settings are trained at once."""
    found: dict[str, list[Fitted]] = {}
    for settings in dict.fromkeys(arm.settings for arm in arms):
        mine = [arm for arm in arms if arm.settings == settings]
        todo = list(dict.fromkeys(arm.recipe for arm in mine))
        done = hyper_dino.fit(x, labels, todo, where, settings, schedule, what=what)
        for arm in mine:
            found[arm.name] = [one for one in done if one.recipe == arm.recipe]
    return {arm.name: found[arm.name] for arm in arms}


def answers(
    x: np.ndarray,
    labels: np.ndarray,
    arms: Sequence[Arm],
    where: Sequence[Split],
    schedule: Schedule,
    ks: Sequence[int],
    what: str,
) -> dict[str, list[Answer]]:
    """Every arm on every split: the test images search the training images.

    Args:
        x: (n, dim) features. labels: (n,) integer classes. arms, where, schedule, ks: what is compared, on what.
        what: the name of the work in the progress bar.
    """
    checks.values(ks=ks)
    found = fitted(x, labels, arms, where, schedule, what)
    return {
        name: [Answer(one.split, *hyper_dino.ask(one, x, labels, one.split.test, one.split.train, ks)) for one in done]
        for name, done in found.items()
    }


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
        fraction, gallery ("closed", "open") and arm → one answer per half.
    """
    checks.values(ks=ks, dim_out=dim_out, seed=seed)
    checks.several("fractions", fractions, checks.portion)
    half_of, apart = folds.apart(labels.astype(str), groups, 2, seed)
    found: dict[tuple[float, str, str], list[Answer]] = {}
    for fraction in fractions:
        parts = [
            replace(split, train=part_of_each_class(split.train, labels, fraction, seed))
            for split in hyper_dino.splits(half_of, seed)
        ]
        n = min(x.shape[1], *(len(split.train) for split in parts))
        arms = curvature_arms(Recipe("PCA", n, dim_out), settings)[:3]
        for name, done in fitted(x, labels, arms, parts, schedule, f"{what}, {fraction:.1%}").items():
            for one in done:
                test = one.split.test
                closed = hyper_dino.ask(one, x, labels, test, one.split.train, ks)
                opened = hyper_dino.ask(one, x, labels, test, test, ks, ids=apart)
                found.setdefault((fraction, "closed", name), []).append(Answer(one.split, *closed))
                found.setdefault((fraction, "open", name), []).append(Answer(one.split, *opened))
    return found


def part_of_each_class(rows: np.ndarray, labels: np.ndarray, fraction: float, seed: int) -> np.ndarray:
    """The given fraction of ``rows`` (indices), at least one image of every class; a part of any larger fraction's.

    >>> part_of_each_class(np.arange(6), np.array([0, 0, 0, 0, 1, 1]), 0.5, seed=0).size
    3
    """
    order = np.random.default_rng(seed).permutation(rows)
    kept = [(mine := order[labels[order] == c])[: max(1, round(fraction * len(mine)))] for c in np.unique(labels[rows])]
    return np.sort(np.concatenate(kept))


def length_choice(
    x: np.ndarray,
    labels: np.ndarray,
    groups: np.ndarray,
    where: Sequence[Split],
    todo: Sequence[Recipe],
    settings: Settings,
    schedule: Schedule,
    ks: Sequence[int],
) -> pd.DataFrame:
    """MAP@k of every recipe on the test part, and on a validation part that was cut off the training part (HD-12).

    Args:
        where: the splits; the validation part is a fifth of the training groups.
        todo: the recipes to choose from; a PCA longer than the smallest part that is learnt from is cut to that.

    Returns:
        One row per fold, recipe and k: fold, dim_in, k, validation, test (percent). Heads that are validated learn
        from the rest of the training part, heads that are tested from all of it.
    """
    inner = []
    for split in where:
        part, _ = folds.apart(labels[split.train].astype(str), groups[split.train], 5, split.seed)
        kept, checked = folds.split(part, 0)
        inner.append(replace(split, train=split.train[kept], test=split.train[checked]))
    smallest = min(len(split.train) for split in inner)
    todo = list(dict.fromkeys(replace(recipe, dim_in=min(recipe.dim_in, smallest)) for recipe in todo))
    arms = [Arm(recipe.name, recipe, settings) for recipe in todo]
    values: Mapping[str, dict[str, list[Answer]]] = {
        "validation": answers(x, labels, arms, inner, schedule, ks, "lengths, validation"),
        "test": answers(x, labels, arms, where, schedule, ks, "lengths, test"),
    }
    lines = []
    for row, split in enumerate(where):
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
            ("on validation images, fold by fold", honest, ", ".join(map(str, by_fold))),
            ("on the test folds, as the best row of a table", cells.xs(on_test, level=1).mean(), str(on_test)),
            ("none: the longest", cells.xs(longest, level=1).mean(), str(longest)),
        ):
            lines.append({"choice": name, "k": each, "value": float(value), "lengths": lengths})
    return pd.DataFrame(lines)
