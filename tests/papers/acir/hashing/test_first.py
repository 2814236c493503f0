"""The first answers of trained codes, by hand, with ties that no order of the archive decides."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.geometry import Euclidean
from lib.papers.acir.hashing import first
from lib.training.splits import Split

LABELS = np.array([0, 0, 0, 0, 1, 1, 1, 1, 0, 1, 2])
SPLIT = Split(0, np.arange(8), np.arange(8, 11), 0)


def fitted(values, seed=0):
    """Something trained that gives every image the number that stands for it."""
    return SimpleNamespace(split=Split(seed, SPLIT.train, SPLIT.test, seed), embed=torch.from_numpy, space=Euclidean())


def test_a_query_whose_class_the_archive_lacks_is_left_out():
    x = np.where(LABELS == 1, 1.0, 0.0)[:, None]
    rows = first.table({"a": [fitted(x)]}, x, LABELS)
    assert rows["macro_f1"].tolist() == [100, 100, 100] and set(rows["archive"]) == {"closed"}
    assert rows["n_queries"].tolist() == [3, 3, 3] and rows["n_without_relevant"].tolist() == [1, 1, 1]


def test_ties_are_not_decided_by_the_order_of_the_archive():
    """Where all codes are one, the class that the archive begins with does not win every query in every training."""
    x = np.zeros((len(LABELS), 1))
    several = {"a": [fitted(x, seed) for seed in range(12)]}
    wins = [first._voted(one, x, LABELS).votes[0, 0] for one in several["a"]]
    assert set(wins) == {0, 1}


def test_the_trivial_answer_is_the_commonest_class_of_the_archive():
    asked, archive = np.array([0, 0, 1, 2]), np.array([1, 1, 0])
    assert first.commonest(asked, archive) == pytest.approx(100 * (0 + 2 * (1 / 3) / (1 / 3 + 1)) / 2)


def test_a_row_has_the_first_answer_and_three_votes():
    rows = pd.DataFrame(
        [{"method": "CSQ", "k": k, "metric": "ap_min", "ours": 80.0, "seeds_spread": 1.0} for k in (1, 100)]
    )
    rows = rows.assign(class_mean=70.0, chance=20.0, class_chance=12.5)
    voted = pd.DataFrame([{"method": "CSQ", "k": k, "macro_f1": 60.0 + k, "seeds_spread": 0.5} for k in (1, 3, 5)])
    lines = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in first.layout(rows, voted, 9.5).splitlines()
    ]
    assert lines[2] == ["CSQ", "80.00 ± 1.00 (70.00)", "61.00 ± 0.50", "63.00 ± 0.50", "65.00 ± 0.50"]
    assert lines[3][:2] == ["chance", "20.00 (12.50)"] and lines[4][2] == "9.50"
