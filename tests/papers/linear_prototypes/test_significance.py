"""Comparisons from stored scores: the right queries, the right unit, and intervals that do their job."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from lib.metrics.significance import corrected, paired_permutation
from lib.papers.linear_prototypes import significance
from lib.study import paired

REPEATS = 4


@pytest.fixture
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    lines = []
    for fold in range(3):
        for image in range(20):
            base = 50 + 10 * rng.normal()
            names = {"fold": fold, "image_id": f"{fold}-{image}", "group": f"{fold}-{image // 2}"}
            for method, gain in (("old", 0.0), ("new", 8.0), ("luck", 0.0)):
                for gallery, k, repeat in product(("closed", "open"), (1, 5), range(REPEATS)):
                    value = base + gain + rng.normal() + 0.1 * repeat + (100 if gallery == "open" else k)
                    about = {"gallery": gallery, "method": method, "k": k, "repeat": repeat, "ap_min": value}
                    lines.append(names | about)
    return pd.DataFrame(lines)


def test_a_table_holds_one_gallery_and_one_k(scores):
    table = significance.pick(scores, "closed", 5)
    assert table.shape == (60 * REPEATS, 3) and set(table.columns) == {"old", "new", "luck"}
    chosen = scores[(scores["gallery"] == "closed") & (scores["k"] == 5) & (scores["method"] == "new")]
    assert table["new"].sum() == pytest.approx(chosen["ap_min"].sum())


def test_groups_and_trainings_are_the_units_and_rows_are_corrected_together(scores):
    table = significance.pick(scores, "closed", 5)
    gains = significance.compare(table, [("new", "old"), ("luck", "old")])
    rows = significance.rows(gains)
    groups, repeats = (table.index.get_level_values(name) for name in ("group", "repeat"))
    expected = paired_permutation(table["new"], table["old"], groups, repeats)
    assert rows["n_units"].tolist() == [30, 30] and rows["n_seeds"].tolist() == [REPEATS, REPEATS]
    assert rows.loc[0, "difference"] == expected.difference == pytest.approx(8, abs=1)
    assert rows.loc[0, "p_value"] == expected.p_value
    assert rows["p_holm"].tolist() == corrected(rows["p_value"]).tolist()
    assert [paired.verdict(test) for test in rows.itertuples()] == ["better", "not clearly different"]


def test_the_best_is_picked_on_one_fold_and_tested_on_the_others(scores):
    table = significance.pick(scores, "closed", 5)
    spoiled = table.copy()
    spoiled.loc[spoiled.index.get_level_values("fold") == 0, "luck"] += 1000
    assert significance.best(table, list(table), fold=0) == "new"
    assert significance.best(spoiled, list(table), fold=0) == "luck"
    assert significance.best(spoiled, list(table), fold=1) == "new"
    rest = significance.without(spoiled, fold=0)
    assert len(rest) == 40 * REPEATS and set(rest.index.get_level_values("fold")) == {1, 2}
