"""The control: the heads of the paper on another encoder's features, trained as often and as long."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.datasets.categories import Halves
from lib.papers.hyp_vit.names import HYP, NONE, SPH, UNTRAINED
from lib.papers.hyp_vit.retrieval import control, frozen
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings

CODES = np.repeat(np.arange(12), 6)
ROWS = np.arange(len(CODES))
PARTS = Halves(np.array([f"c{code:02d}" for code in CODES]), CODES, ROWS[:36], ROWS[36:], ROWS[36:], 0)
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(72, 8)) + RNG.normal(size=(12, 8))[CODES]).astype(np.float32)
SCHEDULE = ByClass(3, 8, samples=2)
SETTINGS = Settings(nca_images=40)


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "TRAINED", tmp_path_factory.mktemp("trained"))
        yield control.answers(X, PARTS, SETTINGS, 4, SCHEDULE, [1e-3, 1e-2], [1], n_seeds=3)


def test_every_row_says_that_its_encoder_is_untrained_and_has_its_health(asked):
    found, _ = asked
    assert list(found) == [f"{UNTRAINED}{name}" for name in (NONE, HYP, SPH)]
    assert [len(several) for several in found.values()] == [3, 3, 3]
    for name in (HYP, SPH):
        for answer in found[f"{UNTRAINED}{name}"]:
            assert answer.health.steps == SCHEDULE.epochs * SCHEDULE.steps(36) and np.isfinite(answer.health.loss)


def test_its_rates_are_chosen_by_as_many_trainings_as_those_of_the_others():
    arguments = PARTS, SETTINGS, 4, SCHEDULE, [1e-3, 1e-2], [1]
    _, tried = control.answers(X, *arguments, n_choosing=2)
    heads = frozen.heads(SETTINGS, 8, 4, SCHEDULE)[:2]
    chosen = frozen.rates(X, PARTS, heads, [1e-3, 1e-2], n_seeds=2)
    pd.testing.assert_frame_equal(tried, chosen.assign(method=UNTRAINED + chosen["method"]))


def test_its_heads_are_trained_as_those_of_the_pretrained_encoder_are(asked):
    """On the same features the control is the experiment itself, at rates that are chosen in the same way."""
    found, tried = asked
    heads = frozen.heads(SETTINGS, 8, 4, SCHEDULE)[:2]
    chosen = frozen.rates(X, PARTS, heads, [1e-3, 1e-2])
    pd.testing.assert_frame_equal(tried, chosen.assign(method=UNTRAINED + chosen["method"]))
    plain = control.methods(SETTINGS, 8, 4, SCHEDULE)[0]
    several = [replace(plain, name=NONE), *frozen.at_rates(heads, chosen)]
    for name, answers in frozen.answers(X, PARTS, several, [1], n_seeds=3).items():
        for one, other in zip(answers, found[f"{UNTRAINED}{name}"], strict=True):
            pd.testing.assert_frame_equal(one.per_query.values, other.per_query.values)
