"""Curves over τ, α and γ: who is best where, and how wide a plateau is, by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from lib.papers.label_tree import experiment, names, sweeps
from lib.training.label_tree import Objective, Schedule

SCHEDULE = Schedule(epochs=2, batch_size=32, lr=5e-3, hidden=16, dim_out=4)


def best_cells(rows):
    best = sweeps.best(rows, sweeps.OVER_WEIGHTS, with_violations=True)
    return list(best[sweeps.OVER_WEIGHTS].itertuples(index=False, name=None))


def test_each_is_at_its_own_best_temperature():
    """Of two trainings each, whose mean counts."""
    curves = [(names.SUPCON, 0.1, 80), (names.SUPCON, 1.0, 70), (names.BY_COSINE, 0.1, 75), (names.BY_COSINE, 1.0, 85)]
    rows = pd.DataFrame([(*place, hf1 + more) for *place, hf1 in curves for more in (0, 1)])
    rows = rows.set_axis([*sweeps.OVER_TAU, "hf1"], axis=1).assign(violation=10, top1=0, loss=1.0)
    best = sweeps.best(rows, sweeps.OVER_TAU).set_index("method")
    assert best.loc[names.SUPCON, "temperature"] == 0.1 and best.loc[names.BY_COSINE, "temperature"] == 1.0
    assert best.loc[names.BY_COSINE, "hf1"] == pytest.approx(85.5)


def test_sweeps_train_every_cell_on_validation_images_alone(seen):
    (first,) = experiment.by_group(seen, 3, 1, 1, 0)
    inner = experiment.validation(seen, first, 0)
    splits = [inner, replace(inner, seed=7, repeat=1)]
    scores = sweeps.over_temperatures(seen, names.objectives(Objective(), 1.0, 1.0), splits, SCHEDULE, [0.1, 0.5])
    by_tau = sweeps.rows(scores, ["method", "temperature"])
    assert len(by_tau) == 2 * 2 * (len(sweeps.DRAWN) + 1) and set(by_tau["temperature"]) == {0.1, 0.5}
    cells = sweeps.over_weights(seen, Objective(), splits, SCHEDULE, [0.5], [0.0, 1.0], ["printed", "shifted"])
    by_weight = sweeps.rows(cells, ["form", "alpha", "gamma"])
    between = sweeps.rivals(scores, by_tau, cells, by_weight)
    assert set(between["second"]) == {names.SUPCON} and names.BOTH in set(between["first"])
    assert {sweeps.called(cell) for cell in best_cells(by_weight)} < set(between["first"])
    assert by_tau["hf1"].between(0, 100).all() and np.isfinite(by_tau["loss"]).all()
    assert len(by_weight) == 2 * 4 and set(by_weight["steps"]) == {int(by_tau["steps"].max())}


def test_the_best_cell_of_each_form_has_the_highest_hf1_less_violations():
    cells = [("printed", 0.2, 0.2, 80, 21), ("printed", 1.0, 0.2, 83, 25), ("shifted", 0.2, 1.0, 70, 20)]
    rows = pd.DataFrame(cells, columns=[*sweeps.OVER_WEIGHTS, "hf1", "violation"]).assign(top1=0, loss=0)
    assert best_cells(rows) == [("printed", 0.2, 0.2), ("shifted", 0.2, 1.0)]
    worse_seed = rows.assign(hf1=rows["hf1"] - 9 * (rows["alpha"] == 0.2))  # of two trainings the mean counts
    assert best_cells(pd.concat([rows, worse_seed]))[0] == ("printed", 1.0, 0.2)
