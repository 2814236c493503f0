"""What the figures of the linear prototypes draw."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.figures import style
from lib.metrics.significance import evidence
from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.plane import experiment as plane

LABELS = torch.arange(12) % 3
V = torch.tensor([[0.6, 0.0], [-0.4, 0.5], [-0.3, -0.6]])[LABELS] + 0.02 * torch.arange(12)[:, None]
CLASSES = ["fat", "gland", "muscle"]


def placed(c: float) -> plane.Plane:
    return plane.place(V, LABELS, plane.entrance(12, 0, 0), 2, 1.0, c)


def test_regions_show_support_prototypes_query_and_the_rim():
    figure = figures.regions(placed(2.0), LABELS.numpy(), CLASSES, 0, plane.LIMIT, 2.0)
    (axis,) = figure.axes
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [*CLASSES, "prototype", "query"]
    (rim,) = axis.patches
    assert rim.radius == pytest.approx(2**-0.5)
    assert not figures.regions(placed(0.0), LABELS.numpy(), CLASSES, 0, plane.LIMIT, 0.0).axes[0].patches
    assert axis.get_xlabel() and axis.get_ylabel()


def test_the_background_has_the_colour_of_the_class_and_white_where_all_are_alike():
    chances = np.array([[[1.0, 0, 0], [0, 1.0, 0]], [[1 / 3] * 3, [0.5, 0.25, 0.25]]])
    shades = figures._shades(chances)
    for code in (0, 1):
        np.testing.assert_allclose(shades[0, code], 1 - 0.75 * (1 - np.array(style.PALETTE[code])))
    np.testing.assert_allclose(shades[1, 0], 1)
    assert (shades[1, 1] > shades[0, 0]).all() and (shades[1, 1] < 1).any()


def test_curvatures_are_panels_of_the_same_width():
    figure = figures.curvatures({c: placed(c) for c in (0.0, 1.0)}, LABELS.numpy(), CLASSES, 0, plane.LIMIT)
    titles = [axis.get_title() for axis in figure.axes]
    given = [100 * placed(c).chances[0] for c in (0.0, 1.0)]
    assert all(chances.argmax() == 0 for chances in given)
    assert titles == [f"c = {c}: fat {chances[0]:.0f} %" for c, chances in zip((0, 1), given, strict=True)]


def test_each_method_has_its_panel_and_each_encoder_a_line():
    rows = pd.DataFrame(
        [(m, e, k, 50 + k + i, 1.0, 20.0 - k) for m in ("PT", "TL") for i, e in enumerate("ab") for k in (1, 3)],
        columns=["method", "encoder", "k", "ours", "spread", "chance"],
    )
    figure = figures.by_k(rows, {"PT": "before", "TL": "after"})
    assert [axis.get_title() for axis in figure.axes] == ["before", "after"]
    heights = [bars.lines[0].get_ydata().tolist() for bars in figure.axes[1].containers]
    assert heights == [[51, 53], [52, 54]]
    assert [line.get_ydata().tolist() for line in figure.axes[1].lines if line.get_label() == "chance"] == [[19, 17]]


def test_labels_that_are_all_known_stand_at_the_end_and_equal_epochs_are_dashed():
    sizes = [("support", "x", "equal steps", 1), ("support", "x", "equal steps", 5)]
    sizes += [("labels", name, steps, size) for name in "xy" for steps in ("equal steps", "more") for size in (3, 0)]
    rows = pd.DataFrame(sizes, columns=["sweep", "method", "length", "size"])
    figure = figures.by_labels(rows.assign(ours=50.0, spread=1.0, chance=12.0), 45.0, 15)
    assert [tick.get_text() for tick in figure.axes[1].get_xticklabels()] == ["3", "all"]
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert {"frozen features, scaled", "chance", "x, equal steps", "y, more"} <= set(legend)
    dashed = {bars.get_label(): bars.lines[0].is_dashed() for bars in figure.axes[1].containers}
    assert dashed == {"x, equal steps": False, "x, more": True, "y, equal steps": False, "y, more": True}
    assert "MAP@15" in figure.axes[0].get_ylabel()


def test_gains_show_both_intervals_where_they_are():
    found = evidence(np.random.default_rng(0).normal(3, 5, 40), np.zeros(40), n_resamples=500)
    figure = figures.gains({"a − b": found})
    drawn = sorted({line.get_xdata()[0] for line in figure.axes[0].lines})
    expected = [found.null_low, found.null_high, found.test.low, found.test.high, found.test.difference]
    assert drawn == pytest.approx(sorted(expected))
    assert len(figure.legends[0].get_texts()) == 5


def test_components_are_a_row_per_method_with_their_share_of_variance():
    xyz = np.random.default_rng(0).normal(size=(30, 3))
    labels = np.array(CLASSES)[np.arange(30) % 3]
    figure = figures.components({"PT": (xyz, [50.0, 30.0, 10.0]), "TL": (xyz, [60.0, 20.0, 5.0])}, labels)
    assert len(figure.axes) == 4
    assert figure.axes[3].get_ylabel() == "component 3 (5 %)"
    assert [text.get_text() for text in figure.legends[0].get_texts()] == CLASSES
    assert sum(len(points.get_offsets()) for points in figure.axes[0].collections) == 30
    for points in figure.axes[
        0
    ].collections:  # opaque signs with an edge, so that a pale colour does not vanish in grey
        assert points.get_facecolor()[0, 3] == 1 and points.get_alpha() is None
        assert points.get_linewidth()[0] > 0 and points.get_edgecolor()[0].tolist() == [0, 0, 0, 1]


def test_the_commonest_class_covers_no_other_one():
    counts = {"fat": 20, "gland": 60, "muscle": 10}
    labels = np.repeat(list(counts), list(counts.values()))
    xyz = np.random.default_rng(0).normal(size=(90, 3))
    figure = figures.components({"PT": (xyz, [50.0, 30.0, 10.0])}, labels)
    drawn = {points.get_label(): points for points in figure.axes[0].collections}
    assert {name: len(points.get_offsets()) for name, points in drawn.items()} == counts
    assert sorted(drawn, key=lambda name: drawn[name].get_zorder()) == ["gland", "fat", "muscle"]
    assert drawn["gland"].get_sizes()[0] < drawn["fat"].get_sizes()[0] == drawn["muscle"].get_sizes()[0]
    assert (drawn["gland"].get_facecolor()[0, :3] > np.array(style.PALETTE[1])).all()  # pale, and not transparent
    assert drawn["gland"].get_facecolor()[0, 3] == 1
