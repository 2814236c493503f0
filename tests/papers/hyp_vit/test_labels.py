"""Whether the first answer has the query's label, with its own category in the gallery and without."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.papers.hyp_vit import heads, labels, retrieval
from lib.papers.hyp_vit.heads import HYP, NONE, SPH
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings


@pytest.fixture(scope="module")
def of_label(toy):
    """Labels of all images: of the query categories two share label 0, two label 1, and two have one of their own."""
    return np.where(toy.codes > 9, toy.codes, toy.codes % 2)


@pytest.fixture(scope="module")
def measured(toy, of_label, tmp_path_factory):
    schedule = ByClass(2, 8, lr=1e-2, samples=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        methods = heads.baselines(Settings(), 8, 3, 6, schedule)[:1]
        methods += heads.heads(Settings(), 8, 3, schedule, (HYP, SPH))
        study, arms = heads.study({"net": toy.x}, toy.parts, [1], n_seeds=2), heads.arms(methods, "net")
        answers = labels.by_label(study, arms, of_label)
        by_category = retrieval.recall(study.answers(arms)["own"])
        return answers, labels.values(answers, by_category, of_label[36:]).set_index("method")


def test_the_shares_of_the_plain_features_are_found_by_hand(measured, toy, of_label):
    row, codes, label = measured[1].loc[NONE], toy.codes[36:], of_label[36:]
    unit = toy.x[36:] / np.linalg.norm(toy.x[36:], axis=1, keepdims=True)

    def first(own: np.ndarray) -> np.ndarray:
        """The nearest image of every query by the cosine, its ``own`` left out."""
        return np.where(own[:, None] == own, -2, unit @ unit.T).argmax(axis=1)

    there, alone, has = first(np.arange(36)), first(codes), label < 2
    assert row["category"] == pytest.approx(100 * (codes[there] == codes).mean())
    assert row["label"] == pytest.approx(100 * (label[there] == label).mean())
    right = pd.Series(label[alone] == label)[has]
    assert row["label_alone"] == pytest.approx(100 * right.mean()) and row["n_without_relevant"] == 12
    assert row["by_class"] == pytest.approx(100 * right.groupby(label[has]).mean().mean())
    # of a query's 30 others, 6 have its label: labels 0 and 1 have two categories each, of which one is left out
    assert row["chance_label_alone"] == row["chance_by_class"] == pytest.approx(100 * 6 / 30)
    blind = measured[1].loc[labels.COMMONEST]  # labels 0 and 1 have twelve query images each: the first is answered
    assert blind["label"] == pytest.approx(100 * 12 / 36) and blind["label_alone"] == blind["by_class"] == 50


def test_the_label_is_tested_over_categories_that_have_an_answer(measured, toy):
    rows = labels.tests(measured[0], toy.names)
    assert rows[["first", "second"]].values.tolist() == [[HYP, NONE], [HYP, SPH]]
    assert rows["n_units"].tolist() == [4, 4] and rows["n_seeds"].tolist() == [2, 2]
