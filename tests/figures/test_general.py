"""The three general figures draw what their rows say."""

import numpy as np
import pandas as pd

from lib.figures.forest import forest
from lib.figures.heat import heat
from lib.figures.lines import lines


def test_lines_keep_the_order_of_text_and_leave_out_what_is_missing():
    rows = pd.DataFrame({"line": ["a", "a", "b", "b"], "x": ["small", "large"] * 2, "y": [1.0, 2.0, 3.0, np.nan]})
    (axis,) = lines(rows.assign(panel="p"), xlabel="size", ylabel="points").axes
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["small", "large"]
    drawn = {bars.get_label(): bars[0].get_xydata().tolist() for bars in axis.containers}
    assert drawn == {"a": [[0, 1.0], [1, 2.0]], "b": [[0, 3.0]]}


def test_a_forest_fills_what_is_clear():
    rows = pd.DataFrame({"name": ["a", "b"], "difference": [1.0, 0.1], "low": [0.5, -1], "high": [1.5, 1.2]})
    (axis,) = forest(rows.assign(clear=[True, False]), xlabel="points").axes
    faces = [line.get_markerfacecolor() for line in axis.lines if line.get_marker() != "None" and len(line.get_xdata())]
    assert faces[0] != "white" and faces[1] == "white"
    assert [tick.get_text() for tick in axis.get_yticklabels()] == ["a", "b"]


def test_heat_writes_what_is_large_enough():
    rows = pd.DataFrame({"panel": "p", "y": ["a", "b"], "x": ["a", "a"], "value": [99.0, 0.2]})
    (axis,) = heat(rows, xlabel="answer", ylabel="query", square=True).axes
    assert [text.get_text() for text in axis.texts] == ["99"]
    assert axis.images[0].get_array().tolist() == [[99.0, 0.0], [0.2, 0.0]]
