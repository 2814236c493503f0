"""The linear classifier: its loss and layer are torch's, and it ranks as it says."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from lib.geometry import Sphere
from lib.training import experiment
from lib.training.classifier import CrossEntropy, Settings
from lib.training.fit import Schedule, fit_head
from lib.training.methods import Method
from lib.training.recipes import Recipe
from lib.training.splits import Split

RNG = np.random.default_rng(0)
LABELS = np.arange(240) % 3
X = (RNG.normal(size=(240, 6)) + 2 * np.eye(6)[LABELS]).astype(np.float32)
SPLIT = Split(0, np.arange(160), np.arange(160, 240), seed=5)
SCHEDULE = Schedule(epochs=40, batch_size=32, lr=1e-2, weight_decay=1e-3)


def methods(schedule: Schedule = SCHEDULE, **options) -> list[Method]:
    recipe = Recipe("scaled", 6, 3)
    return [Method(ranking, recipe, Settings(ranking, **options), schedule) for ranking in ("logits", "probability")]


@pytest.fixture(scope="module")
def fitted():
    return experiment.fit(X, LABELS, methods(), [SPLIT], workers=1)


def test_loss_and_gradient_are_those_of_torch():
    logits = torch.randn(4, 9, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.arange(36).view(4, 9) % 5
    valid = torch.arange(9).expand(4, 9) < torch.tensor([[9], [7], [1], [4]])
    expected = torch.stack([cross_entropy(logits[s, valid[s]], labels[s, valid[s]]) for s in range(4)])
    got = CrossEntropy()(logits, labels, valid=valid)
    torch.testing.assert_close(got, expected)
    gradients = [torch.autograd.grad(value.sum(), logits)[0] for value in (got, expected)]
    torch.testing.assert_close(*gradients)
    assert (gradients[0][~valid] == 0).all() and (gradients[0][valid] != 0).any()


def test_it_ends_as_a_layer_of_torch_trained_by_hand(fitted):
    head, reduction = fitted["logits"][0].network, fitted["logits"][0].reduction
    start, layer = Settings().make(Recipe("scaled", 6, 3), seed=5), nn.Linear(6, 3)
    layer.load_state_dict(dict(zip(("weight", "bias"), start.parameters(), strict=True)))
    x = reduction(X[SPLIT.train])
    history = fit_head(layer, cross_entropy, x, LABELS[SPLIT.train], SCHEDULE, seed=5)
    for mine, theirs, first in zip(head.parameters(), layer.parameters(), start.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-4, atol=1e-5)
        assert not torch.allclose(mine, first, atol=0.1)
    assert fitted["logits"][0].history == pytest.approx(history, rel=1e-4)


def test_rankings_worked_by_hand():
    """Probabilities (1/2, 1/2, 0) and (1/2, 1/4, 1/4); logits are their logarithms and anything added to all."""
    layer = nn.Identity()
    p = torch.tensor([[0.25, 0.25, 0.5], [0.5, 0.25, 0.25]])
    logits = p.log() + torch.tensor([[3.0], [-20.0]])
    a, b = Settings("probability").embed(layer, logits)
    # sqrt(1/8) + sqrt(1/16) + sqrt(1/8)
    assert (a @ b).item() == pytest.approx(2 * 8**-0.5 + 0.25) and a.norm().item() == pytest.approx(1)
    # in units of log 2 the logits are (-2, -2, -1) and (-1, -2, -2): centred (-1, -1, 2)/3 and (2, -1, -1)/3
    a, b = Settings("logits").embed(layer, logits)
    assert (a / np.log(2)).tolist() == pytest.approx([-1 / 3, -1 / 3, 2 / 3], abs=1e-5)
    assert Sphere().between(a, b).item() == pytest.approx(np.arccos(-3 / 6), abs=1e-5)


def test_a_class_that_no_image_shows_keeps_its_place():
    """A class beyond the training part is an output that is never right, not a shift of the others."""
    known = Split(0, np.flatnonzero(LABELS[:160] != 1), SPLIT.test, seed=5)
    one = experiment.fit(X, LABELS, methods(), [known], workers=1)["probability"][0]
    answers = one.embed(X[known.train]).argmax(-1).numpy()
    assert 1 not in answers and (answers == LABELS[known.train]).mean() > 0.8  # shifted, no 2 would be right
