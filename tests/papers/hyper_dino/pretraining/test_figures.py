"""The curves of a self-distillation show the history that they were given."""

import math

import numpy as np
import pandas as pd

from lib.papers.hyper_dino.pretraining.figures import pretraining


def test_every_curve_is_in_its_panel():
    history = pd.DataFrame(
        {
            "step": range(5),
            "loss": [5.0, 6, 4, 3, 2],
            "entropy": [4.0, 3, 2, 1, 1],
            "information": [0.0, 0.5, 1, 1.5, 2],
            "spread": [0.3, 0.4, 0.5, 0.6, 0.7],
        }
    )
    loss, entropy, spread = pretraining(history, prototypes=64).axes
    np.testing.assert_array_equal(loss.lines[0].get_xydata(), list(zip(range(1, 6), history["loss"], strict=True)))
    highest, mean, single = entropy.lines
    assert set(highest.get_ydata()) == {math.log(64)}
    assert mean.get_ydata().tolist() == [4, 3.5, 3, 2.5, 3]
    assert single.get_ydata().tolist() == history["entropy"].tolist()
    assert spread.lines[0].get_ydata().tolist() == history["spread"].tolist()
    assert all(axis.get_xlabel() == "step" and axis.get_ylabel() for axis in (loss, entropy, spread))
    assert len({line.get_linestyle() for line in entropy.lines}) == 3
