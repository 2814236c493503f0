"""The paired test against every sign pattern, by hand, and its interval against a plain bootstrap loop."""

import itertools
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests

from lib.errors import InputError
from lib.metrics import significance
from lib.metrics.significance import corrected, could_show, could_tell, evidence, paired_permutation


def by_enumeration(differences):
    """Share of all sign patterns whose mean is at least as far out, each tail counted and the smaller doubled."""
    observed = np.mean(differences)
    means = [np.mean(signs * differences) for signs in itertools.product([1, -1], repeat=len(differences))]
    upper = sum(mean >= observed - 1e-12 for mean in means) / len(means)
    lower = sum(mean <= observed + 1e-12 for mean in means) / len(means)
    return min(1.0, 2 * min(upper, lower))


@pytest.mark.parametrize("seed", range(2))
def test_small_samples_equal_the_enumeration(seed):
    generator = np.random.default_rng(seed)
    a, b = generator.random(8), generator.random(8) - 0.2
    result = paired_permutation(a, b)
    assert result.p_value == pytest.approx(by_enumeration(a - b), abs=1e-12)
    assert result.p_floor == 2 / 2**8
    assert result.difference == pytest.approx(sum(a - b) / 8, abs=1e-15)
    assert result.n_units == 8 and result.n_seeds == 1 and np.isnan(result.p_seeds)
    expected = stats.ttest_1samp(a - b, 0).confidence_interval()
    assert [result.low, result.high] == pytest.approx([expected.low, expected.high])
    backward = paired_permutation(b, a)
    assert (backward.difference, backward.p_value) == (-result.difference, pytest.approx(result.p_value))


def test_random_patterns_approach_the_exact_value():
    """With 15 units all 32,768 patterns are too many for 2,000 resamples, so patterns are drawn."""
    generator = np.random.default_rng(1)
    a, b = generator.random(15) + 0.12, generator.random(15)
    exact = paired_permutation(a, b, n_resamples=2**15)
    drawn = paired_permutation(a, b, n_resamples=2_000)
    assert exact.p_floor == 2 / 2**15
    assert drawn.p_floor == 2 / 2_001
    assert paired_permutation(a[:11], b[:11], n_resamples=2_000).p_floor == 2 / 2_001  # 2,048 patterns
    assert exact.p_value == pytest.approx(by_enumeration(a - b), abs=1e-12)
    assert drawn.p_value != exact.p_value
    # Twice a proportion near p / 2 of 2,000 draws: four standard errors.
    assert drawn.p_value == pytest.approx(exact.p_value, abs=4 * 2 * np.sqrt(exact.p_value / 2 / 2_000))


@pytest.mark.parametrize("n", [5, 15, 70])
@pytest.mark.parametrize("n_resamples", [64, 1_000, 10_000])
@pytest.mark.parametrize("rounded", [False, True])
def test_sign_flips_are_those_of_scipy_to_the_bit(n, n_resamples, rounded, monkeypatch):
    """Rounded: many means are equal but for rounding. Few are held at a time, and the last are fewer."""
    monkeypatch.setattr(significance, "AT_ONCE", 600)
    units = np.random.default_rng(n).normal(0.1, 1, n)
    units = units.round() / 3 if rounded else units
    found = evidence(units, np.zeros(n), n_resamples=n_resamples, seed=3)
    wanted = stats.permutation_test(
        (units,), np.mean, permutation_type="samples", n_resamples=n_resamples, random_state=np.random.default_rng(3)
    )
    assert found.test.p_value == wanted.pvalue
    np.testing.assert_array_equal(found.null, wanted.null_distribution)


def test_groups_are_averaged_before_the_test():
    """Two patients with one and nine tiles count the same."""
    a = np.array([1.0] + [0.2] * 9 + [0.6, 0.4])
    b = np.zeros(12)
    groups = ["p1"] + ["p2"] * 9 + ["p3"] * 2
    result = paired_permutation(a, b, groups)
    assert result.n_units == 3
    assert result.difference == pytest.approx((1.0 + 0.2 + 0.5) / 3, abs=1e-15)
    assert result.p_value == pytest.approx(by_enumeration(np.array([1.0, 0.2, 0.5])), abs=1e-12)


def test_pairs_with_nan_are_dropped_and_so_is_a_patient_without_pairs():
    a = [0.9, np.nan, 0.8, 0.7, np.nan]
    b = [0.5, 0.1, np.nan, 0.6, 0.3]
    assert paired_permutation(a, b).n_units == 2
    assert paired_permutation(a, b).difference == pytest.approx((0.4 + 0.1) / 2)
    grouped = paired_permutation(a, b, groups=[1, 1, 1, 2, 3])
    assert grouped.n_units == 2
    assert grouped.difference == pytest.approx((0.4 + 0.1) / 2)


def several(units: np.ndarray, seeds: np.ndarray) -> tuple:
    """Differences unit + seed of every unit, two tiles each, with every seed; arguments of the test."""
    grid = (units[:, None] + seeds).repeat(2, axis=0)
    groups = np.broadcast_to(np.arange(len(units)).repeat(2)[:, None], grid.shape)
    repeats = np.broadcast_to(np.arange(len(seeds)), grid.shape)
    return grid.ravel(), np.zeros(grid.size), groups.ravel(), repeats.ravel()


def test_a_difference_has_to_hold_for_other_seeds_too():
    """Ten patients gain 1, and trainings add anything from -3 to 3: the patients agree, the trainings do not."""
    units, seeds = 1 + np.linspace(-0.1, 0.1, 10), np.array([-3.0, -1.5, 0.0, 1.5, 3.0])
    alone, result = paired_permutation(units, np.zeros(10)), paired_permutation(*several(units, seeds))
    assert result.difference == pytest.approx(alone.difference) and result.n_units == alone.n_units == 10
    assert alone.p_value == alone.p_floor < 0.05
    parts = units.var(ddof=1) / 10, seeds.var(ddof=1) / 5
    freedom = sum(parts) ** 2 / (parts[0] ** 2 / 9 + parts[1] ** 2 / 4)
    assert result.p_value == result.p_seeds == pytest.approx(2 * stats.t.sf(1 / sum(parts) ** 0.5, freedom))
    assert result.p_value > 0.3
    assert result.n_seeds == 5 and result.low < 0 < alone.low
    assert (result.high - result.low) / 2 == pytest.approx(stats.t.ppf(0.975, freedom) * sum(parts) ** 0.5)


@pytest.mark.parametrize("units", [[0.1, 0.2, 0.3, 0.3, 0.5], [0.1, 0.1, 0.1, 0.1, 0.2, 6.0]])
def test_trainings_that_agree_leave_the_groups_to_decide(units):
    """Of five groups that all gain the flips reject at 1/16 at most; of six, one of them far out, the t-test less."""
    result = paired_permutation(*several(np.array(units), 1e-4 * np.arange(-2, 3)))
    flips, by_t = by_enumeration(np.array(units)), stats.ttest_1samp(units, 0).pvalue
    assert (flips > by_t) == (len(units) == 5)
    assert result.p_value == pytest.approx(max(flips, by_t), abs=1e-4)
    assert result.p_seeds == pytest.approx(by_t, abs=1e-4)


def test_ten_equal_groups_and_seeds_are_found_different_in_5_of_100():
    """Groups and trainings add the same error, which is where a test over either alone errs most (notebook 42)."""
    generator = np.random.default_rng(8)
    found = [
        paired_permutation(*several(generator.normal(size=10), generator.normal(0, 0.5**0.5, 5))) for _ in range(200)
    ]
    assert np.mean([one.p_value <= 0.05 for one in found]) < 0.08
    assert np.mean([one.low <= 0 <= one.high for one in found]) > 0.92


def test_trainings_that_change_nothing_are_not_tested():
    result = paired_permutation(*several(np.arange(1.0, 9.0), np.zeros(5)))
    assert np.isnan(result.p_seeds) and result.p_value == result.p_floor
    assert (result.low, result.high) == pytest.approx(
        tuple(stats.ttest_1samp(np.arange(1.0, 9.0), 0).confidence_interval())
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        (([1, 2], [1, 2, 3]), r"\(2,\), \(3,\)"),
        (([1, 2], [1, 2], ["p"]), r"\(1,\)"),
        (([1, 2], [1, 2], None, [0]), r"\(1,\)"),
        (([[1, 2]], [[1, 2]]), r"\(1, 2\)"),
        (([1, 2], [1, 2], ["p", None]), "row 1 has no group"),
        (([1, 2, 3], [0, 0, 0], ["p", "p", "q"], [0, 1, 0]), "group q has no value in some of the 2 trainings"),
    ],
)
def test_broken_input_is_named(arguments, message):
    with pytest.raises(InputError, match=message):
        paired_permutation(*arguments)


@pytest.mark.parametrize(
    "arguments, difference, n_units",
    [(([1, np.nan], [0, 0]), 1, 1), (([1, 2], [0, 0], ["p", "p"]), 1.5, 1), (([np.nan], [0]), np.nan, 0)],
)
def test_fewer_than_two_units_have_a_difference_and_no_test(arguments, difference, n_units):
    found = evidence(*arguments)
    assert paired_permutation(*arguments).n_units == found.test.n_units == n_units
    np.testing.assert_equal(found.test.difference, difference)
    assert found.test.p_floor == 1 and len(found.null) == len(found.bootstrap) == 0
    assert np.isnan([found.test.p_value, found.test.low, found.test.high, found.wilcoxon_p, found.effect_size]).all()


def test_the_null_interval_is_around_zero_and_the_confidence_interval_around_the_gain():
    """LP-5, with the numbers of the erratum: 116 queries, a gain of 0.15, differences that spread by 0.3."""
    generator = np.random.default_rng(3)
    gain = generator.normal(0.15, 0.3, size=116)
    found = evidence(gain, np.zeros(116))
    assert found.null_low < 0 < found.null_high < found.test.difference
    assert found.test.low < found.test.difference < found.test.high
    standard_error = gain.std(ddof=1) / np.sqrt(116)
    assert found.test.low == pytest.approx(gain.mean() - 1.96 * standard_error, abs=0.2 * standard_error)
    # Flipped signs keep the squares, so the null is a little wider than the standard error.
    assert found.null_high == pytest.approx(1.96 * np.sqrt((gain**2).mean() / 116), abs=0.2 * standard_error)
    assert found.null.shape == found.bootstrap.shape == (10_000,)


def test_ranks_and_effect_size_by_hand():
    found = evidence([3.0, 2.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0])  # differences 3, 2, -1, 0
    assert found.effect_size == pytest.approx(1.0 / np.sqrt((4 + 1 + 4 + 1) / 3))
    assert found.rank_biserial == pytest.approx((3 + 2 - 1) / 6)
    assert found.skewness == pytest.approx(0)  # around their mean: 2, 1, -2, -1
    assert evidence([0, 0, 3], np.zeros(3)).skewness == pytest.approx(2 / 2**1.5)  # -1, -1, 2
    # Ranks 1, 2, 3: of the eight patterns of signs, those with W- <= 1 or W+ <= 1 are four.
    assert found.wilcoxon_p == pytest.approx(4 / 8)
    alike = evidence(np.full(3, 0.1) + 0.2, np.full(3, 0.2))  # equal but for rounding
    assert np.isnan([alike.effect_size, alike.skewness]).all()
    equal = evidence(np.ones(6), np.ones(6))
    assert (equal.test.difference, equal.test.p_value, equal.test.low, equal.test.high) == (0, 1, 0, 0)
    assert np.isnan([equal.wilcoxon_p, equal.effect_size, equal.rank_biserial]).all()


def test_correction_equals_that_of_statsmodels_to_the_bit_and_skips_what_is_missing():
    p = np.random.default_rng(0).uniform(0, 0.2, 200).round(2)  # some alike
    assert corrected(p).tolist() == multipletests(p, method="holm")[1].tolist()
    np.testing.assert_array_equal(corrected([0.2, np.nan, 0.001]), [0.2, np.nan, 0.002])
    assert np.isnan(corrected([np.nan, np.nan])).all()


def test_what_a_test_could_have_shown_by_hand():
    """Ten patients, error 1/√10 of a deviation of 1, 9 degrees of freedom: by the table t(0.995) = 3.250 of 5 tests."""
    units = np.array([1.0, -1.0] * 5) * np.sqrt(9 / 10)
    test = SimpleNamespace(**vars(paired_permutation(units, np.zeros(10))), n_tests=5)
    assert test.freedom == 9 and could_show(test) == pytest.approx(3.250 / np.sqrt(10), rel=1e-4)
    del test.freedom  # as a csv of an earlier version
    assert could_show(test) == pytest.approx(3.250 / np.sqrt(10), rel=1e-4)


@pytest.mark.parametrize(("n_seeds", "n_tests"), [(1, 1), (1, 24), (5, 24)])
def test_what_could_have_been_shown_is_where_p_becomes_clear(n_seeds, n_tests):
    """A difference just above it has a p of Student's t that n_tests leave at 5 %, and one just below has not."""
    draw = np.random.default_rng(n_seeds)
    units, seeds = draw.normal(size=12), draw.normal(size=n_seeds)
    units, seeds = units - units.mean(), seeds - seeds.mean()
    least = could_show(SimpleNamespace(**vars(paired_permutation(*several(units, seeds))), n_tests=n_tests))
    for size, clear in ((1.001, True), (0.999, False)):
        for sign in (-1, 1):
            moved = paired_permutation(*several(units + sign * size * least, seeds))
            error = (moved.high - moved.low) / 2 / stats.t.ppf(0.975, moved.freedom)
            p = 2 * stats.t.sf(abs(moved.difference) / error, moved.freedom)
            assert (p * n_tests <= 0.05) == clear
            assert n_seeds == 1 or moved.p_seeds == pytest.approx(p)


def test_few_groups_and_many_tests_could_show_nothing():
    """Six groups have a p of at least 1/32: enough for one test, not for two. A frame is answered row by row."""
    test = vars(paired_permutation(np.arange(6.0), np.zeros(6)))
    rows = pd.DataFrame([test | {"n_tests": n} for n in (1, 2)])
    assert could_tell(rows).tolist() == [True, False]
    assert np.isfinite(could_show(rows)).tolist() == [True, False]
    assert could_show(SimpleNamespace(**vars(paired_permutation([1], [0])), n_tests=0)) == np.inf
    alike = SimpleNamespace(**vars(paired_permutation(np.ones(9), np.ones(9))), n_tests=1)
    assert np.isnan(could_show(alike)), "differences without any spread tell no error"
