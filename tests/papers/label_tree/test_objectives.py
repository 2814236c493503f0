"""The numbers of erratum LT-1, and the forces against autograd and against the loss itself."""

import re

import numpy as np
import pytest
import torch

from lib.datasets import trees
from lib.losses import label_tree as losses
from lib.papers.label_tree import objectives

SCENES = [
    objectives.Scene(),
    objectives.Scene(far_at=1.3),
    objectives.Scene(sibling_at=0.4, far_at=0.9, siblings=3, far=4),
]


def test_the_effects_of_erratum_lt_1():
    rows = objectives.effects([objectives.Scene()], 0.1, [0, 0.2, 0.5, 1])
    printed = rows[rows["kind"] == losses.PRINTED]["effect"].tolist()
    assert printed == pytest.approx([1, 0.40, 0.099, 0.0090], rel=0.02)
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert np.diff(rows[rows["kind"] == form]["effect"]).min() > 0, form


def test_the_table_of_pushes_of_erratum_lt_1():
    rows = objectives.relative([1.2, 1.5, 2.0], [0.05, 0.1, 0.5, 1.0], 0.1).set_index(["omega", "distance"])
    assert rows["push"][1.2].tolist() == pytest.approx([1.09, 0.98, 0.44, 0.16], abs=0.006)
    assert rows["push"][2.0].tolist() == pytest.approx([1.21, 0.74, 0.014, 0.000091], rel=0.04)
    assert rows["crossover"].unique() == pytest.approx([0.091, 0.081, 0.069], abs=5e-4)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_equation_8_is_the_gradient(gamma, scene):
    assert objectives.equation_8(scene, 0.2, 0.5, gamma) == pytest.approx(
        objectives.by_autograd(scene, 0.2, 0.5, gamma)
    )


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("kind", losses.FORMS)
def test_pushes_are_the_gradient_of_the_loss_itself(kind, scene):
    """The row of one anchor, through the logits of the loss itself, by the raw similarity of each form."""
    tau, alpha, gamma = 0.3, 0.4, 0.8
    tree = trees.load("breakhis", "tumour")
    loss = losses.HierarchyWeighted(tree, temperature=tau, alpha=alpha, gamma=gamma, form=kind)
    at = [scene.near] * scene.positives + [scene.sibling_at] * scene.siblings + [scene.far_at] * scene.far
    d = torch.tensor([at], dtype=torch.float64)
    s = ((1 - d**2 / 2) / tau if kind == losses.COSINE else -d / tau).requires_grad_()
    rho = scene.rho()[None]
    logits = loss.logits(s, rho)
    (slope,) = torch.autograd.grad(-logits.log_softmax(-1)[rho == 1].mean(), s)
    found = objectives.forces(scene, tau, alpha, gamma, kind)
    wanted = -slope[0, 0], slope[0, scene.positives], slope[0, -1]
    assert [found[name] for name in ("pull", "sibling", "far")] == pytest.approx([float(one) for one in wanted])


def test_free_centres_end_as_erratum_lt_1_says():
    tree = trees.load("breakhis", "tumour")
    kinds = [(form, 0.5) for form in losses.FORMS]
    rows = objectives.simulation(tree, kinds, tau=0.1, alpha=0.5, n_seeds=1, steps=60).set_index("kind")
    assert rows.loc[losses.PRINTED, "siblings"] > rows.loc[losses.PRINTED, "far"]
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert rows.loc[form, "siblings"] < rows.loc[form, "far"]


def test_the_bars_of_the_sliders_are_the_pushes_and_the_hinge_ends_at_the_margin():
    scene = objectives.Scene(sibling_at=0.9, far_at=1.1)
    bars, hinge = objectives.explorer(0.5, 1.0, 0.2, 0.9, 1.1, 0.4).axes
    for container, part in zip(bars.containers, ("sibling", "far"), strict=True):
        wanted = [objectives.forces(scene, 0.2, 0.5, 1.0, kind)[part] for kind in objectives.KINDS]
        np.testing.assert_allclose([bar.get_height() for bar in container], wanted)
    gap, paid = hinge.lines[0].get_data()
    assert (paid[gap >= 0.4] == 0).all() and (paid[gap < 0.39] > 0).all()


@pytest.mark.parametrize("name", ["alpha", "gamma", "tau", "siblings", "far", "margin"])
def test_every_slider_changes_picture_and_readout(name):
    board = objectives.explore()
    before = bytes(board.picture.value), board.text
    board.sliders[name].index += 1
    assert bytes(board.picture.value) != before[0] and board.text != before[1]


def test_the_readout_is_the_gradient_and_what_the_weights_do_to_it():
    """As printed, far at 1.1 over siblings at 1 is 1.2 exp(-4), without weights exp(-1); at one distance 1.2."""
    board = objectives.explore()
    assert re.search(r"printed +\d[.e\d-]* +0\.022 +0\.0597\n", board.text)
    board.sliders["far"].index -= 1
    assert board.values["siblings"] == board.values["far"] == 1
    assert re.search(r"shifted .* 1\.2 +1\.2\n", board.text)
