"""The pictures of the loss show the numbers that they are given, and nothing else."""

import numpy as np
import pytest

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
