"""Declared tables: what a column prints, and that the committed tables follow from their csv."""

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.errors import InputError
from lib.study import saved
from lib.study.columns import Column, Layout, declared

ROWS = pd.DataFrame(
    {
        "rule": ["image"] * 4 + ["patient"] * 2,
        "method": ["ball", "ball", "plain", "plain", "ball", "ball"],
        "k": [1, 20] * 3,
        "ours": [50.0, 40.0, 30.125, np.nan, 20.0, 10.0],
        "chance": [5.0, 4.0, 5.0, 4.0, 3.0, 2.0],
    }
)
MAP = Column("MAP@{}", "ours", over="k", chance="chance")


def test_one_line_of_chance_is_refused_where_rows_have_several():
    layout = Layout([Column("folds", "rule"), Column("method"), MAP], by=("rule", "method"))
    with pytest.raises(InputError, match=r"'MAP@1': chance is 5\.00 and 3\.00 in rows above one line of chance.*block"):
        layout(ROWS)
    unknown = ROWS.assign(chance=ROWS["chance"].where(ROWS["rule"] == "image"))
    assert layout(unknown).splitlines()[-1] == "| chance | – | 5.00 | 4.00 |"


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
