"""The verdicts on the published tables: what errata LT-4 to LT-8 say, and that a table that fits passes."""

import pandas as pd
import pytest

from lib.papers.label_tree import published
from lib.papers.label_tree.taxonomies import checks


def test_hf1_is_below_top_1_in_29_of_36_rows():
    """Erratum LT-4, with its largest deviation."""
    rows = checks.hf1_and_top1()
    assert len(rows) == 36 and (rows["verdict"] == checks.NO).sum() == 29
    worst = rows.loc[rows["difference"].idxmin()]
    assert (worst["dataset"], worst["method"]) == ("inaturalist", "SimCLR (Euclidean)")
    assert worst["difference"] == pytest.approx(0.441 - 0.620)


def test_no_row_of_table_1_fits_a_tree_of_two_steps_or_of_three():
    """Errata LT-4 and LT-5: 0.775 is asked of H-Acc in the first row if L = 3; siblings are 0.8 to 9.8 %."""
    rows = checks.breakhis()
    assert (rows["verdict"] == checks.NO).all() and (rows["verdict_l3"] == checks.NO).all()
    assert rows["least_l3"][0] == pytest.approx(0.775, abs=5e-4)
    assert 100 * rows["siblings"].min() == pytest.approx(0.8) and 100 * rows["siblings"].max() == pytest.approx(9.8)


def test_the_sums_are_those_of_the_erratum():
    """Erratum LT-6."""
    rows = checks.sums()
    ends = rows.groupby("dataset")["sum"].agg(["min", "max"]).round(3)
    assert ends.loc["breakhis"].tolist() == [0.980, 0.994] and ends.loc["odir"].tolist() == [1.012, 1.024]
    assert ends.loc["ham10000"].tolist() == [1.029, 1.035] and ends.loc["in_shop"].tolist() == [1.010, 1.025]
    assert ends.loc["inaturalist"].tolist() == [0.970, 1.003]
    assert len(rows) == 45 and (rows["verdict"] == checks.YES).sum() == 1


def test_the_gains_are_those_of_the_errata():
    """Errata LT-7 and LT-8."""
    rows = checks.gains().set_index(["dataset", "metric"])
    order = rows.xs("PC-Order", level="metric")
    assert order["hyperbolic"].min() == pytest.approx(9.3) and order["euclidean"]["in_shop"] == pytest.approx(10.2)
    assert rows.loc[("in_shop", "HF1"), "step"] == pytest.approx(-0.8)
    assert rows.loc[("in_shop", "Violations"), "hyperbolic"] == pytest.approx(29.6, abs=0.05)
    assert (rows.loc["in_shop", "step"] < 0).all()
    same = rows.loc[["breakhis", "odir", "ham10000"]].loc[(slice(None), ["HF1", "PC-Order", "Violations"]), "step"]
    assert same.round(4).unique().tolist() == [1.1]


def test_the_ranges_of_section_4_mix_the_spaces_and_those_of_section_5_do_not():
    rows = checks.ranges()
    fits = rows[rows["verdict"] == checks.YES]
    assert fits["section"].tolist() == ["4.5"] + ["5"] * 7
    mixed = rows[rows["verdict"] == "**two spaces mixed**"]
    assert mixed["metric"].tolist() == ["HF1", "Violations", "Top-1"]
    assert mixed["low"].eq("euclidean").all() and mixed["high"].eq("hyperbolic").all()
    assert rows.loc[rows["low"] == "neither", "metric"].tolist() == ["PC-Order"]


@pytest.fixture
def sound(monkeypatch):
    """Tables whose columns come from one set of predictions: a third of the mistakes are siblings."""

    def results() -> pd.DataFrame:
        rows = real()
        rows["H-Acc"] = rows["Top-1"] + (1 - rows["Top-1"]) / 6
        rows["HF1"] = (1 + 2 * rows["H-Acc"]) / 3
        rows["Violations"] = 1 - rows["PC-Order"]
        return rows.round(3)

    real = published.results
    monkeypatch.setattr(published, "results", results)


def test_a_sound_table_passes_every_check(sound):
    assert (checks.hf1_and_top1()["verdict"] == checks.YES).all()
    assert (checks.breakhis()["verdict"] == checks.YES).all()
    assert (checks.sums()["verdict"] == checks.YES).all()


def test_a_mark_stands_where_the_verdict_says():
    text = checks.panels(checks.hf1_and_top1(), "difference")
    lines = text.splitlines()
    assert lines[0] == "| method | BreakHis | ODIR | HAM | iNat |" and text.count("✗") == 29
    assert lines[2] == "| SimCLR (Euclidean) | -0.002 ✗ | -0.078 ✗ | -0.082 ✗ | -0.179 ✗ |"
    sums = checks.panels(checks.sums(), "sum")
    assert (sums.count("✗"), sums.count("~")) == (14, 30)


def test_the_other_layouts_show_all_rows():
    assert len(checks.breakhis_layout(checks.breakhis()).splitlines()) == 2 + 9
    gains = checks.gains_layout(checks.gains())
    assert len(gains.splitlines()) == 2 + 21 and gains.count("✗") == 4
    assert "| 4.5 | PC-Order | all five | 7 to 16 |" in checks.ranges_layout(checks.ranges())
