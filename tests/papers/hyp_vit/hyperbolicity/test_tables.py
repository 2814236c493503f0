"""Published and own values stand beside each other, and the sentences say what the numbers do."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit.hyperbolicity import measures, tables
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


def cells(markdown: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in markdown.split("\n")]


def test_table_1_has_the_papers_layout_with_ours_below():
    shown = tables.table_1(RUN, tables.beside_published(OURS, "tissue"))
    head, _, *rows = cells(shown.markdown)
    assert head == ["", "encoder", "CUB-200", "Cars-196", "SOP", "In-Shop", "procedural H&E-like tiles"]
    assert rows[0] == ["published", "ViT-S", "0.280", "0.339", "0.271", "0.313", "–"]
    assert rows[3] == ["ours", "net", "–", "–", "–", "–", "0.240 (0.200 to 0.280)"]
    assert [row[1] for row in rows] == ["ViT-S", "DeiT-S", "DINO", "net", "texture"]
    assert "3 draws of 60 images" in shown.caption and "HV-4" in shown.caption


def test_on_birds_ours_stand_in_the_papers_column():
    head, _, *rows = cells(tables.table_1(RUN, tables.beside_published(OURS, "cub")).markdown)
    assert head[2] == "CUB-200" and len(head) == 6
    assert rows[3][2].startswith("0.240") and rows[3][3] == "–"


def test_a_wider_delta_gives_a_wider_c_the_other_way_round():
    rows = tables.beside_published(OURS, "tissue")
    row = rows[rows["encoder"] == "net"].iloc[0]
    assert (row["c"], row["c_low"], row["c_high"]) == pytest.approx((0.36, (0.144 / 0.28) ** 2, (0.144 / 0.2) ** 2))
    shown = tables.table_curvature(RUN, rows)
    assert cells(shown.markdown)[2][2] == "0.264" and "close to 0.2 and trains with 0.1" in shown.caption


def test_the_published_cells_give_the_range_of_erratum_hv_3():
    published, ours = tables.curvature_sentences(tables.beside_published(OURS, "tissue"))
    assert published == (
        "published: c(X) runs from 0.176 to 0.284, mean 0.223, median 0.210; of 12, 8 lie above 0.2 and 12 lie above "
        "0.1"
    )
    assert ours.startswith("ours: c(X) runs from 0.160 to 0.360") and ours.endswith(
        "1 lie above 0.2 and 2 lie above 0.1"
    )


@pytest.fixture
def procedures() -> pd.DataFrame:
    def draws(values: list[float]) -> pd.DataFrame:
        return pd.DataFrame({"encoder": "net", "draw": range(len(values)), "relative": values})

    ladder = pd.DataFrame({"encoder": "net", "size": [20, 60], "relative": [0.2, 0.25], "low": 0.1, "high": 0.3})
    every_base = pd.DataFrame(
        {"encoder": "net", "draw": [0, 0, 1, 1], "base": [0, 1, 0, 1], "relative": [0.2, 0.3, 0.3, 0.3]}
    )
    own, unit = draws([0.24, 0.26]), draws([0.3, 0.3])
    return tables.procedures(own, unit, ladder.assign(n_draws=2), every_base, 60)


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


def test_what_a_procedure_changes_is_told_as_a_factor(procedures):
    assert tables.procedure_sentences(procedures) == [
        "net: 0.250; L2-normalised × 1.20; without the factor 2 × 0.50; 20 instead of 60 images × 0.80; 2 images, the "
        "worst of all base points × 1.20 of the first; c(X) from 0.23 to 0.52, without the factor 2 1.33"
    ]


@pytest.fixture
def changed() -> pd.DataFrame:
    lines = [
        ("net", "shuffled", -0.1, -0.12, -0.08),
        ("texture", "shuffled", 0.1, 0.05, 0.15),
        ("net", "other", 0, -1, 1),
    ]
    rows = pd.DataFrame(lines, columns=["encoder", "features", "difference", "low", "high"])
    rows = rows.assign(own_relative=0.2, own_directions=3.0, directions=30.0, n_draws=3)
    return rows.assign(relative=rows["own_relative"] + rows["difference"])


def test_a_copy_is_more_or_less_like_a_tree_only_where_its_interval_says_so(changed):
    lowered, raised, unclear = tables.copy_sentences(changed)
    assert lowered == (
        "net, shuffled: lowers relative δ, from 0.200 to 0.100 (-0.100, -0.120 to -0.080): more like a tree; "
        "directions from 3.0 to 30.0"
    )
    assert "raises" in raised and "less like a tree" in raised
    assert "does not clearly change" in unclear and "neither" in unclear


def test_a_sentence_from_the_csv_says_what_the_table_says(changed):
    """The csv keeps four digits; 0.25847 must not be 0.258 in the table and, read as 0.2585, 0.259 in the sentence."""
    exact = changed.head(1).assign(own_relative=0.25847, high=0.136453)
    (told,), (kept,) = tables.copy_sentences(exact), tables.copy_sentences(exact.round(4))
    assert told == kept and "from 0.259 to" in told and "to +0.137)" in told
    assert "| 0.259 |" in tables.table_copies(RUN, exact).markdown


def test_the_table_of_copies_prints_both_deltas(changed):
    rows = cells(tables.table_copies(RUN, changed).markdown)
    assert rows[2] == ["net", "shuffled", "0.200", "0.100", "-0.100", "-0.120 to -0.080", "3.0", "30.0"]


KNOWN = pd.DataFrame(
    {
        "control": [
            "random tree",
            "hyperbolic disk, radius 5",
            "Gaussian cloud, 2 numbers",
            "Gaussian cloud, 384 numbers",
        ],
        "dim": [0, 2, 2, 384],
        "relative": [0.0, 0.144, 0.4, 0.3],
    }
)


def test_encoders_are_placed_among_the_controls():
    assert tables.yardstick(KNOWN, OURS) == [
        "random tree: 0.000; Gaussian cloud, 384 numbers: 0.300",
        "published: 0.270 to 0.343, mean 0.308; the nearest of our Gaussian clouds has 384 numbers (0.300), in draws "
        "of our size",
        "net: 0.240; nearest control: Gaussian cloud, 384 numbers (0.300)",
        "texture: 0.360; nearest control: Gaussian cloud, 2 numbers (0.400)",
    ]
    assert tables.disk_sentence(KNOWN).endswith("radius 5 c(X) = 1.00")


def test_encoders_are_compared_on_the_same_draws():
    values = {"net": [0.3, 0.4, 0.5], "plain": [0.2, 0.3, 0.4], "wild": [0.9, 0.1, 0.5]}
    lines = [
        (name, draw, r + draw * 1e-3 * (name == "plain")) for name in values for draw, r in enumerate(values[name])
    ]
    plain, wild = tables.encoder_sentences(pd.DataFrame(lines, columns=["encoder", "draw", "relative"]))
    assert plain == "plain minus net: -0.099 (-0.101 to -0.097), more like a tree"
    assert wild.endswith("no clear difference")


@pytest.fixture
def searched() -> pd.DataFrame:
    test = {"n_units": 10, "p_floor": 0.002, "p_value": 0.01, "n_seeds": 1, "n_tests": 2, "low": -4.0, "high": -2.0}
    rows = [
        test | {"rule": "net", "k": 1, "difference": -3.0, "p_holm": 0.01, "euclidean": 80.0, "hyperbolic": 77.0},
        test | {"rule": "net", "k": 20, "difference": 0.5, "p_holm": 0.4, "euclidean": 60.0, "hyperbolic": 60.5},
    ]
    names = {
        "first": measures.BALL,
        "second": measures.FLAT,
        "relative": 0.24,
        "c": 0.36,
        "radius": 55.0,
        "chance": 12.5,
    }
    return pd.DataFrame(rows).assign(**names)


def test_both_distances_stand_beside_chance(searched):
    shown = tables.table_search(RUN, searched)
    head, _, first, _ = cells(shown.markdown)
    row = dict(zip(head, first, strict=True))
    assert (row["MAP@k Euclidean"], row["MAP@k hyperbolic"], row["chance"]) == ("80.00", "77.00", "12.50")
    assert row["hyperbolic − Euclidean, pp"] == "-3.00" and row["median radius"] == "55 %"
    assert "5 folds, by patient" in shown.caption and "norm 2.3" in shown.caption
    assert "queries as well, without their labels" in shown.caption and "not corrected" in shown.caption


def test_what_came_out_counts_and_names(changed, searched):
    lines = tables.came_out(KNOWN, OURS, changed, searched)
    assert lines == [
        "relative δ of the encoders: from 0.240 (net) to 0.360 (texture); 2 of 2 lie below a Gaussian cloud of their "
        "own length (2 numbers: 0.400, 384 numbers: 0.300)",
        "shuffled: δ clearly lower than the features' with 1 of 2 encoders, higher with 1",
        "other: δ clearly lower than the features' with 0 of 1 encoders, higher with 0",
        "hyperbolic distance with the c of δ, against Euclidean: better in 0, worse in 1 of 2 comparisons; -3.00 to "
        "+0.50 points of MAP@k",
    ]


def test_an_interval_that_is_missing_is_a_dash():
    assert tables.interval(np.nan, np.nan) == "–"
