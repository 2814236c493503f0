"""Comparisons from stored scores: the right queries, the right unit, and intervals that do their job."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

from lib.metrics.significance import corrected, paired_permutation
from lib.papers.linear_prototypes.significance import tables as significance
from lib.results import paired
from lib.results.store import Run

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
    head, *lines = paired.sentences(rows)
    assert head == "Against old:" and [line[: line.index(" (")] for line in lines] == [
        "  new: better",
        "  luck: not clearly different",
    ]
    assert "| new | old | +" in significance.layout(rows) and "≤ 0.0002" in significance.layout(rows)


def test_a_method_that_loses_is_called_worse(scores):
    table = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(table, [("old", "new")]))
    assert paired.sentences(rows)[0].startswith("old against new: worse (-")


def test_the_best_is_picked_on_one_fold_and_tested_on_the_others(scores):
    table = significance.pick(scores, "closed", 5)
    spoiled = table.copy()
    spoiled.loc[spoiled.index.get_level_values("fold") == 0, "luck"] += 1000
    assert significance.best(table, list(table), fold=0) == "new"
    assert significance.best(spoiled, list(table), fold=0) == "luck"
    assert significance.best(spoiled, list(table), fold=1) == "new"
    rest = significance.without(spoiled, fold=0)
    assert len(rest) == 40 * REPEATS and set(rest.index.get_level_values("fold")) == {1, 2}


def test_what_came_out_counts_gains_losses_and_names_the_extremes(scores):
    table = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(table, [("new", "old"), ("luck", "old"), ("luck", "new")]))
    counted, smallest, largest, floor, skewness = significance.came_out(rows)
    assert counted == "2 of 3 comparisons stand after Holm: 1 gained, 1 lost."
    sizes = rows.set_index(["first", "second"])["difference"].abs()
    first = [("new", "old"), ("luck", "new")]
    low, high = sorted(first, key=lambda pair: sizes[pair])
    assert smallest.startswith(f"The smallest: {low[0]} − {low[1]}") and largest.startswith(f"The largest: {high[0]}")
    assert floor.endswith("in 2 of 3.")
    assert f"{rows['skewness'].min():+.1f} to {rows['skewness'].max():+.1f}" in skewness
    assert significance.came_out(rows[rows["first"] == "nobody"])[0].startswith("0 of 0 comparisons")


def test_the_table_shows_all_comparisons_and_says_what_they_are_of(scores):
    queries = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(queries, [("new", "old")]))
    about = {"k": 5, "folds": 3, "groups": "patient"}
    run = Run("42_linear_prototypes_significance", "demo", "tissue", "images", "abc", "texture", about)
    table = significance.table(run, rows)
    assert table.rows is rows and table.markdown == significance.layout(rows)
    assert "AP@5" in table.caption and "3 folds by patient" in table.caption
    assert "the project keeps the one that was corrected for more tests" in table.caption


def test_sentences_say_for_how_many_tests_p_was_corrected_here_and_in_notebook_41(scores):
    table = significance.pick(scores, "closed", 5)
    rows = significance.rows(significance.compare(table, [("new", "old"), ("luck", "old")]))
    first, *said = significance.sentences(rows)
    assert first == "p is corrected for 2 tests:" and said == paired.sentences(rows)
    more = [rows.assign(rule=rule, k=k, n_tests=8) for rule, k in product(("closed", "open"), (1, 5))]
    first, *said = significance.elsewhere(pd.concat(more))
    assert first == "p is corrected for 8 tests:" and len(said) == 3
    assert not any("open" in line or "k = 1 " in line for line in said) and "closed, k = 5 better" in said[1]
