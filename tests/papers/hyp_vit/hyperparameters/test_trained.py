"""Which rows are trained end to end, how, and what is compared; the trainings themselves stand in test_datasets."""

from dataclasses import replace

import numpy as np
import pytest
from IPython.display import Markdown

from lib import paths
from lib.errors import InputError
from lib.papers.hyp_vit.hyperparameters import changes, trained
from lib.papers.hyp_vit.names import BEFORE
from lib.papers.hyp_vit.retrieval.end_to_end import EndToEnd
from lib.results.store import Run
from lib.training import finetune
from lib.training.by_class import ByClass
from lib.training.hyp_vit import Settings
from lib.training.photos import Preparation

ONE = changes.default(Settings(), 40, 128, ByClass(6, 12))
ROWS = [
    changes.Change("none", np.nan, ONE),
    changes.Change("c", 1.0, changes.curved(ONE, 1.0)),
    changes.Change("head_dim", 16.0, changes.long(ONE, 16)),
    changes.Change("batch_size", 200.0, changes.batched(ONE, 200 / 900, 6, 100)),
    *changes.room(ONE),
]
PLAN = EndToEnd("small", 128, finetune.Settings(4, 12, 2, 1e-4, 1e-3), Preparation(16, 16))


def test_rows_are_named_by_their_published_values_and_an_unknown_name_is_refused():
    names = ["default", "batch_size=200", "head_dim=16"]
    assert [one.method.name for one in trained.chosen(ROWS, names)] == ["default", "batch of 4", "16 numbers"]
    assert trained.chosen(ROWS, []) == []
    with pytest.raises(InputError, match=r"end_to_end: there is no setting 'head_dim=61': did you mean head_dim=16"):
        trained.chosen(ROWS, ["default", "head_dim=61"])


def test_a_row_is_trained_with_its_length_and_batch_and_all_else_alike():
    default, curved, short, few = (trained.plan_of(one, PLAN) for one in ROWS[:4])
    assert default == curved == PLAN  # another c is another head, not another plan
    assert short == replace(PLAN, dim_out=16)
    assert few == replace(PLAN, settings=replace(PLAN.settings, batch_size=4))


def test_heads_and_encoders_are_compared_with_the_defaults_and_encoders_with_the_untrained():
    assert trained.pairs(ROWS[:2]) == [
        ("c = 1, end to end, head", "default, end to end, head"),
        ("c = 1, end to end, encoder", "default, end to end, encoder"),
        ("default, end to end, encoder", BEFORE),
        ("c = 1, end to end, encoder", BEFORE),
    ]


def test_without_rows_nothing_is_trained_and_nothing_is_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "REPORTS", tmp_path)
    found, course = trained.answers(None, None, [], PLAN, [1])
    run = Run("23_hyp_vit_hyperparameters", "demo", "tissue", "images", "abc", "small")
    shown = [trained.show(run, found, ""), trained.show_tests(run, found, [], None, 1)]
    assert (found, len(course), trained.says(PLAN, [], 3)) == ({}, 0, "")
    assert all(isinstance(one, Markdown) and one.data == trained.NOTHING for one in shown)
    assert not list(tmp_path.rglob("*.*"))


def test_captions_name_network_rates_and_rows():
    text = trained.says(PLAN, ROWS[:2], 3)
    assert "small, 3 trainings each of at most 4 steps at 16 px" in text
    assert "Rate of the encoder 0.0001, of the head 0.001" in text and text.endswith("Trained so: default; c = 1.")
