"""Feature clipping: min(1, r/‖v‖)·v."""

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.geometry import clip


def test_clip_is_the_formula_and_changes_no_short_vector():
    v = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0], [-1.2, 1.6]])
    expected = np.stack([row * min(1, 2 / np.hypot(*row)) if np.hypot(*row) else row for row in v.numpy()])
    np.testing.assert_allclose(clip(v, 2.0).numpy(), expected, rtol=1e-6)
    assert torch.equal(clip(v, 2.0)[1:], v[1:])


def test_gradients_are_finite_at_zero_and_turn_only_sideways_beyond_the_radius():
    v = torch.tensor([[0.0, 0.0], [3.0, 0.0]], requires_grad=True)
    clip(v, 1.0).sum().backward()
    assert v.grad.isfinite().all()
    assert v.grad[1].tolist() == pytest.approx([0.0, 1 / 3], abs=1e-6)


@pytest.mark.parametrize("radius", [0.0, -1.0, float("nan")])
def test_a_radius_that_leaves_nothing_is_refused(radius):
    with pytest.raises(InputError, match="clip radius"):
        clip(torch.ones(1, 2), radius)
