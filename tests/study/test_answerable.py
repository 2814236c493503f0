"""Who has no answer is counted, and a gallery of one answered class is not tested."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics.retrieval import PerQuery
from lib.study import answerable
from lib.training.hyper_dino import Settings
from lib.training.methods import Answer, Health, Method
from lib.training.recipes import Recipe
from lib.training.splits import Split


def answers(values: list[float], classes: list[int]) -> dict[str, list[Answer]]:
    """One split of a method; a query without an answer is NaN at every k."""
    columns = pd.MultiIndex.from_product([["ap_min"], [1, 5]], names=["metric", "k"])
    n = len(values)
    frame = pd.DataFrame(np.repeat(np.array(values)[:, None], 2, axis=1), columns=columns)
    per_query = PerQuery(frame, np.array(classes), np.full(n, 5), np.full(n, 10))
    split, method = Split(0, np.arange(20, 30), np.arange(n), 0), Method("ball", Recipe("PCA", 4, 2), Settings())
    return {"ball": [Answer(method, split, Health(), [], np.zeros(10), per_query)]}


FOUND = {"closed": answers([0.5, 0.6, 0.7], [0, 1, 2]), "open": answers([0.5, np.nan, np.nan], [0, 1, 2])}


def test_a_gallery_that_answers_one_class_is_left_to_be_shown():
    assert [answerable.n_classes(of) for of in FOUND.values()] == [3, 1]
    assert list(answerable.fair(FOUND)) == ["closed"] and answerable.fair(FOUND)["closed"] is FOUND["closed"]
    assert list(answerable.fair({"open": FOUND["open"]})) == ["open"]  # a table of nothing else is still a table


def test_rows_are_told_of_how_many_classes_a_query_has_an_answer():
    rows = answerable.counted(pd.DataFrame({"archive": ["open", "closed"]}), FOUND, "archive")
    assert rows["n_classes"].tolist() == [1, 3]


@pytest.mark.parametrize(("classes", "which"), [(0, "no class has an answer"), (1, "only one class has any answer")])
def test_sentences_name_who_is_left_out_and_where_nothing_can_be_concluded(classes, which):
    row = {"n_queries": 172, "n_without_relevant": 129, "n_classes": classes}
    rows = pd.DataFrame(
        [{"gallery": "closed", **row, "n_without_relevant": 0, "n_classes": 8}, {"gallery": "open"} | row]
    )
    lost, few = answerable.sentences(rows)
    assert lost == "open: 129 of 172 queries have no image of their class there, and are left out"
    assert few == f"open: {which} there; nothing can be concluded"


def test_a_table_of_an_earlier_version_says_what_it_knows():
    rows = pd.DataFrame({"archive": ["open"], "n_queries": [10], "n_without_relevant": [4]})
    assert answerable.sentences(rows) == [
        "open: 4 of 10 queries have no image of their class there, and are left out",
    ]
    assert answerable.sentences(rows.assign(n_without_relevant=0)) == ["every query has an image of its class to find"]
