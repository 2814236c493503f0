"""The plane of notebook 40: placed, divided, and asked where it hurts."""

import numpy as np
import pytest
import torch

from lib.geometry import PoincareBall
from lib.papers.linear_prototypes.plane import experiment as plane
from lib.training.episodes import Episodes

RANDOM = torch.Generator().manual_seed(0)
LABELS = torch.arange(24) % 3
CENTRES = torch.tensor([[0.6, 0.0], [-0.4, 0.5], [-0.3, -0.6]])
V = CENTRES[LABELS] + 0.2 * torch.randn(24, 2, generator=RANDOM)


def test_the_support_is_the_first_of_each_class_and_never_the_query():
    order = plane.entrance(24, query=4, seed=1)
    assert sorted([*order.tolist(), 4]) == list(range(24))
    small, large = (plane.support_of(LABELS, order, k) for k in (2, 5))
    assert large.shape == (3, 5) and torch.equal(large[:, :2], small)
    assert LABELS[large].tolist() == [[0] * 5, [1] * 5, [2] * 5]


@pytest.mark.parametrize("c", [0.0, 1.0, 2.0])
def test_chances_are_those_of_a_loop_over_the_prototypes(c):
    order = plane.entrance(24, query=4, seed=1)
    found = plane.place(V, LABELS, order, 3, 0.5, c)
    ball = PoincareBall(c)
    h = ball.exp0(V)
    torch.testing.assert_close(found.h, h)
    for code in range(3):
        mine = [i for i in order.tolist() if LABELS[i] == code][:3]
        torch.testing.assert_close(found.prototypes[code], ball.mean(h[mine]))
    for i in (0, 7):
        weights = [torch.exp(-(ball.between(h[i], p) ** 2) / 0.5) for p in found.prototypes]
        assert found.chances[i].tolist() == pytest.approx([float(w / sum(weights)) for w in weights], rel=1e-4)


def test_the_background_is_the_chance_at_its_place():
    order = plane.entrance(24, query=4, seed=1)
    found = plane.place(V, LABELS, order, 3, 0.5, 0.0)
    axis = np.linspace(-plane.LIMIT, plane.LIMIT, plane.GRID)
    distance = (torch.tensor([axis[70], axis[20]], dtype=torch.float32) - found.prototypes).square().sum(-1)
    expected = (-4 * distance / 0.5).softmax(-1)  # row 20 is the height, column 70 the first coordinate
    torch.testing.assert_close(found.regions[20, 70], expected, atol=1e-5, rtol=1e-4)


def test_without_curvature_and_at_temperature_four_it_is_the_loss_of_the_paper():
    order = plane.entrance(24, query=4, seed=1)
    found = plane.place(V, LABELS, order, 3, 4.0, 0.0)
    squared = (V[4] - found.prototypes).square().sum(-1)
    torch.testing.assert_close(found.chances[4], (-squared).softmax(-1))


def test_the_hardest_image_is_right_by_the_smallest_margin():
    v = torch.tensor([[0.0, 0.0], [0.0, 2.0], [0.0, 1.4], [5.0, 0.0], [5.0, 2.0], [2.9, 1.0]])
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    assert plane.hardest(v, labels) == 5


def test_two_outputs_are_trained_and_fit_into_the_picture():
    x = np.random.default_rng(0).normal(size=(24, 5)) + 3 * np.eye(3, 5)[LABELS.numpy()]
    v, history = plane.flat_embedding(x.astype(np.float32), LABELS.numpy(), Episodes(epochs=10, batch_size=12, k=3), 0)
    assert v.shape == (24, 2)
    assert v.square().sum(-1).mean().sqrt().item() == pytest.approx(0.65, rel=1e-5)
    assert v.mean(dim=0).abs().max() < 1e-5
    assert history[-1] < history[0]
