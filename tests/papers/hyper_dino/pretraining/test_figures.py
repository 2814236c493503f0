"""Figures of a self-distillation and its encoders show the numbers that they were given."""

import math

import numpy as np
import pandas as pd

from lib.papers.hyper_dino.pretraining.figures import encoders, pretraining, spectra


def test_every_curve_is_in_its_panel():
    history = pd.DataFrame(
        {
            "step": range(5),
            "loss": [5.0, 6, 4, 3, 2],
            "entropy": [4.0, 3, 2, 1, 1],
            "information": [0.0, 0.5, 1, 1.5, 2],
            "spread": [0.3, 0.4, 0.5, 0.6, 0.7],
            "rank": [30.0, 20, 10, 8, 7],
        }
    )
    loss, entropy, spread, rank = pretraining(history, prototypes=64).axes
    np.testing.assert_array_equal(loss.lines[0].get_xydata(), list(zip(range(1, 6), history["loss"], strict=True)))
    highest, mean, single = entropy.lines
    assert set(highest.get_ydata()) == {math.log(64)}
    assert mean.get_ydata().tolist() == [4, 3.5, 3, 2.5, 3]
    assert single.get_ydata().tolist() == history["entropy"].tolist()
    assert spread.lines[0].get_ydata().tolist() == history["spread"].tolist()
    assert rank.lines[0].get_ydata().tolist() == history["rank"].tolist()
    assert all(axis.get_xlabel() == "step" for axis in (spread, rank))
    assert len({axis.get_ylabel() for axis in (loss, entropy, spread, rank)}) == 4
    assert len({line.get_linestyle() for line in entropy.lines}) == 3


def test_the_legend_of_the_entropies_covers_no_curve():
    step = np.arange(5)
    rows = {"step": step, "loss": 1.0, "entropy": 0.1 * step, "information": 0.1, "spread": 0.5, "rank": 9.0}
    figure = pretraining(pd.DataFrame(rows), prototypes=64)
    figure.canvas.draw()
    (legend,) = figure.legends
    assert all(axis.get_legend() is None for axis in figure.axes)
    assert legend.get_window_extent().y1 < min(axis.get_window_extent().y0 for axis in figure.axes)
    assert "entropy" in legend.get_title().get_text() and len(legend.get_texts()) == 3


def test_a_spectrum_is_a_curve_with_its_rank_in_the_legend():
    rows = pd.DataFrame({"encoder": ["a", "a", "b"], "direction": [1, 2, 1], "held": [60.0, 100, 100]})
    ranks = pd.DataFrame({"encoder": ["a", "b"], "rank": [1.96, 1.0]})
    (axis,) = spectra(rows, ranks).axes
    assert axis.lines[0].get_xydata().tolist() == [[1, 60], [2, 100]]
    assert [text.get_text() for text in axis.get_legend().texts] == ["a: effective rank 2", "b: effective rank 1"]
    assert "directions" in axis.get_xlabel() and "variance" in axis.get_ylabel()


def test_encoders_are_points_beside_chance():
    lines = [
        {"encoder": encoder, "gallery": gallery, "k": k, "ours": value + k, "chance": chance}
        for encoder, value in (("a", 40.0), ("b", 60.0))
        for gallery, chance in (("closed", 12.5), ("open", 11.0))
        for k in (1, 20)
    ]
    left, right = encoders(pd.DataFrame(lines), [1, 20]).axes
    closed, chance, opened, _ = left.lines
    assert closed.get_xdata().tolist() == [41, 61] == opened.get_xdata().tolist()
    assert list(chance.get_xdata()) == [12.5, 12.5]
    assert right.lines[0].get_xdata().tolist() == [60, 80]
    assert closed.get_marker() != opened.get_marker()
    assert closed.get_markerfacecolor() != "white" == opened.get_markerfacecolor()
    named = [text.get_text() for text in left.figure.legends[0].get_texts()]
    assert named == ["closed gallery", "chance, closed gallery", "open gallery", "chance, open gallery"]
    drawn = dict(zip(named, left.figure.legends[0].legend_handles, strict=True))
    lines = [drawn[name] for name in named if name.startswith("chance")]
    assert [line.get_color() for line in lines] == [closed.get_color(), opened.get_color()]
    assert [label.get_text() for label in left.get_yticklabels()] == ["a", "b"]
