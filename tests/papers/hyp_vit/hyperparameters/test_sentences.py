"""Sentences from rows and tests that are written by hand."""

import pandas as pd

from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.hyperparameters import changes, sentences
from lib.papers.hyp_vit.hyperparameters.trained import NOTHING


def test_what_came_out_names_best_and_worst(rows):
    none = pd.DataFrame(columns=["second", "first"])
    ends, rates, note = sentences.came_out(none, rows, 1)
    assert "default 70.00" in ends and "from -20.00 (16 numbers) to +1.50 points (batch of 4)" in ends
    assert rates.endswith("default's 0.001, and so different in more than one thing: batch of 4 (rate 0.0003)")
    assert note == verdicts.NOTE
    assert sentences.other_rates(rows.head(3)).endswith("more than one thing: none")


def test_both_searches_are_told_and_what_the_temperature_does_alone(rows):
    _, alike, other = sentences.searched(rows)
    assert alike == "Recall@1 is the same by D_hyp and by D_cos: default; 16 numbers; batch of 4; r = 1.15"
    assert other == "c = 1: 60.00 by D_hyp, 65.00 by D_cos; 100.0 % of the points clipped"
    room = pd.concat([rows, rows.tail(1).assign(method=changes.SAME_ROOM, hyp=58.0)])
    assert sentences.searched(room)[-1] == (
        "points of difference from the default: c = 1: -10.00 (room and temperature changed); c = 1, same √c·r: "
        "-12.00 (the temperature alone)"
    )


def test_the_default_is_laid_beside_the_head_of_notebook_22(rows):
    assert sentences.default(rows) == [
        "notebook 23, the default row: batches of 12, 30 steps at rate 0.001, Recall@1 70.00"
    ]
    table_2 = pd.DataFrame({"method": ["no head", "Hyp", "Hyp"], "k": [1, 2, 1], "ours": [60.0, 80.0, 71.5]})
    assert sentences.of_retrieval(table_2.assign(steps=375)) == [
        "notebook 22, Hyp on the frozen encoder: 375 steps, Recall@1 71.50"
    ]


def test_what_a_setting_does_to_a_trained_encoder_stands_beside_what_the_paper_prints(rows):
    assert sentences.moved(rows) == [
        "c = 1, end to end, minus the default: head -12.00 (published -3.4), encoder -8.00 (published -2.4); head on "
        "frozen -10.00"
    ]
    assert sentences.end_to_end(rows, {}, pd.DataFrame()) == [NOTHING]


def test_what_to_take_away_counts_the_clear_differences_of_each_change():
    one = {"second": "default", "p_value": 0.001, "p_floor": 0.0002, "n_units": 20, "n_tests": 4}
    lines = [
        ("length", "16 numbers", -17.4, 0.004),
        ("length", "64 numbers", -3.2, 0.8),
        ("batch", "batch of 4", 2, 0.03),
    ]
    tests = pd.DataFrame(
        [
            one | {"changed": changed, "first": first, "difference": difference, "p_holm": p}
            for changed, first, difference, p in lines
        ]
    )
    assert sentences.take_away(tests) == [
        "length, of 2 tests: clearly worse 1 (16 numbers -17.40), clearly better 0",
        "batch, of 1 test: clearly worse 0, clearly better 1 (batch of 4 +2.00)",
    ]
