"""The pictures of the loss show the numbers that they are given, and nothing else."""

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.losses.hyp_vit import cosine_distance
from lib.papers.hyp_vit.loss import figures, tables

C, R, TAU = 0.1, 2.3, 0.2


@pytest.fixture(scope="module")
def batch():
    e, labels = tables.small_batch()
    z = tables.place(e, C, R)
    return e, labels, z, PoincareBall(C).pairwise(z, z)


def dots(axis) -> np.ndarray:
    """The single points of an axis, in the order in which they were drawn."""
    return np.array([line.get_xydata()[0] for line in axis.lines if len(line.get_xydata()) == 1])


def heights(axis) -> list[float]:
    return [bar.get_height() for bar in axis.patches]


def named(axis) -> dict[str, np.ndarray]:
    return {line.get_label(): line.get_xydata() for line in axis.lines}


def test_the_method_shows_outputs_points_and_shares(batch):
    e, labels, z, apart = batch
    share = tables.softmax(apart, TAU)
    outputs, ball, heat = figures.method(e, labels, C, R, share).axes
    np.testing.assert_allclose(dots(outputs), e)
    np.testing.assert_allclose(dots(ball), z)
    strokes = [line.get_xydata() for line in outputs.lines if len(line.get_xydata()) == 2]
    np.testing.assert_allclose([stroke[1] for stroke in strokes], tables.clip(e, R))
    assert outputs.patches[0].radius == R
    assert [patch.radius for patch in ball.patches] == pytest.approx([C**-0.5, C**-0.5 * np.tanh(C**0.5 * R)])
    shown = heat.images[0].get_array()
    assert shown.mask.diagonal().all() and shown.mask.sum() == 8
    np.testing.assert_allclose(shown.filled(0), 100 * share)
    frames = sorted((box.get_y() + 0.5, box.get_x() + 0.5) for box in heat.patches)
    assert frames == [(row, row ^ 1) for row in range(8)]
    assert {text.get_text() for text in heat.texts} >= {"59", "35"}
    assert all(axis.get_xlabel() and axis.get_ylabel() for axis in (outputs, ball, heat))


def test_every_point_has_its_name_and_every_class_its_marker(batch):
    e, labels, z, _ = batch
    _, ball, _ = figures.method(e, labels, C, R, torch.zeros(8, 8)).axes
    assert [(text.get_text(), *text.xy) for text in ball.texts] == [
        (name, *point) for name, point in zip(tables.names(labels), z.tolist(), strict=True)
    ]
    assert len({line.get_marker() for line in ball.lines}) == 4


def test_the_bars_are_the_shares(batch):
    e, labels, z, apart = batch
    temperatures = [0.1, 0.2, 0.5]
    rows = tables.shares({"D_hyp": apart, "D_cos": cosine_distance(e, e)}, temperatures, labels, tables.ANCHOR)
    disk, *bars = figures.softmaxes(z, labels, C, R, rows).axes
    np.testing.assert_allclose(dots(disk)[0], z[tables.ANCHOR])  # the ring
    for axis, (_, part) in zip(bars, rows.groupby("distance", sort=False), strict=True):
        assert heights(axis) == pytest.approx(part["share"].tolist())
        assert [tick.get_text() for tick in axis.get_xticklabels()] == tables.names(labels)[1:]
        assert [tick.get_fontweight() for tick in axis.get_xticklabels()] == ["bold"] + ["normal"] * 6
    assert len({bar.get_hatch() for bar in bars[0].patches}) == len(temperatures), "told apart in grey"


def test_the_subsets_are_coloured_and_signed_by_role():
    left, right = figures.subsets(4, 3, (0, 1)).axes
    for axis, whole in ((left, False), (right, True)):
        grid = tables.below_the_line(4, 3, (0, 1), whole)
        np.testing.assert_array_equal(axis.images[0].get_array(), grid)
        signs = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axis.texts}
        assert signs == {(i, k): figures.ROLES[grid[i, k]][2] for i, k in np.argwhere(grid)}
    assert len(figures.ROLES) == len(tables.ROLES)


def test_the_codes_temperature_lies_on_the_line_of_twice_the_printed_one(batch):
    e, labels, *_ = batch
    weights = tables.turned([0.1, 0.2], scale=0.1)
    rows = tables.spherical(e, labels, [0.1, 0.2], scale=0.1)
    left, right = figures.temperature(weights, rows).axes
    lines = named(left)
    np.testing.assert_allclose(lines["code: cos / 0.1"], lines["2 − 2cos, τ = 0.2"])
    assert heights(right) == pytest.approx(rows["share"].tolist())


def test_the_rim_is_one_line_against_c_r2():
    rows = tables.reach([0.1, 2.0], np.geomspace(0.1, 6, 9))
    published = tables.reach([C], [R]).iloc[0]
    left, right = figures.rim(rows, published).axes
    for axis, by in ((left, "r"), (right, "c_r2")):
        lines = named(axis)
        for c, part in rows.groupby("c"):
            np.testing.assert_allclose(lines[f"c = {c:g}"], part[[by, "share"]])
        np.testing.assert_allclose(lines["published: r = 2.3, c = 0.1"], [[published[by], published["share"]]])


def test_the_gradient_is_drawn_as_it_is(batch):
    norms = [0.5, 3.0, 15.0]
    small = tables.gradient(batch[0], norms, C, TAU, R, 1e-3)
    done = tables.gradient(tables.sorted_batch(4, 8), norms, C, TAU, R, 1e-3)
    axes = figures.gradient(small, done, {"r": R, "boundary": 12.0}).axes
    for axis, rows, part in zip(axes, (small, small, done), ("along", "sideways", "log10_total"), strict=True):
        lines = named(axis)
        for kind in tables.KINDS:
            values = rows.loc[rows["kind"] == kind, part]
            np.testing.assert_allclose(lines[kind][:, 1], 10**values if part == "log10_total" else values)
        assert (lines["r"][0][0], lines["boundary"][0][0]) == (R, 12.0)
    assert axes[0].get_ylim()[0] < 0, "a line at 0 is seen"


@pytest.mark.parametrize(
    ("c", "widest"), [(0.0, figures.WIDEST), (0.01, figures.WIDEST), (0.1, 0.1**-0.5), (2.0, 0.5**0.5)]
)
def test_the_disk_fills_its_picture_and_everything_is_inside(batch, c, widest):
    e, labels, *_ = batch
    rows = tables.shares({"D": cosine_distance(e, e)}, [TAU], labels, tables.ANCHOR)
    disk, bars = figures.explorer(tables.place(e, c, 6.0), labels, c, 6.0, rows).axes
    assert disk.get_xlim() == disk.get_ylim() == pytest.approx((-1.12 * widest, 1.12 * widest))
    assert abs(dots(disk)).max() < widest
    assert len(disk.patches) == 1 + (c > 0), "the flat plane has no rim"
    assert disk.patches[-1].radius == pytest.approx(6.0 if c == 0 else c**-0.5 * np.tanh(c**0.5 * 6.0))
    assert heights(bars) == pytest.approx(rows["share"].tolist())
    assert [bool(bar.get_hatch()) for bar in bars.patches] == rows["positive"].tolist()
