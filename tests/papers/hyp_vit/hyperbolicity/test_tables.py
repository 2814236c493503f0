"""Published and own values stand beside each other."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit.hyperbolicity import tables
from lib.results.store import Run

RUN = Run(
    "21_hyp_vit_hyperbolicity",
    "demo",
    "tissue",
    "120 images",
    "abc",
    "two encoders",
    {"draws": 3, "size": 60, "folds": 5, "rule": "by patient"},
)
OURS = pd.DataFrame(
    {"encoder": ["net", "texture"], "dim": [384, 2], "relative": [0.24, 0.36], "low": [0.2, 0.3], "high": [0.28, 0.4]}
)
LADDER = OURS.drop(columns="dim").assign(size=60)
"""No larger draws than those of :data:`OURS`."""


def cells(markdown: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.split("\n")]


def test_table_1_has_the_papers_layout_with_ours_below():
    shown = tables.table_1(RUN, tables.beside_published(OURS, "tissue", LADDER, 60))
    head, _, *rows = cells(shown.markdown)
    assert head == ["", "encoder", "CUB-200", "Cars-196", "SOP", "In-Shop", "procedural H&E-like tiles"]
    assert rows[0] == ["published", "ViT-S", "0.280", "0.339", "0.271", "0.313", "–"]
    assert rows[3] == ["ours", "net", "–", "–", "–", "–", "0.240 (0.200 to 0.280)"]
    assert [row[1] for row in rows] == ["ViT-S", "DeiT-S", "DINO", "net", "texture"]
    assert "3 draws of 60 images" in shown.caption and "HV-4" in shown.caption


def test_on_birds_ours_stand_in_the_papers_column():
    head, _, *rows = cells(tables.table_1(RUN, tables.beside_published(OURS, "cub", LADDER, 60)).markdown)
    assert head[2] == "CUB-200" and len(head) == 6
    assert rows[3][2].startswith("0.240") and rows[3][3] == "–"


def test_the_largest_draws_have_rows_of_their_own():
    larger = LADDER.assign(size=2000, relative=[0.25, 0.4])
    shown = tables.table_1(RUN, tables.beside_published(OURS, "cub", pd.concat([LADDER, larger]), 60))
    _, _, *rows = cells(shown.markdown)
    assert [row[0] for row in rows[3:]] == ["ours", "ours", *2 * ["ours, 2,000 images a draw"]]
    assert rows[4][2].startswith("0.360") and rows[6][2].startswith("0.400")


def test_a_wider_delta_gives_a_wider_c_the_other_way_round():
    rows = tables.beside_published(OURS, "tissue", LADDER, 60)
    row = rows[rows["encoder"] == "net"].iloc[0]
    assert (row["c"], row["c_low"], row["c_high"]) == pytest.approx((0.36, (0.144 / 0.28) ** 2, (0.144 / 0.2) ** 2))
    shown = tables.table_curvature(RUN, rows)
    assert cells(shown.markdown)[2][2] == "0.264" and "close to 0.2 and trains with 0.1" in shown.caption


def test_every_procedure_is_named_with_its_number(procedures):
    found = procedures.set_index("procedure")["relative"]
    assert found.to_dict() == pytest.approx(
        {
            "as in this notebook": 0.25,
            "L2-normalised": 0.3,
            "without the factor 2": 0.125,
            "20 instead of 60 images": 0.2,
            "2 images, first point as base": 0.25,
            "2 images, the worst of all base points": 0.3,
        }
    )
    c = procedures.set_index("procedure")["c"]
    assert c["without the factor 2"] == pytest.approx(4 * c["as in this notebook"])
    assert cells(tables.table_procedure(RUN, procedures).markdown)[2][2] == "0.250"


def test_the_table_of_copies_prints_both_deltas(changed):
    rows = cells(tables.table_copies(RUN, changed).markdown)
    assert rows[2] == ["net", "shuffled", "0.200", "0.100", "-0.100", "-0.120 to -0.080", "3.0", "30.0"]


def test_both_distances_stand_beside_chance(searched):
    shown = tables.table_search(RUN, searched)
    head, _, first, _ = cells(shown.markdown)
    row = dict(zip(head, first, strict=True))
    assert (row["MAP@k Euclidean"], row["MAP@k hyperbolic"], row["chance"]) == ("80.00", "77.00", "12.50")
    assert row["hyperbolic − Euclidean, pp"] == "-3.00" and row["median radius"] == "55 %"
    assert "5 folds, by patient" in shown.caption and "norm 2.3" in shown.caption
    assert "queries as well, without their labels" in shown.caption and "not corrected" in shown.caption


def test_an_interval_that_is_missing_is_a_dash():
    assert tables.interval(np.nan, np.nan) == "–"
