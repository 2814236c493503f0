"""Likelihoods, and batches that are no episode; the formula is in test_every_loss.py."""

import math

import pytest
import torch

from lib.errors import InputError
from lib.losses.linear_prototypes import Comparison, EpisodeLoss, log_likelihood


def test_an_episode_whose_queries_do_not_count_costs_nothing():
    h, labels = torch.rand(5, 2), torch.tensor([0, 1, 0, 1, 1])
    assert EpisodeLoss(2, 2)(h, labels, valid=torch.arange(5) < 4).item() == 0


@pytest.mark.parametrize("labels", [[0, 0, 0, 1, 0], [0, 0, 1]])
def test_a_class_without_a_support_is_refused_with_the_way_out(labels):
    with pytest.raises(InputError, match=r"fewer than k = 2 rows for its support.*lib\.training\.episodes"):
        EpisodeLoss(2, 2)(torch.rand(len(labels), 3), torch.tensor(labels))


def test_the_likelihood_of_equally_near_classes_is_one_over_their_number():
    for labels in (torch.arange(4) % 3, (torch.arange(4) % 3).int()):
        assert log_likelihood(torch.ones(4, 3), labels).item() == pytest.approx(math.log(3))


@pytest.mark.parametrize(
    ("labels", "temperature", "words"),
    [([0, -1], 1.0, "labels run from -1"), ([0, 3], 1.0, "there are 3 classes"), ([0, 1], 1e-40, "temperature")],
)
def test_a_likelihood_of_no_class_is_refused(labels, temperature, words):
    with pytest.raises(InputError, match=words):
        log_likelihood(torch.ones(2, 3), torch.tensor(labels), temperature=temperature)


def test_an_unknown_comparison_is_named():
    with pytest.raises(InputError, match="manhattan"):
        Comparison("manhattan")
