"""The figures of the features draw the numbers that they are given."""

import itertools

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyper_dino.embeddings import figures


@pytest.fixture
def curves() -> pd.DataFrame:
    parts = [("by image", "training", 0.0), ("by image", "test", -3.0), ("by group", "training", 0.0)]
    rows = [(rule, part, n, 20 * n + off) for rule, part, off in parts for n in range(1, 6)]
    return pd.DataFrame(rows, columns=["rule", "part", "n", "kept"])


@pytest.fixture
def rows() -> pd.DataFrame:
    inputs = [("PCA", 5), ("PCA", 40), ("whitened", 5), ("whitened", 40), ("NCA", 5), ("scaled", 40)]
    lines = [
        (rule, source, n, k, 10 * k + n + (source == "NCA"), 0.5)
        for rule, (source, n), k in itertools.product(["by image", "by group"], inputs, [1, 5])
    ]
    return pd.DataFrame(lines, columns=["rule", "source", "dim_in", "k", "value", "spread"]).assign(chance=12.5)


def test_variance_has_a_panel_per_rule_and_a_line_per_part(curves):
    left, right = figures.variance(curves, [2, 5]).axes
    assert [axis.get_title() for axis in (left, right)] == ["folds by image", "folds by group"]
    lines = {line.get_label(): line for line in left.lines}
    np.testing.assert_allclose(lines["training images"].get_ydata(), [20, 40, 60, 80, 100])
    np.testing.assert_allclose(lines["test images"].get_ydata(), [17, 37, 57, 77, 97])
    assert lines["training images"].get_linestyle() != lines["test images"].get_linestyle()
    assert [list(line.get_xdata()) for line in left.lines if line.get_marker() == "|"] == [[2, 5]]
    assert "%" in left.get_ylabel()


def test_baselines_have_a_row_per_k_and_a_column_per_rule(rows):
    axes = figures.baselines(rows).axes
    assert [axis.get_title() for axis in axes[:2]] == ["folds by image", "folds by group"]
    assert [axes[0].get_ylabel(), axes[2].get_ylabel()] == ["MAP@1 (%)", "MAP@5 (%)"]


def test_the_tick_before_the_longest_stands_clear_of_it(curves):
    longer = pd.DataFrame({"rule": "by image", "part": "training", "n": [1, 950], "kept": [5.0, 100.0]})
    labels = [text.get_text() for text in figures.variance(longer, [950]).axes[0].get_xticklabels()]
    assert labels[-2:] == ["320", "950"]


def test_labels_below_two_panels_leave_each_other_room():
    rows = [(rule, "training", n, 50.0) for rule in ("by image", "by lesion") for n in (1, 1280)]
    figure = figures.variance(pd.DataFrame(rows, columns=["rule", "part", "n", "kept"]), [1280])
    figure.canvas.draw()
    for axis in figure.axes:
        boxes = [label.get_window_extent() for label in axis.get_xticklabels()]
        assert all(left.x1 + 3 < right.x0 for left, right in itertools.pairwise(boxes))


def test_bars_end_at_zero(rows):
    assert all(axis.get_ylim()[0] >= 0 for axis in figures.baselines(rows.assign(spread=80.0)).axes)


def test_baselines_draw_every_value_in_its_panel(rows):
    lower_right = figures.baselines(rows).axes[3]
    drawn = {container.get_label(): container.lines[0].get_xydata().tolist() for container in lower_right.containers}
    assert drawn == {"PCA": [[5, 55], [40, 90]], "NCA": [[5, 56]], "whitened": [[5, 55], [40, 90]]}
    flat = [line for line in lower_right.lines if line.get_label() == "scaled, full length"]
    assert [set(line.get_ydata()) for line in flat] == [{90}]
    assert [set(line.get_ydata()) for line in lower_right.lines if line.get_label() == "chance"] == [{12.5}]


def test_sources_differ_in_marker_and_dashes(rows):
    lines = [container.lines[0] for container in figures.baselines(rows).axes[0].containers]
    assert len({line.get_marker() for line in lines}) == len(lines) == 3
    assert len({line.get_linestyle() for line in lines}) == 3


def test_a_single_fold_has_no_bars(rows):
    figure = figures.baselines(rows.assign(spread=np.nan))
    assert not any(container.has_yerr for axis in figure.axes for container in axis.containers)
