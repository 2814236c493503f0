"""The figures of the loss show exactly the pairs and numbers that they are given."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyper_dino.mapper import figures as contrastive

POINTS = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.2], [0.3, 0.3]])
LABELS = np.array([0, 0, 1, 1])
DISTANCE = np.array([[0, 1, 2, 3], [1, 0, 4, 5], [2, 4, 0, 6], [3, 5, 6, 0]], dtype=float)


def axes(margin: float, points: np.ndarray = POINTS):
    return contrastive.pairs(points, LABELS, ["fat", "gland"], DISTANCE, margin).axes


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


def test_loss_curves_are_means_over_folds_with_a_band():
    rows = pd.DataFrame(
        {
            "head": ["a"] * 4 + ["b"] * 2,
            "fold": [0, 0, 1, 1, 0, 0],
            "epoch": [1, 2] * 3,
            "iteration": [5, 10, 6, 12, 5, 10],  # a fold with more images takes more batches: no zigzag
            "loss": [4, 2, 2, 1, 8, 7],
        }
    )
    (axis,) = contrastive.loss_curves(rows).axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in axis.lines}
    assert drawn == {"a": [[5.5, 3], [11, 1.5]], "b": [[5, 8], [10, 7]]}
    edges = axis.collections[0].get_paths()[0].vertices
    assert {tuple(edge) for edge in edges.tolist()} == {(5.5, 2), (5.5, 4), (11, 1), (11, 2)}
    assert "iterations" in axis.get_xlabel() and "loss" in axis.get_ylabel()
