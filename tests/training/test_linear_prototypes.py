"""The prototype head: what an episode can learn from, which views it sees, and how small a support may be."""

from dataclasses import replace

import numpy as np
import pytest

from lib.errors import InputError
from lib.losses.linear_prototypes import Comparison, EpisodeLoss
from lib.training.episodes import Episodes
from lib.training.linear_prototypes import Settings, allowed_support, learnable
from lib.training.recipes import Recipe

RECIPE = Recipe("scaled", 5, 3)
X = np.random.default_rng(0).normal(size=(20, 5)).astype(np.float32)
VIEWS = np.stack([X, X + 1])
LABELS = np.array([7] * 9 + [2] * 8 + [4] * 3)
SCHEDULE = Episodes(k=3)


def test_the_head_learns_from_all_views_of_the_classes_that_make_an_episode():
    """Class 4 has as many images as a support: no query is left. Classes are numbered for the loss."""
    settings = Settings(Comparison("cosine"), 0.3)
    lessons = settings.lessons(VIEWS, LABELS, SCHEDULE, "fold 0")
    assert np.array_equal(lessons.x, np.concatenate([X[:17], X[:17] + 1]))
    assert lessons.labels.tolist() == ([1] * 9 + [0] * 8) * 2
    assert lessons.loss == EpisodeLoss(3, 2, Comparison("cosine"), 0.3)
    assert lessons.schedule == replace(SCHEDULE, views=2)


def test_too_few_labels_of_all_but_one_class_are_refused_by_name():
    words = r"fold 5: K = 8 needs at least 9 labelled images of two classes or more; there are only "
    with pytest.raises(InputError, match=words + "8 of class number 2|3 of class number 4"):
        Settings().lessons(VIEWS, LABELS, Episodes(k=8), "fold 5")


def test_the_support_is_no_larger_than_two_classes_allow():
    """Class 2 has one image, the second largest has four in one part and three in the other."""
    labels = np.array([0] * 9 + [1] * 4 + [2])
    parts = [np.arange(14), np.delete(np.arange(14), 9)]
    assert allowed_support(labels, parts[:1], 3) == 3
    with pytest.warns(UserWarning, match="K = 2 instead of 5: two classes or more need"):
        k = allowed_support(labels, parts, 5)
    known = labels[parts[1]]
    assert set(known[learnable(known, k, "fold 0")]) == {0, 1}
