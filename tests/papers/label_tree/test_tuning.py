"""Values are chosen on a part of what a split learns from, for every fold by itself."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.papers.label_tree import experiment, names, tuning
from lib.training.label_tree import Objective, Schedule

SCHEDULE = Schedule(epochs=3, batch_size=32, lr=5e-3, hidden=16, dim_out=4)
CANDIDATES = tuning.Candidates([0.1, 1.0], [0.2], [0.2, 1.0])


@pytest.fixture(scope="module")
def several(seen):
    return experiment.by_group(seen, 3, 2, 2, 0)


@pytest.fixture(scope="module")
def tried(seen, several):
    return tuning.tune(seen, Objective(), CANDIDATES, several, SCHEDULE, 2, 0)


def test_every_candidate_is_tried_in_every_fold_and_one_of_each_is_chosen(tried):
    assert len(tried) == 2 * (2 + 2 + 4 * 2) and set(tried["name"]) == set(tuning.TUNED)
    for _, part in tried.groupby(["name", "fold"]):
        score = part["hf1"] + part["order"]
        assert part["chosen"].sum() == 1 and score[part["chosen"]].item() == score.max()


def test_nothing_is_chosen_on_images_that_a_fold_tests(seen, several, tried):
    """Labels of the test images of a fold are turned round: its choice and its scores stay."""
    fold = [split for split in several if split.fold == 0]
    leaves = seen.leaves.copy()
    leaves[fold[0].test] = np.bincount(seen.leaves).argmax()
    turned = replace(seen, leaves=leaves)
    again = tuning.tune(turned, Objective(), CANDIDATES, fold, SCHEDULE, 2, 0)
    pd.testing.assert_frame_equal(again, tried[tried["fold"] == 0].reset_index(drop=True))


def test_what_is_trained_is_what_was_chosen_and_stands_in_the_order_of_the_splits(seen, several, tried):
    found = tuning.trained(seen, Objective(), tried, several, SCHEDULE)
    titles = (*tuning.TUNED.values(), *tuning.AT_THEIRS.values())
    assert list(found) == [name + names.FLAT for name in titles]
    (best,) = tried[tried["chosen"] & (tried["name"] == names.AS_TOLD) & (tried["fold"] == 1)].itertuples()
    mine = next(split for split in several if split.fold == 1 and split.repeat == 1)
    alone = Objective(pairs="HWC", alpha=best.alpha, gamma=best.gamma)
    (wanted,) = experiment.run(seen, {"one": alone}, [mine], SCHEDULE)["one"]
    of_hwc = found[tuning.TUNED[names.AS_TOLD] + names.FLAT]
    assert [(one.split.fold, one.split.repeat) for one in of_hwc] == [(s.fold, s.repeat) for s in several]
    (one,) = [one for one in of_hwc if (one.split.fold, one.split.repeat) == (1, 1)]
    pd.testing.assert_frame_equal(one.values, wanted.values)
    (bare,) = tried[tried["chosen"] & (tried["name"] == names.NO_TREE) & (tried["fold"] == 1)].itertuples()
    without = Objective(pairs="HWC", alpha=bare.alpha, gamma=bare.gamma, constant="by role")
    (same,) = experiment.run(seen, {"one": without}, [mine], SCHEDULE)["one"]
    of_bare = [one.history for one in found[tuning.TUNED[names.NO_TREE] + names.FLAT]]
    assert same.history in of_bare and wanted.history not in of_bare
    (beside,) = experiment.run(seen, {"one": replace(alone, constant="by role")}, [mine], SCHEDULE)["one"]
    assert beside.history in [one.history for one in found[tuning.AT_THEIRS[names.AS_TOLD] + names.FLAT]]
