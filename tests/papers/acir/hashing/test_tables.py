"""What stands in the tables and the figure is what was put in."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.acir import published, radius
from lib.papers.acir.hashing import figures, tables
from lib.papers.acir.hashing.experiment import ACIR, BY_LABELS, MEAN, NONE, OURS

ROWS = pd.DataFrame(
    [
        {"gallery": "closed", "method": name, "bits": bits, "metric": metric, "k": 100, "ours": value + shift}
        | {"class_mean": value - 1, "chance": 10.0, "class_chance": 8.0, "seeds_spread": 0.5, "loss": 0.1 * (bits or 0)}
        | {"loss_first": 0.3 * (bits or 0)}
        | {"steps": 60 if bits else np.nan}
        for name, bits, value in (
            ("CSQ", 8, 80.0),
            ("CSQ", 16, 82.0),
            (ACIR, 8, 79.0),
            (ACIR, 16, 84.0),
            (NONE, None, 60.0),
        )
        for metric, shift in ((tables.HITS, 0.0), ("ap_min", -5.0))
    ]
)
RANKED = pd.DataFrame(
    [
        {"method": name, "repeat": repeat, "tied": 40.0, "plain": 80.0, "content": 80.0 + gain, "plain_min": 70.0}
        | {"content_min": 70.5}
        for name, gain in (("CSQ", 1.0), ("DPN", 0.2), (ACIR, 0.5))
        for repeat in (0, 1)
    ]
)


def cells(markdown):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.splitlines()]


def test_table_1_has_published_rows_first_and_a_column_for_what_has_no_code():
    theirs = published.maps().query("dataset == 'bps' and method == 'CSQ' and bits <= 16")
    head, _, first, *others = cells(tables.layout(ROWS, theirs))
    columns = ["method", "whose", "gallery", "8 bits", "16 bits", "no code", "± over trainings, at most"]
    assert head == [*columns, "first loss", "last loss", "steps"]
    assert first == ["CSQ", "published, BPS", "–", "97.0 (96.7)", "96.0 (95.6)", "–", "–", "–", "–", "–"]
    values = ["80.00 (79.00)", "82.00 (81.00)", "–", "0.50", "2.400 / 4.800", "0.800 / 1.600", "60"]
    assert others[0] == ["CSQ", "ours", "closed", *values]
    assert others[2] == [NONE, "ours", "closed", "–", "–", "60.00 (59.00)", "0.50", "–", "–", "–"]
    assert others[3][:4] == ["chance", "–", "closed", "10.00 (8.00)"]


def test_table_1_has_both_datasets_of_the_paper_and_networks_that_are_not_rebuilt():
    """Read off Table 1: ViT-LLaMa and FIRe at 8 bits; the paper divides by hits alone."""
    shown = tables.table_1(ROWS, published.maps(), tables.HITS, "text").markdown
    lines = {tuple(line[:2]): line[3] for line in cells(shown)}
    assert lines["FIRe", "published, RadIN-CT"].startswith("61.3 (")
    assert lines["ViT-LLaMa", "published, RadIN-CT"].startswith("61.3 (")
    assert sum(whose.startswith("published") for _, whose in lines) == 22
    assert "published" not in tables.table_1(ROWS, published.maps(), "ap_min", "text").markdown


def test_the_other_metric_has_its_own_values():
    assert cells(tables.layout(ROWS, published.maps().iloc[:0], "ap_min"))[2][3] == "75.00 (79.00)"


def test_rare_classes_give_a_place_of_their_own():
    rows = ROWS.copy()
    rows.loc[(rows["method"] == "CSQ") & (rows["bits"] == 16), "class_mean"] = 83.5
    assert [line.partition(":")[0] for line in tables.by_class(rows)] == [
        f"{bits} bits, ÷ {how}" for bits in (8, 16) for how in ("hits", "min(k, R)")
    ]
    first, second = tables.by_class(rows[rows["metric"] == "ap_min"])
    assert first == (
        "8 bits, ÷ min(k, R): ACIR is number 2 of 2 by mAP (74.0), number 2 by maAP (78.0); first by maAP: CSQ (79.0)"
    )
    assert second == (
        "16 bits, ÷ min(k, R): ACIR is number 1 of 2 by mAP (79.0), number 2 by maAP (83.0); first by maAP: CSQ (83.5)"
    )


def test_who_gains_as_much_by_content_is_counted():
    sentence = tables.ranking_sentence(RANKED)
    assert "adds +0.5 points of mAP ÷ hits to ACIR (÷ min(k, R): +0.5; published: +1.5)" in sentence
    assert "from +0.2 to +1.0 to the others; 1 of 2 gain as much or more" in sentence
    assert cells(tables.ranking_layout(RANKED))[2] == ["CSQ", "40", "80.00 ± 0.00", "81.00", "+1.00", "+0.50"]


def test_table_6_puts_theirs_beside_ours():
    rows = pd.DataFrame(
        [
            {
                "method": "CSQ",
                "radius": radius,
                "accuracy": 70.0 + radius,
                "precision": 80.0,
                "recall": 75.0,
                "repeat": 0,
            }
            | {"n_queries": 9, "n_rejected": 3 - radius, "n_empty": 0}
            for radius in (0, 1)
        ]
    )
    theirs = published.radii().query("method == 'CSQ' and radius <= 1")
    assert cells(radius.layout(rows, theirs)) == [
        ["R", "CSQ, published", "CSQ, ours", "queries in no ball"],
        ["---"] * 4,
        ["0", "71.5 (82.0 / 71.5)", "70.0 (80.0 / 75.0)", "3 to 3"],
        ["1", "73.3 (79.1 / 73.3)", "71.0 (80.0 / 75.0)", "2 to 2"],
    ]


@pytest.mark.parametrize(("off", "words"), [(0.2, ": the same as α = 0"), (0.3, "not the same as α = 0")])
def test_a_term_without_a_gradient_is_told(off, words):
    row = {"repeat": 0, "codes": 80.0, "numbers": 82.0, "distinct": 9, "off": 0.2, "loss_last": 1.0}
    row |= {"codes_class": 70.0, "numbers_class": 72.0}
    rows = pd.DataFrame([row | {"method": "α = 0"}, row | {"method": "L_Q as printed", "off": off}])
    first, second = tables.bits_sentences(rows)
    assert words in first
    assert second == "numbers before the sign have +2.0 to +2.0 points of mAP beside their codes"
    shown = tables.bits_layout(pd.concat([rows, rows.assign(repeat=1)]))
    assert "|h|" not in shown and cells(shown)[2][1:3] == ["80.00 ± 0.00 (70.00)", "82.00 (72.00)"]


def test_controls_of_fingerprints_stand_beside_each_other():
    values = {OURS: (80.0, 82.0), MEAN: (79.0, 79.0), BY_LABELS: (84.0, 86.0)}
    rows = pd.DataFrame([{"method": name, "codes": value} for name, both in values.items() for value in both])
    told = tables.looks_sentence(rows)
    assert told.startswith(
        "mAP with fingerprints 81.0 ± 1.4; every pair at the mean likeness 79.0 ± 0.0, labels alone "
    )
    assert told.endswith("85.0 ± 1.4 (α = 0.1)")


def test_the_mean_over_losses_is_told_by_length():
    assert tables.lengths_sentence(ROWS) == "mean mAP (min(k, R)) of all losses: 74.5 at 8 bits, 78.0 at 16 bits"


def test_likeness_is_told_by_shares_of_the_pairs():
    rows = pd.DataFrame(
        [{"likeness": "cosine", "pairs": "one class", "n_pairs": 9, "low": 0.1, "median": 0.25, "high": 0.9}]
    )
    assert cells(tables.looks_layout(rows)) == [
        ["likeness", "pairs", "number of pairs", "10 %", "median", "90 %"],
        ["---"] * 6,
        ["cosine", "one class", "9", "0.100", "0.250", "0.900"],
    ]


def test_rates_mark_the_chosen_one():
    rows = pd.DataFrame(
        {
            "method": ["CSQ", "CSQ", ACIR, ACIR],
            "alpha": [np.nan, np.nan, 0.5, 0.5],
            "lr": [0.001, 0.01] * 2,
            "validation": [80.0, 90.0, 70.0, 60.0],
            "within": [False, True, True, True],
            "chosen": [False, True, True, False],
        }
    )
    assert cells(tables.rates_layout(rows))[2:] == [
        ["CSQ", "80.00", "**90.00**", "1 of 2"],
        [f"{ACIR}, α = 0.5", "**70.00**", "*60.00*", "2 of 2, flat"],
    ]


def test_the_figure_draws_every_method_and_those_without_a_code_as_lines():
    rows = ROWS[ROWS["metric"] == tables.HITS]
    figure = figures.lengths(rows, published.maps().query("dataset == 'radin_ct'"), "RadIN-CT")
    ours, theirs = figure.axes[:2]
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ours.lines if not line.get_label().startswith("_")}
    assert drawn == {"CSQ": [80.0, 82.0], ACIR: [79.0, 84.0]}
    assert ours.get_title() == f"ours\nbelow: {NONE}, 60.0" and ours.get_ylim()[0] > 75
    near = rows.assign(ours=rows["ours"].where(rows["bits"].notna(), 78.0))
    beside = figures.lengths(near, published.maps().query("dataset == 'radin_ct'"), "RadIN-CT").axes[0]
    levels = [(line.get_label(), line.get_ydata()[0], line.get_linestyle()) for line in beside.lines]
    assert (NONE, 78.0, ":") in levels and not beside.texts
    named = [text.get_text() for text in beside.figure.legends[0].get_texts()]
    assert NONE in named and len(named) == len(set(named)) == 12
    looks = [(line.get_marker(), line.get_fillstyle()) for line in theirs.lines]
    assert len(set(looks)) == len(looks) == 11
