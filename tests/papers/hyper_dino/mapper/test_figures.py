"""The figures of the loss show exactly the pairs and numbers that they are given."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.geometry import PoincareBall
from lib.papers.hyper_dino.mapper import figures as contrastive

POINTS = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [0.3, 0.3]])
LABELS = np.array([0, 0, 1, 1])
DISTANCE = np.array([[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]], dtype=float)


def axes(margin: float, points: np.ndarray = POINTS):
    return contrastive.pairs(points, LABELS, ["fat", "gland"], DISTANCE, margin).axes


FIRST = """
from IPython.core.interactiveshell import InteractiveShell
import numpy as np
from lib.papers.hyper_dino.mapper.figures import pairs

shell = InteractiveShell.instance()
drawn = pairs(np.zeros((2, 2)), np.array([0, 1]), ["a", "b"], np.ones((2, 2)), 0.5)
print(*shell.display_formatter.format(drawn)[0])
"""


def test_a_notebook_shows_the_pairs_as_its_first_figure():
    """What is drawn past pyplot before any other figure has a name in a notebook, and no picture."""
    inline = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    done = subprocess.run([sys.executable, "-c", FIRST], env=inline, cwd=paths.ROOT, capture_output=True, text=True)
    assert "image/png" in done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("margin", "pushed"),
    [(0.5, []), (2.5, [(0, 2)]), (4.5, [(0, 2), (0, 3), (1, 2)]), (9.0, [(0, 2), (0, 3), (1, 2), (1, 3)])],
)
def test_lines_join_the_pairs_of_two_classes_inside_the_margin(margin, pushed):
    disk, _ = axes(margin)
    drawn = [np.array(line).tolist() for line in disk.collections[0].get_segments()]
    assert drawn == [POINTS[list(pair)].tolist() for pair in pushed]


def test_each_class_has_its_points_and_its_own_marker():
    disk, _ = axes(1.0)
    shown = {line.get_label(): line for line in disk.lines}
    np.testing.assert_array_equal(shown["fat"].get_xydata(), POINTS[:2])
    np.testing.assert_array_equal(shown["gland"].get_xydata(), POINTS[2:])
    assert shown["fat"].get_marker() != shown["gland"].get_marker()
    assert len(set(contrastive.MARKERS)) == len(contrastive.MARKERS) == 8


@pytest.mark.parametrize(("scale", "limit"), [(0.5, 0.25), (1.0, 0.5), (1.5, 1.0), (2.3, 1.0)])
def test_the_disk_zooms_in_steps(scale, limit):
    disk, _ = axes(1.0, scale * POINTS)
    assert disk.get_xlim() == disk.get_ylim() == pytest.approx((-1.03 * limit, 1.03 * limit))


@pytest.mark.parametrize(("margin", "end"), [(1.0, 8), (12.0, 16), (20.0, 20)])
def test_the_histogram_holds_all_distances_and_the_margin(margin, end):
    _, histogram = axes(margin)
    assert histogram.get_xlim() == (0, end)
    (line,) = (line for line in histogram.lines if line.get_label() == "margin m")
    assert set(line.get_xdata()) == {margin}


def test_the_histogram_counts_pairs_in_percent():
    """Two pairs of one class at 1 and 6, four of two classes at 2, 3, 4 and 5; bins are 0.2 wide."""
    _, histogram = axes(1.0)
    heights = {patch.get_label(): patch.get_xy()[:, 1].max() for patch in histogram.patches}
    assert heights == pytest.approx({"one class": 50, "two classes": 25})


def test_loss_curves_have_a_panel_per_start_and_are_means_over_seeds_with_a_band():
    rows = pd.DataFrame(
        {
            "start": ["as printed"] * 6 + ["start norm 0.3"] * 2,
            "head": ["a"] * 4 + ["b"] * 2 + ["a"] * 2,
            "seed": [0, 0, 1, 1, 0, 0, 0, 0],
            "iteration": [5, 10] * 4,
            "loss": [4, 2, 2, 1, 8, 7, 1, 0.5],
        }
    )
    left, right = contrastive.loss_curves(rows).axes
    assert [axis.get_title() for axis in (left, right)] == ["as printed", "start norm 0.3"]
    drawn = {line.get_label(): line.get_xydata().tolist() for line in left.lines}
    assert drawn == {"a": [[5, 3], [10, 1.5]], "b": [[5, 8], [10, 7]]}
    edges = left.collections[0].get_paths()[0].vertices
    assert {tuple(edge) for edge in edges.tolist()} == {(5, 2), (5, 4), (10, 1), (10, 2)}
    assert [line.get_xydata().tolist() for line in right.lines] == [[[5, 1], [10, 0.5]]]
    assert "iterations" in left.get_xlabel() and "loss" in left.get_ylabel()


@pytest.mark.parametrize("c", [1.0, 0.25])
def test_norms_before_and_after_stand_at_their_distance_from_the_centre(c):
    """d(0, x) = 2·artanh(√c·norm)/√c; the rim is marked from 0.99 of what can be reached."""
    norms = {"before_low": 0.2, "before": 0.3, "before_high": 0.4, "after_low": 0.1, "after": 0.15, "after_high": 0.2}
    begins = ["as printed", "start norm 0.3"]
    rows = pd.DataFrame([{"start": begin, "method": name} | norms for begin in begins for name in ("a", "b")])
    rows.loc[3, "after"] = 0.18
    left, right = contrastive.starts(rows, PoincareBall(c), delta=1e-3, resting=0.178).axes
    assert [axis.get_title() for axis in (left, right)] == begins
    lines = {line.get_label(): line for line in right.lines}
    expected = 2 / c**0.5 * np.arctanh(c**0.5 * np.array([0.15, 0.18]))
    np.testing.assert_allclose(lines["after training"].get_xdata(), expected, rtol=1e-6)
    np.testing.assert_allclose(lines["classes at rest"].get_xdata(), 2 / c**0.5 * np.arctanh(c**0.5 * 0.178), rtol=1e-6)
    assert lines["before training"].get_markerfacecolor() == "white" != lines["after training"].get_markerfacecolor()
    rim = right.patches[0].get_extents().transformed(right.transData.inverted())
    np.testing.assert_allclose([rim.x0, rim.x1], 2 / c**0.5 * np.arctanh([0.99 * 0.999, 0.999]), rtol=1e-6)
    ends = right.collections[0].get_segments()[0][:, 0]
    np.testing.assert_allclose(ends, 2 / c**0.5 * np.arctanh(c**0.5 * np.array([0.2, 0.4])), rtol=1e-6)
    assert [text.get_text() for text in left.get_yticklabels()] == ["a", "b"] and right.get_xlabel()
