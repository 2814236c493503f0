"""Encoder and head learn together, from training images alone, and the same twice."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from lib.datasets.table import ImageTable
from lib.papers.label_tree import end_to_end, experiment, names, questions
from lib.training import two_views
from lib.training.label_tree import Objective
from lib.training.photos import Preparation
from lib.training.whole import Plan
from tests.images import coloured, listed

PLAN = Plan("small", two_views.Settings(6, 16, 1e-3, 1e-2, 0.0, 8, 4), Preparation(16, 16))
BOTH = {"HWC+LAM (Euclidean)": Objective("HWC", margin_weight=1.0)}


@pytest.fixture(scope="module")
def images(seen, tmp_path_factory) -> ImageTable:
    """Pictures of noise around a colour; red and green are the branches, bright and dark their classes."""
    colours = np.array([(200, 40, 40), (120, 40, 40), (40, 200, 40), (40, 120, 40)])[seen.leaves]
    labels = [seen.tree.leaves[leaf] for leaf in seen.leaves]
    table = listed(labels, tmp_path_factory.mktemp("images"), kind="patient", group=seen.groups)
    return coloured(table, colours, (20, 20))


@pytest.fixture
def several(seen):
    return end_to_end.first_fold(experiment.by_group(seen, 3, 1, 1, 0), 2)


def test_head_encoder_and_the_encoder_before_answer_the_same_images(seen, images, several, small):
    found = end_to_end.run(seen, images, BOTH, several, PLAN, store=None)
    (name,) = BOTH
    assert list(found) == [end_to_end.BEFORE, f"{name}, end to end, head", f"{name}, end to end, encoder"]
    for scores in found.values():
        assert [one.split.repeat for one in scores] == [0, 1]
        assert all(one.values["leaf"].tolist() == seen.leaves[one.split.test].tolist() for one in scores)
    head, encoder = (found[f"{name}, end to end, {place}"][0] for place in ("head", "encoder"))
    assert head.health.steps == 6 and head.history == encoder.history and not np.isnan(head.health.loss)
    other = found[f"{name}, end to end, head"][1]
    assert head.history != other.history  # another seed
    both = {key.replace("HWC+LAM", "SupCon"): value for key, value in found.items()} | found
    asked = [pair for several in questions.end_pairs().values() for pair in several]
    assert len(asked) == 6 and all(one in both for pair in asked for one in pair)


def test_two_trainings_agree_and_test_images_have_no_say(seen, images, several, small, tmp_path):
    first = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    kept = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    again = end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=None)
    leaves = seen.leaves.copy()
    leaves[several[0].test] = 0
    spoiled = end_to_end.run(replace(seen, leaves=leaves), images, BOTH, several[:1], PLAN, store=None)
    for name in first:
        assert first[name][0].history == kept[name][0].history == again[name][0].history == spoiled[name][0].history
        pd.testing.assert_frame_equal(first[name][0].values, again[name][0].values)


def test_another_picture_under_an_old_name_is_trained_anew(seen, images, several, small, tmp_path, monkeypatch):
    end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    monkeypatch.setattr(two_views, "train", lambda *args, **options: pytest.fail("trained again"))
    end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    path = images.path(3)
    before = path.read_bytes()
    Image.new("RGB", (20, 20)).save(path)
    try:
        with pytest.raises(pytest.fail.Exception, match="trained again"):
            end_to_end.run(seen, images, BOTH, several[:1], PLAN, store=tmp_path)
    finally:
        path.write_bytes(before)


def test_in_both_geometries_each_loss_is_asked_against_the_other_and_against_itself():
    trained = names.together(curved=True)
    assert set(trained) < set(names.objectives(Objective(), 1.0, 1.0)) and trained[:2] == names.together(curved=False)
    asked = questions.end_pairs(curved=True)
    for one, other in asked["is HWC+LAM better than SupCon?"]:
        assert other == one.replace("HWC+LAM", "SupCon")
    for one, other in asked[questions.IN_THE_BALL]:
        assert other == one.replace("Hyperbolic", "Euclidean") != one
    assert [len(several) for several in asked.values()] == [4, 8, 4]
