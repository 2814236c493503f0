"""Who validates is learnt from by nobody, and asks in no test."""

import numpy as np

from lib.papers.hyper_dino import validation
from lib.training.splits import splits

LABELS = np.repeat(np.arange(4), 20)
GROUPS = np.array([f"patient {number}" for number in np.tile(np.repeat(np.arange(5), 4), 4)])
WHERE = splits(np.arange(80) % 4, 0)


def test_the_validation_part_is_of_other_groups_and_never_of_the_test_part():
    for split, inner in zip(WHERE, validation.inner(WHERE, LABELS, GROUPS), strict=True):
        assert set(GROUPS[inner.train]).isdisjoint(GROUPS[inner.test])
        assert sorted([*inner.train, *inner.test]) == sorted(split.train)
        np.testing.assert_array_equal(inner.labelled, inner.train)
        np.testing.assert_array_equal(inner.held_out, inner.test)
        assert (inner.fold, inner.seed) == (split.fold, split.seed)
