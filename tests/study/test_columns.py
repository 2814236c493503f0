"""Declared tables: what a column prints, and that the committed tables follow from their csv."""

import importlib
import pkgutil

import numpy as np
import pandas as pd
import pytest

from lib import papers, paths
from lib.study import saved
from lib.study.columns import HEALTH, Column, Layout

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


def test_brackets_and_optional_columns():
    rows = pd.DataFrame({"method": ["a", "b"], "x": [1.0, 2.0], "more": [np.nan, 0.25], "never": [np.nan, np.nan]})
    columns = [Column("method"), Column("x", form="1", brackets="more"), Column("never", optional=True)]
    assert lines(Layout(columns), rows)[0] == ["method", "x"]
    assert [row[1] for row in lines(Layout(columns), rows)[2:]] == ["1.0", "2.0 (0.3)"]


def declared() -> list[tuple[str, str, Layout]]:
    """Paper and section, table, and how the section's module declares it."""
    names = [module.name for module in pkgutil.walk_packages(papers.__path__, "lib.papers.")]
    layouts = [(name, getattr(importlib.import_module(name), "LAYOUTS", {})) for name in names]
    return [("/".join(name.split(".")[2:4]), table, how) for name, tables in layouts for table, how in tables.items()]


@pytest.mark.parametrize(("section", "table", "layout"), declared())
def test_a_committed_table_follows_from_its_csv(section, table, layout):
    paper, name = section.split("/")
    files = sorted(paths.REPORTS.glob(f"{paper}/demo/*/{name}/{table}.csv"))
    assert files, f"no report of the demo has a table {table} of {section}"
    for file in files:
        assert f"\n\n{layout(pd.read_csv(file))}\n\n" in saved.text(file)
