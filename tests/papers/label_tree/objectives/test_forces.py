"""The numbers of erratum LT-1, and the forces against autograd and against the loss itself."""

import numpy as np
import pandas as pd
import pytest
import torch

from lib.datasets import trees
from lib.losses import label_tree as losses
from lib.papers.label_tree.objectives import forces

SCENES = [forces.Scene(), forces.Scene(far_at=1.3), forces.Scene(sibling_at=0.4, far_at=0.9, siblings=3, far=4)]


def test_the_effects_of_erratum_lt_1():
    rows = forces.effects([forces.Scene()], 0.1, [0, 0.2, 0.5, 1])
    printed = rows[rows["kind"] == losses.PRINTED]["effect"].tolist()
    assert printed == pytest.approx([1, 0.40, 0.099, 0.0090], rel=0.02)
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert np.diff(rows[rows["kind"] == form]["effect"]).min() > 0, form


def test_the_table_of_pushes_of_erratum_lt_1():
    rows = forces.relative([1.2, 1.5, 2.0], [0.05, 0.1, 0.5, 1.0], 0.1).set_index(["omega", "distance"])
    assert rows["push"][1.2].tolist() == pytest.approx([1.09, 0.98, 0.44, 0.16], abs=0.006)
    assert rows["push"][2.0].tolist() == pytest.approx([1.21, 0.74, 0.014, 0.000091], rel=0.04)
    assert rows["crossover"].unique() == pytest.approx([0.091, 0.081, 0.069], abs=5e-4)


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("gamma", [0.0, 0.7])
def test_equation_8_is_the_gradient(gamma, scene):
    assert forces.equation_8(scene, 0.2, 0.5, gamma) == pytest.approx(forces.by_autograd(scene, 0.2, 0.5, gamma))


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
    logits = loss.logits(s, rho, torch.zeros_like(rho, dtype=torch.bool))
    (slope,) = torch.autograd.grad(-logits.log_softmax(-1)[rho == 1].mean(), s)
    found = forces.forces(scene, tau, alpha, gamma, kind)
    wanted = -slope[0, 0], slope[0, scene.positives], slope[0, -1]
    assert [found[name] for name in ("pull", "sibling", "far")] == pytest.approx([float(one) for one in wanted])


def test_free_centres_end_as_erratum_lt_1_says():
    tree = trees.load("breakhis", "tumour")
    kinds = [(form, 0.5) for form in losses.FORMS]
    rows = forces.simulation(tree, kinds, tau=0.1, alpha=0.5, n_seeds=1, steps=60).set_index("kind")
    assert rows.loc[losses.PRINTED, "siblings"] > rows.loc[losses.PRINTED, "far"]
    for form in (losses.COSINE, losses.SHIFTED, losses.DIVIDED):
        assert rows.loc[form, "siblings"] < rows.loc[form, "far"]


@pytest.mark.parametrize(
    "kind, tau, at, by_hand",
    [  # b is 1.25 for siblings and 1.5 for far classes
        (losses.PRINTED, 0.1, (1.0, 1.0), 1.2 * np.exp(-0.25 * 10)),
        (losses.PRINTED, 0.2, (0.1, 0.1), 1.2 * np.exp(-0.125)),
        (losses.PRINTED, 0.1, (0.4, 0.6), 1.2 * np.exp(-(1.5 * 6 - 1.25 * 4))),
        (losses.COSINE, 0.5, (1.0, 2**0.5), 1.2 * np.exp(-1.25)),
        (losses.DIVIDED, 0.1, (1.0, 1.0), np.exp(10 / 1.25 - 10 / 1.5) / 1.2),
        (losses.SHIFTED, 0.1, (1.0, 1.0), 1.2),
        # 48 siblings at 1 and 64 far images at 1.7 have a mean of 1.4
        (losses.SHIFTED, 1.0, (1.0, 1.7), 1.2 * np.exp(-1.5 * 0.3 - 1.25 * 0.4)),
    ],
)
def test_far_over_sibling_is_what_multipliers_and_distances_make_of_it(kind, tau, at, by_hand):
    found = forces.forces(forces.Scene(sibling_at=at[0], far_at=at[1]), tau, 0.5, 0.5, kind)
    assert found["ratio"] == pytest.approx(by_hand, rel=1e-9)


def test_at_the_turning_point_the_weights_do_nothing():
    rows = forces.effects([forces.Scene(far_at=d) for d in np.linspace(0.3, 1.6, 30)], 0.1, [0.5])
    found = forces.turning_points(rows)
    assert list(found) == list(losses.FORMS)
    for kind, at in found.items():
        assert forces.effect(forces.Scene(far_at=at), 0.1, 0.5, kind) == pytest.approx(1, abs=0.02)
    never = pd.DataFrame({"kind": losses.PRINTED, "far_at": [1.0, 2.0], "effect": [0.5, 0.1]})
    assert np.isnan(forces.turning_points(never)[losses.PRINTED])
