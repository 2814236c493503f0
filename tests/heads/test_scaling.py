"""A column that hardly varies among the training images decides nothing, whoever standardises."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.heads.hashing import HashHead
from lib.heads.scaling import HARDLY, widths
from lib.training import probe


def test_widths_are_deviations_but_for_columns_that_hardly_vary(recwarn):
    deviation = np.array([1.0, 4.0, 2.0, 0.0])
    assert widths(deviation).tolist() == [1, 4, 2, np.inf]
    assert widths(np.zeros(3)).tolist() == [np.inf] * 3
    assert widths(np.array([3.0])).tolist() == [3]
    assert not recwarn.list
    least = 0.9 * HARDLY * 2
    with pytest.warns(UserWarning, match=r"2 of 5 features .* number 3: its deviation is 0\.009, the median 2\."):
        assert widths(np.array([2.0, 4.0, least, least / 2, 2.0])).tolist() == [2, 4, np.inf, np.inf, 2]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0])
def test_a_deviation_that_is_none_is_refused(wrong):
    with pytest.raises(InputError, match=f"feature 1 has the deviation {wrong}"):
        widths(np.array([1.0, wrong, 2.0]))


def rows() -> tuple[np.ndarray, np.ndarray]:
    """Images to learn from and others, (60, 8) and (20, 8) float32, of three classes told apart by two columns."""
    x = np.random.default_rng(0).normal(size=(80, 8)).astype(np.float32)
    x[:, :2] += 6 * np.eye(3, 2, dtype=np.float32)[np.arange(80) % 3]
    x[:, 4] = 0
    x[0, 4], x[60:, 4] = 1e-6, 0.5
    return x[:60], x[60:]


@pytest.mark.filterwarnings("ignore:1 of 8 features hardly vary")
def test_no_other_scaler_is_led_by_such_a_column():
    train, other = rows()
    head = HashHead(8, 16, generator=torch.Generator().manual_seed(0))
    head.start(torch.from_numpy(train))
    assert head(torch.from_numpy(other)).abs().median() < 0.9  # else every bit of every image is saturated
    labels = np.arange(80) % 3
    assert (probe.predictions(train, labels[:60], other) == labels[60:]).mean() > 0.9
