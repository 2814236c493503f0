"""The pictures draw the rows that they are given."""

import numpy as np
import pandas as pd

from lib.papers.label_tree.objectives import figures, forces


def drawn(axis):
    """Label → (x, y) of the lines that carry a form's name."""
    names = {look["label"]: kind for kind, look in figures.LOOK.items()}
    return {names[line.get_label()]: line.get_xydata() for line in axis.lines if line.get_label() in names}


def test_the_effects_of_every_form_in_three_panels():
    two = forces.effects([forces.Scene(far_at=d) for d in (1.2, 0.8)], 0.1, [0.0, 0.5, 1.0])
    moved = forces.effects([forces.Scene(far_at=d) for d in (0.5, 1.0, 1.5)], 0.1, [0.5])
    near, further, right = figures.effects(two, moved).axes
    for axis, rows, x in ((near, two.query("far_at == 0.8"), "gamma"), (further, two.query("far_at == 1.2"), "gamma")):
        assert list(drawn(axis)) == list(forces.KINDS)
        for kind, line in drawn(axis).items():
            np.testing.assert_allclose(line, rows.loc[rows["kind"] == kind, [x, "effect"]])
    for kind, line in drawn(right).items():
        np.testing.assert_allclose(line, moved.loc[moved["kind"] == kind, ["far_at", "effect"]])
    assert (near.get_title(), further.get_title()) == ("siblings at 1, far at 0.8", "siblings at 1, far at 1.2")
    assert len({line.get_marker() for line in right.lines}) > len(forces.KINDS), "told apart without colour"


def test_a_line_for_each_multiplier():
    rows = forces.relative([1.2, 2.0], [0.1, 1.0], 0.1)
    (axis,) = figures.pushes(rows).axes
    lines = {line.get_label(): line.get_xydata() for line in axis.lines}
    for omega, part in rows.groupby("omega"):
        np.testing.assert_allclose(lines[f"ω = {omega:g}"], part[["distance", "push"]])


def test_centres_stand_at_their_means():
    rows = pd.DataFrame({"kind": "printed", "gamma": 0.5, "siblings": [1.0, 1.2], "far": [0.8, 1.0]})
    (axis,) = figures.centres(rows).axes
    found = {bar.get_label(): bar.lines[0].get_xydata()[0, 0] for bar in axis.containers}
    np.testing.assert_allclose([found["siblings"], found["other branch"]], [1.1, 0.9])


def test_the_bars_of_the_sliders_are_the_pushes_and_the_hinge_ends_at_the_margin():
    scene = forces.Scene(sibling_at=0.9, far_at=1.1)
    bars, hinge = figures.explorer(scene, 0.2, 0.5, 1.0, 0.4).axes
    for container, part in zip(bars.containers, ("sibling", "far"), strict=True):
        wanted = [forces.forces(scene, 0.2, 0.5, 1.0, kind)[part] for kind in forces.KINDS]
        np.testing.assert_allclose([bar.get_height() for bar in container], wanted)
    gap, paid = hinge.lines[0].get_data()
    assert (paid[gap >= 0.4] == 0).all() and (paid[gap < 0.39] > 0).all()
