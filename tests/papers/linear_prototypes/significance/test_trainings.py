"""False alarms: the vectorised p against the library's, and what each test does not see."""

import numpy as np
import pytest
from scipy import stats

from lib.metrics.significance import paired_permutation
from lib.papers.linear_prototypes.significance import figures, trainings


def test_p_is_that_of_the_paired_test():
    gains = np.random.default_rng(0).normal(size=(4, 8, 3)) + np.random.default_rng(1).normal(size=(4, 8, 1))
    found = trainings._p_values(gains)
    groups, repeats = np.indices((8, 3))
    for number, one in enumerate(gains):
        test = paired_permutation(one.ravel(), np.zeros(24), groups.ravel(), repeats.ravel())
        assert found[trainings.OURS][number] == pytest.approx(test.p_value)
        flips = paired_permutation(one.mean(axis=1), np.zeros(8))
        assert found[trainings.FLIPS][number] == pytest.approx(flips.p_value)
        assert found[trainings.TRAININGS][number] == pytest.approx(stats.ttest_1samp(one.mean(axis=0), 0).pvalue)


@pytest.fixture(scope="module")
def rows():
    return trainings.alarms([0, 1, 3], 1000)


def test_each_test_is_blind_for_the_other_side_and_ours_for_neither(rows):
    shares = rows.pivot(index="test", columns="ratio", values="share")
    assert shares.loc[trainings.FLIPS, 0] < 8 and shares.loc[trainings.FLIPS, 3] > 30
    assert shares.loc[trainings.TRAININGS, 0] > 30 and shares.loc[trainings.TRAININGS, 3] < 10
    assert shares.loc[trainings.OURS].max() < 8
    assert ((rows["low"] <= rows["share"]) & (rows["share"] <= rows["high"])).all()


def test_verdicts_and_table_tell_the_worst_case(rows):
    worst = rows[rows["test"] == trainings.FLIPS]["share"].max()
    said = f"{trainings.FLIPS}: at worst {worst:.0f} false alarms of 100 (at a ratio of 3)"
    assert said in trainings.verdicts(rows) and len(trainings.verdicts(rows)) == len(trainings.TESTS)
    shown = trainings.table(rows, 1000)
    assert "| test | ratio 0 | ratio 1 | ratio 3 |" in shown.markdown and f"{worst:.1f} %" in shown.markdown
    assert "1,000 made-up experiments" in shown.caption


def test_the_figure_has_a_line_per_test(rows):
    (axis,) = figures.alarms(rows).axes
    drawn = {bars.get_label(): bars.lines[0].get_ydata().tolist() for bars in axis.containers}
    assert drawn == {name: part["share"].tolist() for name, part in rows.groupby("test")}
