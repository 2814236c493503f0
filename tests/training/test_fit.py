"""Fitting one head: the schedule is the published one, the seed decides, and a broken loss stops with its story."""

import pickle
from itertools import chain

import numpy as np
import pytest
import torch

from lib.training.divergence import Diverged
from lib.training.fit import Schedule, fit_head


def linear(seed: int = 0) -> torch.nn.Linear:
    torch.manual_seed(seed)
    return torch.nn.Linear(3, 1, bias=False)


def data(n: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 2, n)


def squared(h, y):
    return (h[:, 0] - y).square().mean()


def test_batches_hold_every_image_once_an_epoch_in_a_new_order():
    batches = [rows.tolist() for rows in Schedule(epochs=3, batch_size=4).batches(torch.zeros(10), seed=0)]
    assert [len(rows) for rows in batches] == 3 * [4, 4, 2]
    epochs = [list(chain(*batches[start : start + 3])) for start in (0, 3, 6)]
    assert all(sorted(rows) == list(range(10)) for rows in epochs)
    assert len({tuple(rows) for rows in epochs}) == 3


def test_equals_adam_written_out():
    """Kingma and Ba's update with L2 decay, full batches, three epochs."""
    x, y = data()
    head = linear()
    w = head.weight.detach().double().clone().numpy()[0]
    m = v = np.zeros(3)
    for t in range(1, 4):
        g = 2 * x.T.astype(np.float64) @ (x @ w - y) / len(x) + 0.01 * w
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        w = w - 0.05 * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    fit_head(head, squared, x, y, Schedule(epochs=3, batch_size=10, lr=0.05, weight_decay=0.01), seed=0)
    np.testing.assert_allclose(head.weight.detach().numpy()[0], w, rtol=1e-4)


def test_the_history_is_the_mean_loss_over_images():
    x, y = data(10)
    head = linear()
    with torch.no_grad():
        expected = squared(head(torch.from_numpy(x)), torch.from_numpy(y)).item()
    history = fit_head(head, squared, x, y, Schedule(epochs=1, batch_size=4, lr=1e-30), seed=0)
    assert history == [pytest.approx(expected, rel=1e-5)]


def test_a_loss_that_is_not_a_number_stops_with_step_norms_and_the_last_good_state():
    x, y = data(8)
    head, calls = linear(), []

    def breaks_at_the_fourth(h, labels):
        calls.append(head.weight.detach().clone())
        return squared(h, labels) * (float("nan") if len(calls) == 4 else 1.0)

    message = r"the loss of the head is nan at step 3; norms of the last good state: weight \d"
    with pytest.raises(Diverged, match=message) as caught:
        fit_head(head, breaks_at_the_fourth, x, y, Schedule(epochs=3, batch_size=4), seed=0)
    assert caught.value.step == 3 and len(calls) == 4
    assert torch.equal(caught.value.last_good["weight"], calls[2])


def test_diverged_travels_between_processes():
    sent = Diverged(float("inf"), 7, {"weight": torch.ones(4)}, "PCA(5)")
    got = pickle.loads(pickle.dumps(sent))
    said = "the loss of PCA(5) is inf at step 7; norms of the last good state: weight 2. Try a lower learning rate"
    assert str(got) == str(sent) == said
    assert got.step == 7 and torch.equal(got.last_good["weight"], torch.ones(4))
