"""The figures of δ draw the numbers that they are given."""

import numpy as np
import pandas as pd
import pytest

from lib.papers.hyp_vit.hyperbolicity import figures

KNOWN = pd.DataFrame(
    {
        "control": ["random tree", "Gaussian cloud, 2 numbers", "Gaussian cloud, 384 numbers"],
        "dim": [0, 2, 384],
        "relative": [0.0, 0.4, 0.2],
        "low": [0.0, 0.35, 0.18],
        "high": [0.0, 0.45, 0.22],
    }
)
OURS = pd.DataFrame({"encoder": ["net", "肝"], "dim": [1280, 156], "relative": [0.24, 0.3], "low": 0.2, "high": 0.35})


def test_the_numbers_stand_below_the_drawings():
    rows = figures.four_points()
    axes = figures.drawn_points(rows).axes
    assert [axis.get_title() for axis in axes] == ["a tree", "a flat square"]
    for axis, row in zip(axes, rows.itertuples(), strict=True):
        words = "\n".join(text.get_text() for text in axis.texts)
        assert {"w", "x", "y", "z"} <= {text.get_text() for text in axis.texts}
        assert f"(x|z) falls short by {row.short:.2f}" in words and f"relative δ = {row.relative:.2f}" in words


def test_the_shortfall_of_the_square_is_its_delta():
    tree, square = figures.four_points().itertuples()
    assert square.short == pytest.approx(square.delta) == pytest.approx(2 * (2**0.5 - 1))
    assert tree.short == tree.delta == 0


def test_drawn_branches_have_length_one():
    tree = figures.drawn_points(figures.four_points()).axes[0]
    edges = [line.get_xydata() for line in tree.lines if len(line.get_xdata()) == 2]
    assert len(edges) == 5
    assert [np.linalg.norm(end - start) for start, end in edges] == pytest.approx([1] * 5)


def test_the_yardstick_draws_controls_encoders_and_the_printed_range():
    left, right = figures.yardstick(KNOWN, OURS, (0.27, 0.343)).axes
    names = [text.get_text() for text in left.get_yticklabels()]
    assert names[:3] == KNOWN["control"].tolist() and names[3] == "net" and names[4].isascii()
    drawn = [container.lines[0].get_xydata().tolist() for container in left.containers]
    assert drawn == [[[0.0, 0], [0.4, 1], [0.2, 2]], [[0.24, 3]], [[0.3, 4]]]
    assert len({container.lines[0].get_marker() for container in left.containers}) == 3
    assert [right.lines[0].get_xydata().tolist()] == [[[2, 0.4], [384, 0.2]]]
    assert [container.lines[0].get_xydata().tolist() for container in right.containers] == [
        [[1280, 0.24]],
        [[156, 0.3]],
    ]
    band = right.patches[0].get_extents().transformed(right.transData.inverted())
    assert (band.y0, band.y1) == pytest.approx((0.27, 0.343))
    assert left.get_xlabel() and right.get_xlabel() and right.get_ylabel()


@pytest.fixture
def procedure():
    ladder = pd.DataFrame(
        {"encoder": ["net"] * 2 + ["texture"] * 2, "size": [50, 100] * 2, "relative": [0.2, 0.25, 0.3, 0.3]}
    ).assign(low=0.1, high=0.4)
    every_base = pd.DataFrame({"encoder": ["net"] * 4 + ["texture"] * 2, "share": [0.9, 0.6, 1.0, 0.8, 0.7, 1.0]})
    return figures.procedure(ladder, every_base).axes


def test_the_procedure_has_a_line_per_encoder_in_both_panels(procedure):
    left, right = procedure
    assert [line.get_ydata().tolist() for line in left.lines] == [[0.2, 0.25], [0.3, 0.3]]
    curves = [
        line.get_xydata().tolist() for line in right.lines if len(line.get_xdata()) != 2 or line.get_xdata()[0] != 0.5
    ]
    assert curves[0] == [[0.6, 25], [0.8, 50], [0.9, 75], [1.0, 100]] and curves[1] == [[0.7, 50], [1.0, 100]]
    assert left.lines[0].get_linestyle() != left.lines[1].get_linestyle()
    assert left.lines[0].get_marker() != left.lines[1].get_marker()


def test_copies_draw_every_draw_and_clip_none():
    lines = [
        (encoder, name, draw, r + draw / 10)
        for encoder, values in (("net", (0.2, 0.1)), ("texture", (0.3, 0.7)))
        for name, r in zip(("as they are", "columns shuffled"), values, strict=True)
        for draw in range(3)
    ]
    axes = figures.copies(pd.DataFrame(lines, columns=["encoder", "features", "draw", "relative"])).axes
    assert [axis.get_title() for axis in axes] == ["net", "texture"]
    assert [text.get_text() for text in axes[0].get_xticklabels()] == ["as they are", "columns\nshuffled"]
    thin = [line.get_ydata().tolist() for line in axes[1].lines if len(line.get_xdata()) == 2]
    np.testing.assert_allclose(thin, [[0.3, 0.7], [0.4, 0.8], [0.5, 0.9]])
    means = [line for line in axes[0].lines if line.get_linestyle() == "None"]
    assert [line.get_ydata()[0] for line in means] == pytest.approx([0.3, 0.2])
    assert len({line.get_marker() for line in means}) == 2
    assert axes[0].get_ylim()[0] == 0 and axes[0].get_ylim()[1] > 0.9
