"""Every fold chooses for itself, and on no image that it tests."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lib.datasets import folds
from lib.datasets.loaders import load
from lib.datasets.queries import balanced, of_folds
from lib.papers.linear_prototypes import tuning
from lib.papers.linear_prototypes.heads import trained
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings
from lib.training.splits import Split, query_splits
from tests.papers.linear_prototypes.conftest import GROUPS, LABELS, X

HEAD = trained("head", 6, 4, Settings(hidden=8), Episodes(epochs=5, batch_size=32, lr=0.01, k=3))


def apart(labels: np.ndarray, groups: np.ndarray, split: Split, per_class: int, k: int) -> None:
    """No validation image, and no group of one, is among those that the fold holds out; none asks and is searched."""
    inner, units, _ = tuning.inner_split(labels, groups, split, per_class, k)
    assert inner.fold == split.fold and len(inner.test) > 0
    assert not set(inner.test) & set(split.held_out) and not set(inner.train) & set(split.held_out)
    assert set(inner.train) | set(inner.held_out) == set(split.train)
    assert not set(groups[split.train]) & set(groups[split.test])
    assert not set(units[inner.train]) & set(units[inner.held_out])


def test_validation_images_are_only_of_training_groups(where):
    for split in where:
        apart(LABELS, GROUPS, split, 4, 3)
        np.testing.assert_array_equal(tuning.inner_split(LABELS, GROUPS, split, 4, 3)[1], GROUPS)
    groups = np.where(np.arange(96) < 48, "first", "second")  # of two patients one is learnt from: images are groups
    split = query_splits({0: balanced(LABELS.astype(str), groups, (groups == "first") * 1, 0, 4, 0)}, seed=0)[0]
    with pytest.warns(UserWarning, match="In a part of .* every image is taken for a group of its own"):
        inner, units, _ = tuning.inner_split(LABELS, groups, split, 4, 3)
    assert set(inner.train) | set(inner.held_out) == set(split.train) and len(inner.train) == 36
    assert set(units[split.held_out]) == {"second"} and len(set(units[split.train])) == 48


@pytest.mark.parametrize(("dataset", "folder"), [("kather", "kather2016_sample"), ("ham10000", "ham10000")])
def test_the_same_on_real_tables(real: Callable[[str], Path], dataset, folder):
    images = load(dataset, real(folder))
    fold_of = folds.by_group(images.labels, images.groups, 5, 0)
    drawn = of_folds(images.labels, images.groups, fold_of, 5, 20, 0, least=5, needed=6)
    for split in query_splits(drawn, 0):
        apart(np.asarray(images.codes), np.asarray(images.groups), split, 20, 5)


def test_a_choice_changes_with_what_the_fold_learns_from_and_not_with_what_it_holds_out(where):
    tables = []
    for hidden in (None, where[0].held_out, where[0].train):
        x = X.copy()
        if hidden is not None:
            x[hidden] = np.random.default_rng(0).permutation(x[hidden])
        tables.append(tuning.choose(x[None], LABELS, GROUPS, where[:1], HEAD, k=5, per_class=4)[1])
    first, other_queries, other_lessons = tables
    assert first.equals(other_queries)
    assert not first["validation"].equals(other_lessons["validation"])


def test_the_best_candidate_of_each_comparison_is_chosen_in_every_fold(where):
    chosen, rows = tuning.choose(X[None], LABELS, GROUPS, where, HEAD, k=5, per_class=4)
    assert list(chosen) == [0, 1]
    for (fold, name), part in rows.groupby(["fold", "comparison"]):
        (best,) = part[part["chosen"]].itertuples()
        settings = chosen[fold][name]
        assert best.validation == part["validation"].max()
        assert (settings.temperature, settings.hidden) == (best.temperature, 8)
        assert name == "cosine" or settings.comparison.c == best.c
    assert all(
        (note == tuning.LEFT) == (rim > 0 and not best)
        for note, rim, best in zip(rows["note"], rows["rim"], rows["chosen"], strict=True)
    )
    assert rows["rim"].isna().tolist() == (rows["comparison"] == "cosine").tolist() and (rows["steps"] > 0).all()
    n = len(rows) // 2  # of one fold
    assert rows["class_mean"][:n].tolist() == rows["class_mean"][n:].tolist() != rows["validation"][:n].tolist()


@pytest.mark.parametrize(
    ("rims", "expected"), [((0.0, 0.0), [1, 3]), ((0.0, 94.0), [1, 2]), ((80.0, 94.0), [1, 3]), ((0.0, 0.1), [1, 2])]
)
def test_a_candidate_that_reaches_the_rim_is_left_unless_all_do(rims, expected):
    """Cosine has no rim; the second ball scores best."""
    rows = pd.DataFrame({"comparison": ["cosine"] * 2 + ["poincare"] * 2, "validation": [50.0, 60.0, 70.0, 80.0]})
    assert tuning._best(rows.assign(rim=[np.nan, np.nan, *rims])).index.tolist() == expected
