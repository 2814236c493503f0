"""Each interval against the library or a slow loop, and the simulation where the answer is known."""

import numpy as np
import pytest
from scipy import stats

from lib.metrics.significance import paired_permutation
from lib.papers.linear_prototypes import intervals

X = np.random.default_rng(0).exponential(size=(3, 12))


def limits(name: str, x: np.ndarray) -> np.ndarray:
    return np.column_stack(intervals.FORMS[name](x, np.random.default_rng(1)))


@pytest.fixture
def many(monkeypatch):
    """So many resamples that two draws of them agree."""
    monkeypatch.setattr(intervals, "RESAMPLES", 39_999)


def test_student_is_what_paired_tests_print():
    for x, found in zip(X, limits("Student's t", X), strict=True):
        test = paired_permutation(x, np.zeros_like(x))
        assert found == pytest.approx([test.low, test.high])


@pytest.mark.parametrize("name, method", [("percentile bootstrap", "percentile"), ("BCa bootstrap", "BCa")])
def test_the_bootstraps_equal_scipys(name, method, many):
    for x, found in zip(X, limits(name, X), strict=True):
        one = {"method": method, "n_resamples": 40_000, "random_state": np.random.default_rng(3)}
        expected = stats.bootstrap((x,), np.mean, **one).confidence_interval
        assert found == pytest.approx([expected.low, expected.high], abs=0.03 * x.std())


def test_the_studentised_bootstrap_equals_a_loop(many):
    for x, found in zip(X, limits("studentised bootstrap", X), strict=True):
        draws = np.random.default_rng(2).choice(x, (40_000, 12))
        t = (draws.mean(1) - x.mean()) / (draws.std(1, ddof=1) / 12**0.5)
        expected = x.mean() - np.quantile(t, [0.975, 0.025]) * x.std(ddof=1) / 12**0.5
        assert found == pytest.approx(expected, abs=0.1 * x.std())


@pytest.mark.parametrize("n", [6, 9])
def test_permutation_limits_are_where_the_sign_flips_begin_to_reject(n):
    x = np.random.default_rng(n).normal(1, 1, n)
    ((low, high),) = limits("permutation limits", x[None])
    step = 1e-6
    for inside, outside in ((low + step, low - step), (high - step, high + step)):
        assert paired_permutation(x, np.full(n, inside)).p_value > 0.05
        assert paired_permutation(x, np.full(n, outside)).p_value <= 0.05


def test_three_groups_have_no_permutation_and_no_studentised_limits():
    for name in ("permutation limits", "studentised bootstrap"):
        assert np.isinf(limits(name, X[:, :3])).all()
    assert np.isinf(limits("permutation limits", X[:, :5])).all()
    assert np.isfinite(limits("permutation limits", X[:, :6])).all()


def test_students_interval_holds_95_of_100_normal_means_and_a_bootstrap_of_three_does_not():
    forms = {name: intervals.FORMS[name] for name in ("Student's t", "percentile bootstrap", "permutation limits")}
    rows = intervals.coverage(forms, {"normal": intervals.normal}, [3], 2000, seed=6).set_index("interval")
    student, bootstrap = rows.loc["Student's t"], rows.loc["percentile bootstrap"]
    assert student["low"] <= 95 <= student["high"] and student["low"] < student["share"] < student["high"]
    assert bootstrap["share"] < 80
    # The median of s from three is √(2 ln 2 / 2): s² has an exponential distribution.
    assert student["width"] == pytest.approx(2 * stats.t.ppf(0.975, 2) * np.sqrt(np.log(2) / 3), rel=0.05)
    assert rows.loc["permutation limits", ["share", "low", "high", "width"]].isna().all()
    forms = {"t": intervals.student, "null": intervals.null}  # the range of the null does not hold a true gain
    rows = intervals.coverage(forms, {"skewed": intervals.skewed}, [93], 1000, gain=0.5).set_index("interval")
    assert rows.loc["t", "share"] > 90 and rows.loc["null", "share"] < 5


def test_p_is_that_of_the_paired_test():
    gains = np.random.default_rng(0).normal(size=(4, 8, 3)) + np.random.default_rng(1).normal(size=(4, 8, 1))
    found = intervals._p_values(gains)
    groups, repeats = np.indices((8, 3))
    for number, one in enumerate(gains):
        test = paired_permutation(one.ravel(), np.zeros(24), groups.ravel(), repeats.ravel())
        assert found[intervals.OURS][number] == pytest.approx(test.p_value)
        flips = paired_permutation(one.mean(axis=1), np.zeros(8))
        assert found[intervals.FLIPS][number] == pytest.approx(flips.p_value)
        assert found[intervals.TRAININGS][number] == pytest.approx(stats.ttest_1samp(one.mean(axis=0), 0).pvalue)


def test_each_test_is_blind_for_the_other_side_and_ours_for_neither():
    rows = intervals.alarms([0, 3], 1000)
    shares = rows.pivot(index="test", columns="ratio", values="share")
    assert shares.loc[intervals.FLIPS, 0] < 8 and shares.loc[intervals.FLIPS, 3] > 30
    assert shares.loc[intervals.TRAININGS, 0] > 30 and shares.loc[intervals.TRAININGS, 3] < 10
    assert shares.loc[intervals.OURS].max() < 8
