"""Fitting one head: the schedule is the published one, the seed decides, and a broken loss stops with its story."""

from itertools import chain

import numpy as np
import pytest
import torch

from lib.training.fit import Diverged, Schedule, fit_head


def linear(seed: int = 0) -> torch.nn.Linear:
    torch.manual_seed(seed)
    return torch.nn.Linear(3, 1, bias=False)


def data(n: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(n, 3)).astype(np.float32), rng.integers(0, 2, n)


def squared(h, y):
    return (h[:, 0] - y).square().mean()


def test_the_defaults_are_the_published_ones():
    assert Schedule() == Schedule(epochs=100, batch_size=128, lr=1e-3, weight_decay=1e-5)


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


def test_every_image_is_seen_once_an_epoch_and_the_last_batch_may_be_smaller():
    x, _ = data(10)
    seen = []

    def spy(h, labels):
        seen.append(labels.tolist())
        return h.square().mean()

    fit_head(linear(), spy, x, np.arange(10), Schedule(epochs=2, batch_size=4), seed=0)
    assert [len(batch) for batch in seen] == [4, 4, 2, 4, 4, 2]
    assert sorted(chain(*seen[:3])) == sorted(chain(*seen[3:])) == list(range(10))
    assert seen[:3] != seen[3:]


def test_the_seed_decides_and_nothing_else():
    x, y = data(50)
    heads = [linear() for _ in range(3)]
    histories = [
        fit_head(head, squared, x, y, Schedule(epochs=5, batch_size=8), seed=seed)
        for head, seed in zip(heads, (7, 7, 8), strict=True)
    ]
    assert histories[0] == histories[1] != histories[2]
    assert torch.equal(heads[0].weight, heads[1].weight)


def test_the_history_is_the_mean_loss_over_images():
    x, y = data(10)
    head = linear()
    with torch.no_grad():
        expected = squared(head(torch.from_numpy(x)), torch.from_numpy(y)).item()
    history = fit_head(head, squared, x, y, Schedule(epochs=1, batch_size=4, lr=0.0), seed=0)
    assert history == [pytest.approx(expected, rel=1e-5)]


def test_a_loss_that_is_not_a_number_stops_with_step_norms_and_the_last_good_state():
    x, y = data(8)
    head, calls = linear(), []

    def breaks_at_the_fourth(h, labels):
        calls.append(1)
        return squared(h, labels) * (float("nan") if len(calls) == 4 else 1.0)

    with pytest.raises(Diverged, match=r"loss is nan at step 3 \(epoch 1\).*weight \d") as caught:
        fit_head(head, breaks_at_the_fourth, x, y, Schedule(epochs=3, batch_size=4), seed=0)
    assert caught.value.step == 3
    assert caught.value.last_good["weight"].isfinite().all()
    assert head.weight.isfinite().all()
