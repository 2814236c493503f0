"""Declared tables: what a column prints, and that the committed tables follow from their csv."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.errors import InputError
from lib.study import saved
from lib.study.columns import HEALTH, Column, Layout, declared

ROWS = pd.DataFrame(
    {
        "rule": ["image"] * 4 + ["patient"] * 2,
        "method": ["ball", "ball", "plain", "plain", "ball", "ball"],
        "k": [1, 20] * 3,
        "ours": [50.0, 40.0, 30.125, np.nan, 20.0, 10.0],
        "seeds": [1.0, 2.0, np.nan, np.nan, 0.5, 0.25],
        "chance": [5.0, 4.0, 5.0, 4.0, 3.0, 2.0],
        "loss": [0.0005, 0.0005, np.nan, np.nan, 1.0, 1.0],
        "rim": [0.0, 0.0, np.nan, np.nan, 12.34, 12.34],
        "steps": [100, 100, 0, 0, 50, 50],
    }
)
MAP = Column("MAP@{}", "ours", over="k", pm="seeds", chance="chance")


def lines(layout: Layout, rows: pd.DataFrame = ROWS) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in layout(rows).splitlines()]


def test_a_line_has_its_spread_its_health_and_ends_with_chance():
    head, _, ball, plain, chance = lines(Layout([Column("method"), MAP, *HEALTH]), ROWS[ROWS["rule"] == "image"])
    assert head == ["method", "MAP@1", "MAP@20", "last loss", "at the rim", "steps"]
    assert ball == ["ball", "50.00 ± 1.00", "40.00 ± 2.00", "0.001", "0.0 %", "100"]
    assert plain == ["plain", "30.13", "–", "–", "–", "–"]
    assert chance == ["chance", "5.00", "4.00", "–", "–", "–"]


def test_every_block_has_a_chance_of_its_own():
    cells = lines(Layout([Column("folds", "rule"), Column("method"), MAP], block="rule"))
    assert [row[:3] for row in cells[2:]] == [
        ["image", "ball", "50.00 ± 1.00"],
        ["image", "plain", "30.13"],
        ["image", "chance", "5.00"],
        ["patient", "ball", "20.00 ± 0.50"],
        ["patient", "chance", "3.00"],
    ]


def test_one_line_of_chance_is_refused_where_rows_have_several():
    columns = [Column("folds", "rule"), Column("method"), MAP]
    with pytest.raises(InputError, match=r"'MAP@1': chance is 5\.00 and 3\.00 in rows above one line of chance.*block"):
        Layout(columns, by=("rule", "method"))(ROWS)
    unknown = ROWS.assign(chance=ROWS["chance"].where(ROWS["rule"] == "image"))
    assert lines(Layout(columns, by=("rule", "method")), unknown)[-1] == ["chance", "–", "5.00", "4.00"]


def test_brackets_and_optional_columns():
    rows = pd.DataFrame({"method": ["a", "b"], "x": [1.0, 2.0], "more": [np.nan, 0.25], "never": [np.nan, np.nan]})
    columns = [Column("method"), Column("x", form="1", brackets="more"), Column("never", optional=True)]
    assert lines(Layout(columns), rows)[0] == ["method", "x"]
    assert [row[1] for row in lines(Layout(columns), rows)[2:]] == ["1.0", "2.0 (0.3)"]


BY_HAND = {
    "disk/table_rates",
    "hyperparameters/table_rates",
    "hyperparameters/table_tests",
    "mapper/table_starts_by_group",
    "objectives/table_push",
    "ranking/table_rates",
    "retrieval/table_rates",
    "retrieval/table_rates_end_to_end",
}
"""What has a value of another table, or digits, that the csv does not have."""


@pytest.mark.parametrize("folder", sorted({file.parent for file in paths.REPORTS.glob("*/demo/*/*/table_*.csv")}))
def test_committed_tables_follow_from_their_csv(folder):
    layouts = declared(folder.parts[-4], folder.name)
    for file in sorted(folder.glob("table_*.csv")):
        rows, said = pd.read_csv(file), saved.text(file)
        if file.stem in layouts:
            assert f"\n\n{layouts[file.stem](rows)}\n\n" in said, file.stem
        else:
            assert f"{folder.name}/{file.stem}" in BY_HAND, f"LAYOUTS of {folder.name} has no {file.stem}"
