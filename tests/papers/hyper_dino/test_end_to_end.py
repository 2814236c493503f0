"""The mapper and its flat twin learn together with the encoder, on embedded tiles, by image and by patient."""

import numpy as np
import pytest

from lib.datasets import folds
from lib.geometry import Euclidean, PoincareBall
from lib.papers.hyper_dino import end_to_end
from lib.study import measures
from lib.training import two_views
from lib.training.hyper_dino import Settings
from lib.training.photos import Preparation
from lib.training.splits import repeated, splits
from lib.training.whole import Plan

PLAN = Plan("small", two_views.Settings(4, 16, 1e-3, 1e-2, 0.0, 8, 3), Preparation(16, 16))


@pytest.fixture
def splits_of(tiles):
    rules = {rule: splits(fold, 0)[:1] for rule, fold in folds.rules(tiles, 3, 0).items()}
    return {rule: repeated(of_rule, 2) for rule, of_rule in rules.items()}


def test_head_and_encoder_answer_beside_the_encoder_before(tiles, splits_of, small):
    results = end_to_end.run(tiles, tiles.codes, Settings(), splits_of, PLAN, [1, 5], store=None)
    names = [f"{name}, end to end, {place}" for name in ("ball", "flat, half margin") for place in ("head", "encoder")]
    for rule, answers in results.items():
        assert list(answers) == [end_to_end.BEFORE, *names]
        for name, trainings in answers.items():
            n = len(splits_of[rule][0].test)
            assert [(one.split.repeat, len(one.per_query.values)) for one in trainings] == [(0, n), (1, n)]
            assert all((one.health.steps == 4) == ("end to end" in name) for one in trainings)
        ball, flat = (answers[name][0] for name in (names[0], names[2]))
        assert isinstance(ball.method.head.geometry, PoincareBall) and (ball.norms < 1).all()
        assert isinstance(flat.method.head.geometry, Euclidean) and flat.method.head.m0 == ball.method.head.m0 / 2
    tests = measures.compare(results, tiles.groups, end_to_end.PAIRS, (1, 5))
    assert set(tests["rule"]) == set(results) == {"by image", "by patient"}


def test_test_images_have_no_say(tiles, splits_of, small):
    labels, only = tiles.codes.copy(), {"by patient": splits_of["by patient"][:1]}
    labels[only["by patient"][0].test] = 0
    runs = (end_to_end.run(tiles, of, Settings(), only, PLAN, [1], store=None) for of in (tiles.codes, labels))
    first, spoiled = (run["by patient"]["ball, end to end, head"][0].history for run in runs)
    assert np.array_equal(first, spoiled)
