"""Prototypes and their loss against plain loops, in every comparison."""

import math

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.losses.linear_prototypes import NAMES, Comparison, EpisodeLoss, log_likelihood

N, K, M, D = 3, 4, 7, 5


def episode(seed: int = 0, dtype: torch.dtype = torch.float64) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    h = 0.15 * torch.randn(N * K + M, D, generator=generator, dtype=torch.float64)
    labels = torch.cat([torch.arange(N).repeat_interleave(K), torch.arange(M) % N])
    return h.to(dtype), labels


def compared_by_hand(name: str, query: np.ndarray, support: np.ndarray) -> float:
    """One query against one class, written down from the definitions, c = 1."""
    if name == "poincare":
        weights = [2 / (1 - x @ x) for x in support]
        total = sum(w * x for w, x in zip(weights, support, strict=True)) / sum(w - 1 for w in weights)
        prototype = total / (1 + math.sqrt(1 - total @ total))  # half of the gyrovector, ½ ⊗
        gap = (1 - query @ query) * (1 - prototype @ prototype)
        return math.acosh(1 + 2 * (query - prototype) @ (query - prototype) / gap)
    if name == "cosine":
        prototype = sum(x / math.sqrt(x @ x) for x in support)
        return 1 - query @ prototype / math.sqrt((query @ query) * (prototype @ prototype))
    prototype = sum(support) / len(support)
    squared = (query - prototype) @ (query - prototype)
    return squared if name == "squared euclidean" else math.sqrt(squared)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("temperature", [1.0, 0.2])
def test_the_loss_is_its_definition(name, temperature):
    h, labels = episode()
    rows = h.numpy()
    losses = []
    for query, label in zip(rows[N * K :], labels[N * K :].tolist(), strict=True):
        support = [rows[c * K : (c + 1) * K] for c in range(N)]
        scores = [math.exp(-compared_by_hand(name, query, part) / temperature) for part in support]
        losses.append(-math.log(scores[label] / sum(scores)))
    ours = EpisodeLoss(K, N, Comparison(name), temperature)(h, labels)
    assert ours.item() == pytest.approx(np.mean(losses), rel=1e-9)
    assert EpisodeLoss(K, N, Comparison(name), temperature)(h.float(), labels).item() == pytest.approx(
        ours.item(), rel=1e-5
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_stack_of_episodes_is_one_episode_after_another(name):
    batches = [episode(seed) for seed in range(3)]
    loss = EpisodeLoss(K, N, Comparison(name))
    stacked = loss(torch.stack([h for h, _ in batches]), torch.stack([labels for _, labels in batches]))
    torch.testing.assert_close(stacked, torch.stack([loss(h, labels) for h, labels in batches]))


def test_rows_that_only_fill_up_do_not_count():
    h, labels = episode()
    loss = EpisodeLoss(K, N)
    padded = torch.cat([h, 100 * torch.ones(2, D)]), torch.cat([labels, torch.zeros(2, dtype=torch.long)])
    valid = torch.arange(len(padded[0])) < len(h)
    assert loss(*padded, valid).item() == pytest.approx(loss(h, labels).item())
    assert loss(*padded, torch.zeros_like(valid)).item() == 0


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_at_zero_and_at_a_query_that_is_its_prototype(name):
    for h in (torch.zeros(N * K + M, D), episode(dtype=torch.float32)[0].clone()):
        h[N * K :] = h[0]
        h[:K] = h[0]
        h.requires_grad_()
        EpisodeLoss(K, N, Comparison(name))(h, episode()[1]).backward()
        assert h.grad.isfinite().all()


@pytest.mark.parametrize("name", NAMES)
def test_the_gradient_is_the_slope(name):
    h, labels = episode()
    loss = EpisodeLoss(K, N, Comparison(name), 0.5)
    way = torch.randn(h.shape, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    h.requires_grad_()
    slope = (torch.autograd.grad(loss(h, labels), h)[0] * way).sum().item()
    with torch.no_grad():
        steps = [loss(h + sign * 1e-6 * way, labels).item() for sign in (1, -1)]
    assert slope == pytest.approx((steps[0] - steps[1]) / 2e-6, rel=1e-5)


def test_the_likelihood_of_equally_near_classes_is_one_over_their_number():
    value = log_likelihood(torch.ones(4, N), torch.arange(4) % N, torch.ones(4, dtype=torch.bool))
    assert value.item() == pytest.approx(math.log(N))


@pytest.mark.parametrize(
    ("labels", "temperature", "words"),
    [([0, -1], 1.0, "labels run from -1"), ([0, N], 1.0, f"there are {N} classes"), ([0, 1], 1e-40, "temperature")],
)
def test_a_likelihood_of_no_class_is_refused(labels, temperature, words):
    with pytest.raises(InputError, match=words):
        log_likelihood(torch.ones(2, N), torch.tensor(labels), torch.ones(2, dtype=torch.bool), temperature)
    assert log_likelihood(torch.ones(2, N), torch.tensor([0, 1]).int(), torch.ones(2)).item() == pytest.approx(
        math.log(N)
    )


def test_an_unknown_comparison_is_named():
    with pytest.raises(InputError, match="manhattan"):
        Comparison("manhattan")


@pytest.mark.parametrize("name", NAMES)
def test_on_a_gpu_no_value_is_looked_at(name):
    """A step would wait for it, and could not be recorded. Tensors without values stand for those of a GPU."""
    h = torch.empty(2, N * K + M, D, device="meta", requires_grad=True)
    labels = torch.zeros(2, N * K + M, dtype=torch.long, device="meta")
    EpisodeLoss(K, N, Comparison(name))(h, labels).sum().backward()
    assert h.grad.shape == h.shape
