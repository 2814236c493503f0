"""Votes of the nearest images, and queries without an answer: counted, and a gallery of one class not tested."""

import numpy as np
import pandas as pd
import pytest

from lib.study import answers
from lib.training.experiment import Voted


def test_votes_of_all_folds_are_one_f1_for_each_training():
    """One query of the second fold has no answer: it is counted, and no class of the mean is its."""
    good, bad = [[["a"] * 3, ["a"] * 3], [["b"] * 3]], [[["a"] * 3, ["b"] * 3], [["b", "b", "a"]]]
    several = [
        Voted(repeat, np.array(classes), np.array(votes), n_without_relevant)
        for repeat, folds in enumerate((good, bad))
        for votes, classes, n_without_relevant in zip(folds, (["a", "a"], ["b"]), (0, 1), strict=True)
    ]
    rows = answers.votes({"closed": {"ball": several}, "whole": {"ball": several}}).query("archive == 'whole'")
    counts = rows[["n_queries", "n_without_relevant", "n_classes", "n_seeds"]]
    assert counts.drop_duplicates().values.tolist() == [[4, 1, 2, 2]]
    assert rows["macro_f1"].iloc[[0, -1]].tolist() == pytest.approx([100 * (1 + 2 / 3) / 2, 100 * (1 + 0.25) / 2])
    nobody = Voted(0, np.array([], dtype=str), np.empty((0, 3), dtype=str), 4)
    row = answers.votes({"closed": {"ball": [nobody]}}).iloc[0]
    assert np.isnan(row["macro_f1"]) and (row["n_queries"], row["n_without_relevant"], row["n_classes"]) == (4, 4, 0)


def test_a_gallery_that_answers_one_class_is_counted_and_not_tested(answer):
    values = {"closed": [0.5, 0.6, 0.7], "open": [0.5, np.nan, np.nan]}
    galleries = {gallery: {"ball": [answer([0, 1, 2], of)]} for gallery, of in values.items()}
    assert list(answers.fair(galleries)) == ["closed"]
    assert list(answers.fair({"open": galleries["open"]})) == ["open"]  # a table of nothing else is still a table
    rows = answers.counted(pd.DataFrame({"archive": ["open", "closed"]}), galleries, "archive")
    assert rows["n_classes"].tolist() == [1, 2]
    none = rows.assign(n_queries=172, n_without_relevant=0, n_classes=[0, 2])
    assert answers.sentences(none) == ["open: no class has an answer there; nothing can be concluded"]
