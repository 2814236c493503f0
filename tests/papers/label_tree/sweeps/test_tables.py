"""Curves over τ, α and γ: who is best where, and how wide a plateau is, by hand."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.papers.label_tree import experiment, names
from lib.papers.label_tree.sweeps import figures, tables
from lib.training.label_tree import Objective, Schedule

SCHEDULE = Schedule(epochs=4, batch_size=32, lr=5e-3, hidden=16, dim_out=4)


def curve(method, hf1, violation):
    taus = [0.1, 1.0]
    rows = [
        {"method": method, "temperature": tau, "repeat": r, "hf1": h + r, "violation": v, "top1": h, "loss": 1.0}
        for tau, h, v in zip(taus, hf1, violation, strict=True)
        for r in (0, 1)
    ]
    return pd.DataFrame(rows)


ROWS = pd.concat(
    [
        curve(names.SUPCON, (80, 70), (10, 20)),
        curve(names.OUTSIDE, (80, 70), (10, 20)),
        curve(names.AS_PRINTED, (79, 69), (11, 21)),
        curve(names.AS_TOLD, (81, 71), (9, 19)),
        curve(names.BY_COSINE, (75, 85), (12, 5)),
        curve(names.CONSTANT, (80, 70), (10, 20)),
    ]
)


def test_each_is_at_its_own_best_temperature():
    best = tables.best(ROWS).set_index("method")
    assert best.loc[names.SUPCON, "temperature"] == 0.1 and best.loc[names.BY_COSINE, "temperature"] == 1.0
    assert best.loc[names.BY_COSINE, "hf1"] == pytest.approx(85.5)
    line = next(line for line in tables.best_layout(ROWS).splitlines() if names.BY_COSINE in line)
    assert line == "| HWC, cosine logits | 1 | 85.50 | 5.00 | 85.00 | 75.50 | 12.00 |"


def test_the_claim_of_fig_2_is_counted_at_every_temperature():
    lines = tables.sentences(ROWS)
    assert f"{names.AS_TOLD}: HF1 above SupCon at 2 of 2 τ, fewer violations at 2" in lines[1]
    assert f"{names.AS_PRINTED}: HF1 above SupCon at 0 of 2 τ, fewer violations at 0" in lines[0]
    assert f"{names.OUTSIDE}: HF1 above SupCon at 0 of 2" in lines[3] and "0.00 points at most" in lines[3]


def test_best_is_compared_with_best():
    assert "SupCon: 80.50" in tables.answer(ROWS) and f"{names.BY_COSINE}: 85.50" in tables.answer(ROWS)
    ends = ROWS.assign(temperature=ROWS["temperature"].replace(ROWS["temperature"].max(), 99.0))
    assert "may lie beyond" not in tables.answer(
        pd.concat([ROWS, ROWS.assign(temperature=0.0001, hf1=0.0), ends.assign(hf1=0.0)])
    )
    assert tables.answer(ROWS[ROWS["temperature"] == 1.0]).partition("may lie beyond: ")[2].startswith(names.SUPCON)


def test_supcon_stands_beside_another_figure_where_it_was_trained_there():
    assert tables.beside(ROWS, 1.0) == "SupCon at this τ: HF1 70.5, violations 20.0."
    assert tables.beside(ROWS, 0.3) == ""


def test_a_plateau_is_as_wide_as_its_cells_inside_the_printed_ranges():
    cells = [(0.2, 0.2, 80, 21), (1.0, 0.2, 83, 20), (0.2, 0.0, 10, 1)]
    rows = [
        {"form": "printed", "alpha": a, "gamma": g, "repeat": r, "hf1": h + r, "violation": v - r, "top1": 0}
        for a, g, h, v in cells
        for r in (0, 2)
    ]
    (line,) = tables.plateau(pd.DataFrame(rows))
    assert "HF1 lies within 3.00 points" in line
    p = stats.ttest_ind([80, 82], [83, 85]).pvalue  # of two cells, an analysis of variance is a t-test
    assert f"p = {2 * p:.2g} and 1, corrected for 2 tests: not clear with 2 trainings" in line
    assert line.endswith("fewest violations at α = 1, γ = 0.2")
    steep = pd.DataFrame(rows).assign(hf1=lambda rows: 10 * rows["alpha"] + 0.01 * rows["repeat"])
    assert "tests: cells differ; " in tables.plateau(steep)[0]
    assert "(standard deviation of trainings 1.41 and 1.41)" in line


def test_sweeps_train_every_cell_on_validation_images_alone(seen):
    (first,) = experiment.by_group(seen, 3, 1, 1, 0)
    inner = experiment.validation(seen, first, 0)
    several = [inner, replace(inner, seed=7, repeat=1)]
    found = tables.trained(seen, names.objectives(Objective(), 1.0, 1.0), several, SCHEDULE, [0.1, 0.5])
    by_tau = tables.temperatures(found)
    assert len(by_tau) == 2 * 2 * (len(tables.DRAWN) + 1)
    cells = tables.at_weights(seen, Objective(), several, SCHEDULE, [0.5], [0.0, 1.0], ["printed", "shifted"])
    by_weight = tables.weights(cells)
    between = tables.rivals(found, by_tau, cells, by_weight)
    assert set(between["second"]) == {names.SUPCON} and names.BOTH in set(between["first"])
    assert {tables.called(cell) for cell in tables.best_cells(by_weight)} < set(between["first"])
    own = tables.best(by_tau).set_index("method")["hf1"]
    hf1 = between[between["measure"] == "HF1"].set_index("first")["difference"]
    groups = np.unique(seen.groups[inner.test], return_counts=True)[1]
    if len(set(groups)) == 1:
        assert hf1[names.BOTH] == pytest.approx(own[names.BOTH] - own[names.SUPCON], abs=1e-9)
    assert set(by_tau["method"]) == {*tables.DRAWN, names.CONSTANT} and set(by_tau["temperature"]) == {0.1, 0.5}
    assert by_tau["hf1"].between(0, 100).all() and np.isfinite(by_tau["loss"]).all()
    assert len(by_weight) == 2 * 4 and set(by_weight["steps"]) == {int(by_tau["steps"].max())}
    assert axis_limits(figures.temperatures(by_tau)) == 2  # a line of panels has one scale
    drawn = figures.temperatures(by_tau).axes
    assert len(drawn) == 4 and len(figures.weights(by_weight).axes) == 4
    shown = [[container.get_label() for container in axis.containers] for axis in drawn[:2]]
    assert all(column[0] == names.SUPCON for column in shown)
    assert {name for column in shown for name in column} == {*tables.DRAWN, names.CONSTANT}
    looks = [container.lines[0].get_marker() for container in drawn[0].containers]
    assert len(set(looks)) == len(looks)


def axis_limits(figure):
    """How many different scales the panels have."""
    return len({axis.get_ylim() for axis in figure.axes})


def test_the_best_cell_of_each_form_has_the_highest_hf1_less_violations():
    cells = [("printed", 0.2, 0.2, 80, 21), ("printed", 1.0, 0.2, 83, 25), ("shifted", 0.2, 1.0, 70, 20)]
    columns = ["form", "alpha", "gamma", "hf1", "violation"]
    rows = pd.DataFrame(cells, columns=columns)
    assert tables.best_cells(rows) == [("printed", 0.2, 0.2), ("shifted", 0.2, 1.0)]
    worse_seed = rows.assign(hf1=rows["hf1"] - 9 * (rows["alpha"] == 0.2))  # of two trainings the mean counts
    assert tables.best_cells(pd.concat([rows, worse_seed]))[0] == ("printed", 1.0, 0.2)


def test_whether_sweeps_trained_is_told_by_their_losses():
    rows = pd.DataFrame({"first_loss": [2.0, 4.0, 1.0], "loss": [1.0, 1.0, 1.5], "rim": np.nan, "steps": 40})
    (line,) = tables.health(rows)
    assert line.startswith("the loss fell in 2 of 3 trainings of 40 steps, by 50% at the median")
    assert line.endswith("none, on the sphere there is no rim")
    assert tables.health(rows.assign(rim=[0.0, 2.5, 1.0]))[0].endswith("worst training: 2.5 %")
