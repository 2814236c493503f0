"""Whether the first answer has the query's label, with its own category in the gallery and without."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.datasets.categories import Halves
from lib.papers.hyp_vit.names import HYP, NONE, SPH
from lib.papers.hyp_vit.retrieval import frozen, labels, tables
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

CODES, ROWS = np.repeat(np.arange(12), 4), np.arange(48)
NAMES = np.array([f"c{code:02d}" for code in CODES])
PARTS = Halves(NAMES, CODES, ROWS[:24], ROWS[24:], ROWS[24:], 0)
LABELS = np.where(CODES == 11, 9, CODES % 3)  # of the query categories, two have a label of their own
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(48, 6)) + RNG.normal(size=(12, 6))[CODES] + RNG.normal(size=(10, 6))[LABELS]).astype(np.float32)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    schedule = ByClass(2, 8, lr=1e-2, samples=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        methods = [frozen.opponents(Settings(), 6, 3, 6, schedule)[0], *frozen.heads(Settings(), 6, 3, schedule)[:2]]
        study, arms = frozen.study({"net": X}, PARTS, [1], n_seeds=2), frozen.arms(methods, "net")
        by_label = labels.by_label(study, arms, LABELS)
        by_category = tables.recall(study.answers(arms)["own"])
        return by_label, labels.values(by_label, by_category, LABELS[24:]).set_index("method")


def first_answers(left_out: np.ndarray) -> np.ndarray:
    """The nearest image of every query by the cosine, its own ``left_out`` not among them."""
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosine = unit[24:] @ unit[24:].T
    cosine[left_out[24:, None] == left_out[None, 24:]] = -2
    return 24 + cosine.argmax(axis=1)


def test_the_shares_of_the_plain_features_are_found_by_hand(found):
    row = found[1].loc[NONE]
    there, alone = first_answers(ROWS), first_answers(CODES)
    assert row["category"] == pytest.approx(100 * (CODES[there] == CODES[24:]).mean())
    assert row["label"] == pytest.approx(100 * (LABELS[there] == LABELS[24:]).mean())
    has = LABELS[24:] < 2
    right = (LABELS[alone] == LABELS[24:])[has]
    assert row["label_alone"] == pytest.approx(100 * right.mean()) and row["n_without_relevant"] == 8
    by_class = pd.Series(right).groupby(LABELS[24:][has]).mean().mean()
    assert row["by_class"] == pytest.approx(100 * by_class)
    assert row["chance_category"] == pytest.approx(100 * 3 / 23)
    # of a query's 20 others, 4 have its label: labels 0 and 1 have two categories each, of which one is left out
    assert row["chance_label_alone"] == row["chance_by_class"] == pytest.approx(100 * 4 / 20)


def test_the_commonest_label_is_right_where_it_is_the_querys(found):
    """Labels 0 and 1 have eight query images each; of equal ones the first is the commonest."""
    row = found[1].loc[labels.COMMONEST]
    assert row["label"] == pytest.approx(100 * 8 / 24) and row["label_alone"] == row["by_class"] == pytest.approx(50)
    assert np.isnan(row["category"])


def test_the_label_is_tested_over_categories_that_have_an_answer(found):
    rows = labels.tests(found[0], NAMES)
    assert rows[["first", "second"]].values.tolist() == [[HYP, NONE], [HYP, SPH]]
    assert rows["n_units"].tolist() == [4, 4] and rows["n_seeds"].tolist() == [2, 2]
