"""Published and own values stand side by side, and every reading of the procedure has its number."""

import pandas as pd
import pytest

from lib.papers.hyp_vit.hyperbolicity import tables

OURS = pd.DataFrame(
    {"encoder": ["net", "texture"], "dim": [384, 2], "relative": [0.24, 0.36], "low": [0.2, 0.3], "high": [0.28, 0.4]}
)
LADDER = OURS.drop(columns="dim").assign(size=60)
"""No larger draws than those of :data:`OURS`."""


def cells(name: str, rows: pd.DataFrame) -> list[list[str]]:
    lines = tables.LAYOUTS[name](rows).splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_table_1_has_the_papers_layout_with_ours_below():
    head, _, *rows = cells("table_1", tables.beside_published(OURS, "tissue", LADDER, 60))
    assert head == ["", "encoder", "CUB-200", "Cars-196", "SOP", "In-Shop", "procedural H&E-like tiles"]
    assert rows[0] == ["published", "ViT-S", "0.280", "0.339", "0.271", "0.313", "–"]
    assert rows[3] == ["ours", "net", "–", "–", "–", "–", "0.240 (0.200 to 0.280)"]


def test_on_birds_ours_and_the_largest_draws_stand_in_the_papers_column():
    larger = LADDER.assign(size=2000, relative=[0.25, 0.4])
    head, _, *rows = cells("table_1", tables.beside_published(OURS, "cub", pd.concat([LADDER, larger]), 60))
    assert head[2] == "CUB-200" and len(head) == 6
    assert [row[0] for row in rows[3:]] == ["ours", "ours", *2 * ["ours, 2,000 images a draw"]]
    assert rows[4][2].startswith("0.360") and rows[6][2].startswith("0.400") and rows[3][3] == "–"


def test_a_wider_delta_gives_a_wider_c_the_other_way_round():
    row = tables.beside_published(OURS, "tissue", LADDER, 60).query("encoder == 'net'").iloc[0]
    assert (row["c"], row["c_low"], row["c_high"]) == pytest.approx((0.36, (0.144 / 0.28) ** 2, (0.144 / 0.2) ** 2))


def test_every_procedure_is_named_with_its_number():
    own = pd.DataFrame({"encoder": "net", "draw": [0, 1], "relative": [0.2, 0.3]})
    bases = pd.DataFrame({"encoder": "net", "draw": [0, 0, 1, 1], "base": [0, 1, 0, 1], "relative": [0.2, 0.3] * 2})
    ladder = pd.DataFrame({"encoder": "net", "size": [20, 60], "relative": [0.2, 0.25], "low": 0.1, "high": 0.3})
    rows = tables.procedures(own, own.assign(relative=0.3), ladder, bases, 60).set_index("procedure")
    assert rows["relative"].to_dict() == pytest.approx(
        {
            "as in this notebook": 0.25,
            "L2-normalised": 0.3,
            "without the factor 2": 0.125,
            "20 instead of 60 images": 0.2,
            "2 images, first point as base": 0.2,
            "2 images, the worst of all base points": 0.3,
        }
    )
    assert rows["c"]["without the factor 2"] == pytest.approx(4 * rows["c"]["as in this notebook"])
