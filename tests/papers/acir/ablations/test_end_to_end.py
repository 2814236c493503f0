"""ACIR and two opponents, each on a frozen stem and with a stem that learns, on images that differ in colour."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from lib.encoders import taps
from lib.encoders.taps import Taps
from lib.papers.acir.ablations import end_to_end, experiment, scores
from lib.results.rates import choose_middle
from lib.training.acir import Design
from lib.training.hashing import Even
from lib.training.splits import Split

ENCODER = "efficientnet_lite0_64px-untrained"
DESIGN = Design(bits=8, narrow=(4, 8), window=4, heads=2, width=8, grid=2)
LABELS = np.arange(24) % 2
SPLIT = Split(0, np.arange(16), np.arange(16, 24), 0)
PLAN = end_to_end.Plan(ENCODER, 64, Even(2, 8), 1e-4)


@pytest.fixture(scope="module")
def seen():
    """Noise; the second class is red."""
    x = np.random.default_rng(0).integers(0, 100, (24, 3, 64, 64))
    x[LABELS == 1, 0] += 140
    return x.astype(np.uint8)


@pytest.fixture(scope="module")
def found(seen):
    stem, (mean, deviation) = taps.stem(ENCODER), taps.scale(ENCODER)
    with torch.inference_mode(), pytest.MonkeyPatch.context() as patch:
        maps = Taps(*(part.half().numpy() for part in stem((torch.tensor(seen) / 255 - mean) / deviation)))
        patch.setattr(end_to_end.taps, "extract", lambda images, encoder: maps)
        patch.setattr(end_to_end.taps, "pixels", lambda images, encoder: seen)
        known = experiment.Material({}, LABELS, np.zeros((24, 3), np.float32), Even(9, 4), workers=1)
        frozen, rows = (
            end_to_end.material(None, known, PLAN),
            [end_to_end.candidates(DESIGN)[place] for place in (0, 1, -1)],
        )
    assert frozen.schedule == PLAN.schedule and frozen.labels is known.labels
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(end_to_end.taps, "pixels", lambda images, encoder: seen)
        rates = {row.name: 0.003 for row in rows}
        return rows, end_to_end.run(None, frozen, PLAN, rows, rates, 0.1, SPLIT, 2)


def test_every_method_is_trained_both_ways_for_the_same_steps(found):
    rows, several = found
    assert [row.name for row in rows] == ["CSQ", "DCH", "ACIR"]
    assert set(several) == {f"{row.name}, {stem}" for row in rows for stem in (end_to_end.FROZEN, end_to_end.WHOLE)}
    table = scores.rows(several)
    assert table.groupby("name")["repeat"].apply(list).map(lambda repeats: repeats == [0, 1]).all()
    assert set(table["steps"]) == {4} and table["loss_last"].notna().all()
    own = table.set_index(["name", "repeat"])
    for row in rows:
        frozen, whole = (own.loc[(f"{row.name}, {stem}", 0)] for stem in (end_to_end.FROZEN, end_to_end.WHOLE))
        assert frozen["parameters"] == whole["parameters"] > 0
        assert frozen["loss_last"] != whole["loss_last"]


def test_the_tests_compare_what_is_there_and_the_table_has_all_rows(found):
    rows, several = found
    tests = scores.tests(several, end_to_end.pairs(rows), np.arange(8) // 2)
    assert len(tests) == 5 and set(tests["n_seeds"]) == {2}
    shown = end_to_end.layout(scores.means(scores.rows(several)))
    assert all(name in shown for name in several) and "chance" in shown


def test_a_network_without_parts_is_the_plain_one_of_table_2():
    plain = replace(DESIGN, pit=False, fusion=False, kan=False)
    assert [row.design == plain for row in end_to_end.candidates(DESIGN)] == [True, True, True, True, False]


def test_the_opponents_are_those_that_patients_set_aside_find_best():
    rows, names = end_to_end.candidates(DESIGN), ["CSQ", "DCH", "QSMIH", "CNN + L_WSC", "ACIR"]
    values = {"CSQ": (50, 61), "DCH": (60, 59), "QSMIH": (40, 41), "CNN + L_WSC": (65, 64), "ACIR": (10, 20)}
    tried = pd.DataFrame([{"name": name, "lr": lr} for name in names for lr in (0.1, 0.2)])
    tried = choose_middle(tried, [[value] for name in names for value in values[name]], by="name")
    assert [row.name for row in end_to_end.strongest(rows, tried)] == ["CSQ", "CNN + L_WSC", "ACIR"]
    assert [row.name for row in end_to_end.strongest(rows, tried, 1)] == ["CNN + L_WSC", "ACIR"]
