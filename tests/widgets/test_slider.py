"""A slider holds one of its values and has a text for each; test_in_browser looks at what a browser makes of it."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.papers.hyper_dino import ball
from lib.widgets.slider import Slider


def test_the_value_is_that_of_the_position():
    slider = Slider("curvature c", (0.0, 0.1, 0.2, 0.3), start=0.1)
    assert (slider.index, slider.value) == (1, 0.1)
    slider.index = 3
    assert slider.value == 0.3
    slider.value = 0.1 + 0.2  # 0.30000000000000004
    assert slider.value == 0.3


def test_every_position_has_a_short_text():
    texts = Slider("norm weight", np.logspace(-2, 1, 13).tolist(), start=1.0).texts
    assert texts[:5] == ["0.01", "0.0178", "0.0316", "0.0562", "0.1"] and texts[-1] == "10"
    for slider in ball.explore().sliders.values():
        assert [float(text) for text in slider.texts] == list(slider.values)
        assert len(set(slider.texts)) == len(slider.texts)


def test_a_value_between_two_positions_is_refused():
    with pytest.raises(InputError, match=r"the slider 'step' has no position 7; it has: 0, 5, 10"):
        Slider("step", (0, 5, 10), start=7)
    slider = Slider("step", (0, 5, 10), start=5)
    with pytest.raises(InputError, match="has no position 20"):
        slider.value = 20
    assert slider.value == 5
