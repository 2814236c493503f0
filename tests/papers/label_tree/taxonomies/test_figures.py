"""The pictures show the trees and numbers that they are given."""

import numpy as np
import pytest

from lib.datasets import trees
from lib.papers.label_tree.taxonomies import figures, tables
from lib.taxonomy import from_nested

UNEVEN = from_nested("uneven", {"a": {"aa": ["aaa", "aab"], "ab": None}, "b": ["ba", "bb"], "c": None})
BREAST = trees.load("breakhis", "tumour")


def test_kin_stand_beside_each_other():
    assert figures.in_order(UNEVEN) == ["aaa", "aab", "ab", "ba", "bb", "c"]
    crossed = from_nested("crossed", {"x": ["b", "d"], "y": ["a", "c"]})
    assert figures.in_order(crossed) == ["b", "d", "a", "c"]


@pytest.mark.parametrize("tree", [UNEVEN, BREAST], ids=str)
def test_every_node_is_drawn_at_its_level_with_its_name(tree):
    axis, empty = figures.trees([tree, tree], ["one", "other"], columns=2, height=3).axes
    assert (axis.get_title(), empty.get_title()) == ("one", "other")
    found = {text.get_text(): text.xy for text in axis.texts}
    assert found.keys() == {node.replace("_", " ") for node in tree.nodes}
    assert all(found[node.replace("_", " ")][0] == tree.depth_of(node) for node in tree.nodes)
    heights = [found[leaf][1] for leaf in figures.in_order(tree)]
    assert heights == [-row for row in range(len(tree.leaves))], "no leaf in another's line"
    lines = [line.get_xydata() for line in axis.lines if len(line.get_xydata()) == 3]
    assert len(lines) == len(tree.parents)
    for node, parent in tree.parents.items():
        ends = [found[parent], found[node]]
        assert any(np.allclose([line[0], line[-1]], ends) for line in lines)


def test_a_panel_without_a_tree_is_left_out():
    assert len(figures.trees([BREAST] * 3, ["a", "b", "c"], columns=2, height=4).axes) == 3


def test_the_matrices_are_written_out_and_the_diagonal_is_dark():
    rho, edges = figures.matrices([UNEVEN]).axes
    order = UNEVEN.codes(figures.in_order(UNEVEN))
    for axis, values in ((rho, UNEVEN.rho()), (edges, UNEVEN.distance())):
        shown = np.array([float(text.get_text()) for text in axis.texts]).reshape(6, 6)
        np.testing.assert_allclose(shown, values[np.ix_(order, order)], atol=0.005)
        dark = np.asarray(axis.images[0].get_array())
        assert (np.diag(dark) == dark.max()).all()
    assert [label.get_text() for label in rho.get_yticklabels()] == figures.in_order(UNEVEN)


def test_classifiers_and_stars_are_at_their_values():
    rows, printed = tables.classifiers([BREAST, UNEVEN], n=5), tables.printed_breakhis()
    for axis, name in zip(figures.measures(rows, printed).axes, ("hf1", "hf1_below_root"), strict=True):
        drawn = np.concatenate([line.get_xydata() for line in axis.lines])
        expected = np.concatenate([rows[["h_acc", name]], printed[["h_acc", "hf1"]]])
        np.testing.assert_allclose(drawn, expected)
        assert axis.lines[-1].get_marker() == "*"
        assert len({line.get_marker() for line in axis.lines}) == 3, "told apart without colour"


def test_points_and_prototypes_are_where_they_are():
    z, centres, rows = tables.beside_parents()
    (axis,) = figures.parents(z, centres, rows).axes
    stars = np.concatenate([line.get_xydata() for line in axis.lines if line.get_marker() == "*"])
    np.testing.assert_allclose(stars, centres)
    assert {text.get_text(): text.xy for text in axis.texts} == {
        name: tuple(point) for name, point in zip("abcde", z.tolist(), strict=True)
    }


def test_a_line_for_each_distance():
    rows = tables.steps([0.5, 2.5], n_steps=4)
    (axis,) = figures.steps(rows, taken=3).axes
    drawn = {line.get_label(): line.get_ydata() for line in axis.lines if not line.get_label().startswith("_")}
    for length, part in rows.groupby("length"):
        np.testing.assert_allclose(drawn[f"{length:g}"], part["left"])
