"""Two methods are paired over groups, or over classes, and only where both answered the same queries."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.study import differences


def test_shares_are_tested_in_points_over_groups_or_over_classes():
    a, b = np.array([1.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.0, 0.0, 0.0])
    units, classes = np.array(["p", "p", "q", "r"]), np.array(["rare", "common", "common", "common"])
    assert differences.of_shares(a, b, units)["difference"] == pytest.approx(100 * 2 / 3)
    by_class = differences.of_shares(a, b, units, classes=classes)
    assert by_class["difference"] == pytest.approx(100 * (1 + 2 / 3) / 2) and by_class["n_units"] == 3


def test_a_rare_class_counts_as_much_as_a_frequent_one():
    """By a loop: the mean over classes of the mean over a class's queries, whoever they are of."""
    draw = np.random.default_rng(0)
    units, classes = draw.integers(0, 12, 400), draw.choice(["common", "rare"], 400, p=[0.9, 0.1])
    repeats, values = np.repeat([0, 1], 200), draw.normal(size=400)
    units[:200], classes[:200] = units[200:], classes[200:]
    values[[3, 203]] = np.nan
    shares, of_unit, of_repeat = differences.of_classes(values, classes, units, repeats)
    for repeat in (0, 1):
        per_class = []
        for name in ("common", "rare"):
            here = (repeats == repeat) & (classes == name) & ~np.isnan(values)
            per_class.append(values[here].mean())
        assert shares[of_repeat == repeat].mean() == pytest.approx(np.mean(per_class))
        assert list(of_unit[of_repeat == repeat]) == sorted(set(units))


def test_answers_to_other_queries_are_refused():
    with pytest.raises(InputError, match="one method has 2 values, the other 3"):
        differences.of_shares(np.ones(2), np.ones(3), np.array(["p", "q"]), classes=np.zeros(2))
