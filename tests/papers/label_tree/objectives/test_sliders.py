"""Every slider moves what it says, and the readout is the gradient."""

import re

import pytest

from lib.papers.label_tree.objectives import forces, sliders


@pytest.mark.parametrize("name", ["alpha", "gamma", "tau", "siblings", "far", "margin"])
def test_every_slider_changes_picture_and_readout(name):
    board = sliders.explore()
    before = bytes(board.picture.value), board.text
    board.sliders[name].index += 1
    assert bytes(board.picture.value) != before[0] and board.text != before[1]


def test_the_readout_is_the_gradient_and_what_the_weights_do_to_it():
    """As printed, far at 1.1 over siblings at 1 is 1.2 exp(-4); without weights it would be exp(-1)."""
    assert re.search(r"printed +\d[.e\d-]* +0\.022 +0\.0597\n", sliders.explore().text)


def test_siblings_and_far_images_are_where_their_sliders_say():
    board = sliders.explore()
    board.sliders["far"].index -= 1
    assert board.values["siblings"] == board.values["far"] == 1
    found = forces.forces(forces.Scene(), 0.1, 0.5, 0.5, "shifted")
    assert f"{found['ratio']:.3g}" == "1.2" and re.search(r"shifted .* 1\.2 +1\.2\n", board.text)
