"""The numbers of erratum LT-1, and every slider moves what it says."""

import re

import numpy as np
import pytest

from lib.datasets import trees
from lib.losses import label_tree as losses
from lib.papers.label_tree.objectives import figures, forces, sliders


def test_the_ratios_of_erratum_lt_1():
    rows = forces.ratios(forces.Scene(), 0.1, 0.5, [0, 0.2, 0.5, 1])
    printed = rows[rows["kind"] == losses.PRINTED]["ratio"].tolist()
    assert printed == pytest.approx([1, 0.40, 0.099, 0.0090], rel=0.02)
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert np.diff(rows[rows["kind"] == form]["ratio"]).min() > 0, form


def test_the_table_of_pushes_of_erratum_lt_1():
    rows = forces.relative([1.2, 1.5, 2.0], [0.05, 0.1, 0.5, 1.0], 0.1).set_index(["omega", "distance"])
    assert rows["push"][1.2].tolist() == pytest.approx([1.09, 0.98, 0.44, 0.16], abs=0.006)
    assert rows["push"][2.0].tolist() == pytest.approx([1.21, 0.74, 0.014, 0.000091], rel=0.04)
    assert rows["crossover"].unique() == pytest.approx([0.091, 0.081, 0.069], abs=5e-4)


@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_equation_8_is_the_gradient(gamma):
    scene = forces.Scene(siblings=3, far=4)
    assert forces.equation_8(scene, 0.2, 0.5, gamma) == pytest.approx(forces.by_autograd(scene, 0.2, 0.5, gamma))


def test_free_centres_end_as_erratum_lt_1_says():
    tree = trees.load("breakhis", "tumour")
    kinds = [(form, 0.5) for form in losses.FORMS]
    rows = forces.simulation(tree, kinds, tau=0.1, alpha=0.5, n_seeds=1, steps=60).set_index("kind")
    assert rows.loc[losses.PRINTED, "siblings"] > rows.loc[losses.PRINTED, "far"]
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert rows.loc[form, "siblings"] < rows.loc[form, "far"]


@pytest.mark.parametrize("name", ["alpha", "gamma", "tau", "apart", "margin"])
def test_every_slider_changes_picture_and_readout(name):
    board = sliders.explore()
    before = bytes(board.picture.value), board.text
    board.sliders[name].index += 1
    assert bytes(board.picture.value) != before[0] and board.text != before[1]


@pytest.mark.parametrize(
    "kind, tau, apart, by_hand",
    [  # b is 1.25 for siblings and 1.5 for far classes
        (losses.PRINTED, 0.1, 1.0, 1.2 * np.exp(-0.25 * 10)),
        (losses.PRINTED, 0.1, 0.1, 1.2 * np.exp(-0.25)),
        (losses.PRINTED, 0.2, 0.1, 1.2 * np.exp(-0.125)),
        (losses.DIVIDED, 0.1, 1.0, np.exp(10 / 1.25 - 10 / 1.5) / 1.2),
        (losses.DIVIDED, 1.0, 1.0, np.exp(1 / 1.25 - 1 / 1.5) / 1.2),
        (losses.SHIFTED, 0.1, 1.0, 1.2),
    ],
)
def test_far_over_sibling_is_what_two_multipliers_make_of_one_distance(kind, tau, apart, by_hand):
    found = forces.forces(forces.Scene(apart=apart), tau, 0.5, 0.5, kind)
    assert found["ratio"] == pytest.approx(by_hand, rel=1e-9)


def test_the_readout_is_the_gradient():
    """Far over sibling as printed is 1.2·exp(−2.5) = 0.0985 at the start position."""
    assert re.search(r"printed +\d[.e\d-]* +0\.0985\n", sliders.explore().text)


def test_the_pictures_have_a_line_for_every_form():
    rows = forces.ratios(forces.Scene(), 0.1, 0.5, [0.0, 1.0])
    drawn = figures.ratios(rows, forces.relative([1.5], [0.1, 1.0], 0.1))
    assert len([line for line in drawn.axes[0].get_lines() if len(line.get_xdata()) == 2]) >= len(forces.KINDS)
