"""Fig. 3 draws both intervals where they are."""

import numpy as np
import pytest

from lib.metrics.significance import evidence
from lib.papers.linear_prototypes.significance import figures


def test_gains_show_both_intervals_where_they_are():
    found = evidence(np.random.default_rng(0).normal(3, 5, 40), np.zeros(40), n_resamples=500)
    figure = figures.gains({"a − b": found})
    drawn = sorted({line.get_xdata()[0] for line in figure.axes[0].lines})
    expected = [found.null_low, found.null_high, found.test.low, found.test.high, found.test.difference]
    assert drawn == pytest.approx(sorted(expected))
    assert len(figure.legends[0].get_texts()) == 5
