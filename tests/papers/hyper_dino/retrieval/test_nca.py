"""NCA's length: chosen by a fold on images that it learns from, and by nothing else."""

import numpy as np
import pandas as pd
import pytest

from lib.datasets import folds
from lib.papers.hyper_dino.retrieval import nca
from lib.training.hyper_dino import Settings
from lib.training.splits import repeated, splits

RNG = np.random.default_rng(0)
LABELS = np.repeat(np.arange(3), 30)
GROUPS = np.array([f"patient {number}" for number in np.tile(np.repeat(np.arange(10), 3), 3)])
X = (RNG.normal(size=(90, 12)) + 2 * np.eye(3, 12)[LABELS]).astype(np.float32)
FOLD_OF = folds.by_group(LABELS.astype(str), GROUPS, 3, 0)
SETTINGS = Settings(nca_images=50)


@pytest.fixture(scope="module")
def choice() -> pd.DataFrame:
    return nca.choose(X, LABELS, GROUPS, splits(FOLD_OF, 0), [8, 2, 2, 13], SETTINGS, 5)


def test_every_fold_takes_a_length_that_its_validation_part_cannot_tell_from_the_best(choice):
    """Of those that there can be: features of 12 numbers have no 13."""
    assert choice[["fold", "length"]].to_numpy().tolist() == [[fold, n] for fold in range(3) for n in (2, 8)]
    assert set(choice["k"]) == {5} and choice["validation"].between(0, 100).all()
    for _, part in choice.groupby("fold"):
        assert part["chosen"].sum() == 1
        one = part[part["chosen"]].iloc[0]
        assert part["validation"].max() - one["validation"] <= one["se"]


def test_images_that_ask_have_no_say(choice):
    """With other labels and other features of the first fold's test images its choice is the same."""
    (asks,) = np.nonzero(FOLD_OF == 0)
    x, labels = X.copy(), LABELS.copy()
    x[asks], labels[asks] = x[asks][::-1] + 1, 0
    (first, *_) = splits(FOLD_OF, 0)
    other = nca.choose(x, labels, GROUPS, [first], [8, 2], SETTINGS, 5)
    pd.testing.assert_frame_equal(other, choice[choice["fold"] == 0])


def test_what_is_fitted_has_the_length_of_its_fold():
    lengths = {0: 2, 1: 8, 2: 2}
    rows = [{"fold": f, "length": n, "chosen": lengths[f] == n} for f in lengths for n in (2, 8)]
    where = repeated(splits(FOLD_OF, 0), 2)
    fitted = nca.fit(X, LABELS, where, pd.DataFrame(rows), SETTINGS)
    assert [one.embed(X).shape[1] for one in fitted] == [2, 8, 2, 2, 8, 2]
    for one, split in zip(fitted, where, strict=True):
        assert (one.split.fold, one.split.repeat) == (split.fold, split.repeat)
        np.testing.assert_array_equal(one.split.train, split.train)


def test_the_table_and_the_sentence_say_what_was_taken(choice):
    rows = choice.assign(chosen=choice["length"] == np.where(choice["fold"] == 1, 8, 2))
    shown = nca.table({"by patient": rows})
    assert shown.markdown.count("**") == 2 * 3 and "k = 5" in shown.caption
    took = "NCA only, folds by patient: of 2 lengths the folds take 2, 8, 2 numbers"
    assert nca.said(shown.rows) == [f"{took}; 3 of them at an end of what was tried, 2 to 8"]
    between = pd.concat([shown.rows, shown.rows.assign(length=lambda r: r["length"] * 10, chosen=False)])
    assert nca.said(between)[0].endswith("; 2 of them at an end of what was tried, 2 to 80")
    inside = rows.assign(chosen=rows["length"] == 8, rule="by patient")
    inside = pd.concat([inside, inside.assign(length=20, chosen=False)])
    assert nca.said(inside) == ["NCA only, folds by patient: of 3 lengths the folds take 8, 8, 8 numbers"]
