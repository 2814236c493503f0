import numpy as np
import pytest

from lib.errors import InputError
from lib.training import probe


def test_rare_classes_count_as_much_as_frequent_ones():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], [190, 10])
    x = labels[:, None] + 0.8 * random.normal(size=(200, 1))
    middle = probe.predictions(x, labels, np.array([[0.8], [0.2]]))
    assert middle.tolist() == [1, 0]  # unbalanced, 0.8 would be the frequent class's


def test_what_cannot_be_learnt_is_refused_and_an_early_end_is_said():
    x = np.random.default_rng(0).normal(size=(30, 4))
    with pytest.raises(InputError, match="two classes or more"):
        probe.predictions(x, np.zeros(30, int), x)
    with pytest.warns(UserWarning, match="not come to its end in 1 iterations"):
        probe.predictions(x, np.arange(30) % 3, x, max_iter=1)


def test_short_vectors_are_read_as_well_as_long_ones_if_they_are_scaled():
    random = np.random.default_rng(0)
    labels = np.arange(300) % 3
    x = 1e-3 * (np.eye(3)[labels] + 0.2 * random.normal(size=(300, 3)))
    asked, right = x[200:], labels[200:]
    long, short = (probe.predictions(x[:200] * f, labels[:200], asked * f) for f in (1.0, 1e4))
    assert (long == short).all() and (long == right).mean() > 0.95
    beside = np.concatenate([x, random.normal(size=(300, 1))], axis=1)  # a long coordinate that says nothing
    found = {s: probe.predictions(beside[:200], labels[:200], beside[200:], scaled=s) for s in (True, False)}
    assert (found[True] == right).mean() > 0.95 > 0.6 > (found[False] == right).mean()
    still = np.concatenate([x, np.full((300, 1), 7.0)], axis=1)
    assert (probe.predictions(still[:200], labels[:200], still[200:]) == long).all()
