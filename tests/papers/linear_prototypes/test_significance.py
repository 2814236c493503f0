"""Comparisons from stored scores: the right queries, the right unit, and intervals that do their job."""

import numpy as np
import pandas as pd
import pytest

from lib.metrics.significance import corrected, paired_permutation
from lib.papers.linear_prototypes import significance
from lib.results.store import Run


@pytest.fixture
def scores() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    lines = []
    for fold in range(3):
        for image in range(20):
            base = 50 + 10 * rng.normal()
            for method, gain in (("old", 0.0), ("new", 8.0), ("luck", 0.0)):
                for gallery, k in (("closed", 1), ("closed", 5), ("open", 5)):
                    value = base + gain + rng.normal() + (100 if gallery == "open" else k)
                    about = {"gallery": gallery, "method": method, "fold": fold, "image_id": f"{fold}-{image}"}
                    lines.append(about | {"group": f"{fold}-{image // 2}", "k": k, "ap_min": value})
    return pd.DataFrame(lines)


def test_a_table_holds_one_gallery_and_one_k(scores):
    table = significance.pick(scores, "closed", 5)
    assert table.shape == (60, 3) and set(table.columns) == {"old", "new", "luck"}
    chosen = scores[(scores["gallery"] == "closed") & (scores["k"] == 5) & (scores["method"] == "new")]
    assert table["new"].sum() == pytest.approx(chosen["ap_min"].sum())


def test_the_group_is_the_unit_and_rows_are_corrected_together(scores):
    table = significance.pick(scores, "closed", 5)
    gains = significance.compare(table, [("new", "old"), ("luck", "old")])
    rows = significance.rows(gains)
    groups = table.index.get_level_values("group")
    expected = paired_permutation(table["new"], table["old"], groups)
    assert rows["n_units"].tolist() == [30, 30]
    assert rows.loc[0, "difference"] == expected.difference == pytest.approx(8, abs=1)
    assert rows.loc[0, "p_value"] == expected.p_value
    assert rows["p_holm"].tolist() == corrected(rows["p_value"]).tolist()
    assert significance.verdicts(rows) == ["new is better than old", "luck is not clearly different from old"]
    assert "| new | old | +" in significance.layout(rows) and "≤ 0.0002" in significance.layout(rows)


def test_a_method_that_loses_is_called_worse(scores):
    table = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(table, [("old", "new")]))
    assert significance.verdicts(rows) == ["old is worse than new"]


def test_the_best_is_picked_on_one_fold_and_tested_on_the_others(scores):
    table = significance.pick(scores, "closed", 5)
    spoiled = table.copy()
    spoiled.loc[spoiled.index.get_level_values("fold") == 0, "luck"] += 1000
    assert significance.best(table, list(table), fold=0) == "new"
    assert significance.best(spoiled, list(table), fold=0) == "luck"
    assert significance.best(spoiled, list(table), fold=1) == "new"
    rest = significance.without(spoiled, fold=0)
    assert len(rest) == 40 and set(rest.index.get_level_values("fold")) == {1, 2}


def test_only_the_confidence_interval_holds_the_truth_in_95_of_100_experiments():
    rows = significance.coverage(gain=4.0, spread=10.0, n=60, times=60, seed=0).set_index("interval")
    assert 85 < rows.loc["confidence interval", "share"] <= 100
    assert rows.loc["range of the null", "share"] < 25
    assert (rows["low"] <= rows["share"]).all() and (rows["share"] <= rows["high"]).all()


def test_the_table_shows_all_comparisons_and_says_what_they_are_of(scores):
    queries = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(queries, [("new", "old")]))
    about = {"k": 5, "folds": 3, "groups": "patient"}
    run = Run("42_linear_prototypes_significance", "demo", "tissue", "images", "abc", "texture", about)
    table = significance.table(run, rows)
    assert table.rows is rows and table.of == 100 and table.markdown == significance.layout(rows)
    assert "AP@5" in table.caption and "3 folds by patient" in table.caption
