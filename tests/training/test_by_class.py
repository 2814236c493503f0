"""Batches of N classes x d images: what is in them, that all take turns, and that any step can be the first."""

from itertools import islice

import numpy as np
import pytest
import torch

from lib.errors import InputError
from lib.training.by_class import ByClass, by_class

LABELS = torch.arange(60) % 7
"""Seven classes of 8 or 9 images, mixed."""


@pytest.mark.parametrize(("n_classes", "samples"), [(2, 2), (7, 2), (3, 5), (7, 8)])
def test_a_batch_is_different_classes_with_different_images(n_classes, samples):
    for rows in islice(by_class(LABELS, n_classes, samples, seed=0), 20):
        classes = LABELS[rows].unflatten(0, (n_classes, samples))
        assert (classes == classes[:, :1]).all()
        assert len(set(classes[:, 0].tolist())) == n_classes
        assert len(set(rows.tolist())) == n_classes * samples


def test_all_classes_take_turns_and_so_do_their_images():
    """Of seven classes, two batches of three are a lap; no class comes twice in it."""
    batches = list(islice(by_class(LABELS, 3, 2, seed=0), 400))
    for lap in range(200):
        both = LABELS[torch.cat(batches[2 * lap : 2 * lap + 2])]
        assert torch.bincount(both, minlength=7).tolist().count(2) == 6
    times = torch.bincount(LABELS[torch.cat(batches)], minlength=7).double()
    assert times.min() > 0.85 * times.mean()
    assert len(torch.cat(batches).unique()) == len(LABELS)


@pytest.mark.parametrize("start", [0, 1, 2, 7, 23])
def test_any_step_can_be_the_first_and_the_seed_alone_decides(start):
    """What is drawn twice, the second time from a later step on, comes from no random state but its own."""
    whole = torch.stack(list(islice(by_class(LABELS, 3, 2, seed=5), 30)))
    rest = torch.stack(list(islice(by_class(LABELS, 3, 2, seed=5, start=start), 30 - start)))
    assert torch.equal(whole[start:], rest)
    assert len(whole.unique(dim=0)) == 30
    assert not torch.equal(whole[0], next(by_class(LABELS, 3, 2, seed=6)))


def test_a_schedule_is_as_many_batches_as_its_epochs_have():
    schedule = ByClass(epochs=3, batch_size=12, samples=4)
    batches = list(schedule.batches(LABELS, seed=2))
    assert len(batches) == 3 * schedule.steps(60) == 15
    assert torch.equal(torch.stack(batches), torch.stack(list(islice(by_class(LABELS, 3, 4, seed=2), 15))))


def test_the_published_batch_does_not_fit_the_98_classes_of_cars():
    """HV-7; ten of each class would do, and the authors' 98 x 9 = 882 does."""
    cars = np.arange(98).repeat(12)
    with pytest.raises(InputError, match=r"450 classes x 2 images, but there are only 98 .* 196 .* samples = 10 of"):
        ByClass(batch_size=900, samples=2).batches(torch.from_numpy(cars), seed=0)
    with pytest.raises(InputError, match=r"only 98 classes to learn from: take at most 882 images in a batch$"):
        ByClass(batch_size=1800, samples=9).batches(torch.from_numpy(cars), seed=0)
    rows = next(ByClass(batch_size=882, samples=9).batches(torch.from_numpy(cars), seed=0))
    assert np.bincount(cars[rows]).tolist() == [9] * 98


def test_a_class_with_too_few_images_is_named():
    with pytest.raises(InputError, match=r"1 of 3 classes have fewer than samples = 2 .* class wren with 1: leave"):
        by_class(["owl", "owl", "jay", "jay", "wren"], 2, 2, seed=0)


@pytest.mark.parametrize(("batch_size", "samples"), [(900, 7), (2, 2), (6, 4)])
def test_a_batch_is_a_whole_number_of_classes(batch_size, samples):
    with pytest.raises(InputError, match=rf"choose a multiple of {samples} from {2 * samples} on"):
        ByClass(batch_size=batch_size, samples=samples)
