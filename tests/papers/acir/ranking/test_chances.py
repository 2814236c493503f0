import numpy as np
import pandas as pd
import pytest
from scipy import stats

from lib.papers.acir.ranking import chances


@pytest.mark.parametrize("seed", range(3))
def test_the_test_is_that_of_scipy(seed):
    rng = np.random.default_rng(seed)
    d = rng.normal(0.1, 1, 80).round(1)
    wanted = stats.wilcoxon(d, method="asymptotic").pvalue
    assert chances.wilcoxon(d[None])[0] == pytest.approx(wanted)


def test_no_difference_at_all_is_no_evidence():
    assert chances.wilcoxon(np.zeros((1, 5))).tolist() == [1.0]


def test_rows_that_differ_in_more_than_signs_are_refused():
    with pytest.raises(ValueError, match="signs"):
        chances.wilcoxon(np.array([[1.0, 2.0], [1.0, 3.0]]))


def test_queries_of_one_group_that_agree_make_false_alarms():
    rng, groups = np.random.default_rng(0), np.repeat(np.arange(12), 50)
    together = rng.normal(size=12)[groups] + 0.5 * rng.normal(size=600)
    alone = rng.normal(size=600)
    found = chances.table({"together": pd.Series(together), "alone": pd.Series(alone)}, groups).set_index("comparison")
    assert found["by_query"].between(3, 7).all()
    assert found.loc["together", "by_group"] > 40
    assert 3 < found.loc["alone", "by_group"] < 10
    assert "12 groups" in chances.alarms_sentence(found.reset_index())


def test_trainings_that_differ_by_chance_are_told_apart_by_the_test():
    rng = np.random.default_rng(0)
    rows = [
        {"method": "m", "bits": 8, "ranking": "Hamming alone", "repeat": repeat, "query": query, "ap_min": value}
        for repeat, shift in enumerate((0.0, 0.0, 3.0))
        for query, value in enumerate(shift + rng.normal(size=60))
    ]
    found = chances.between_trainings(pd.DataFrame(rows), 8)
    assert found[["n_pairs", "n_alarms"]].to_numpy().tolist() == [[3, 2]]
    assert chances.trainings_sentence(found).endswith("m 2 of 3")


def test_what_all_groups_share_makes_no_alarm():
    rng, groups = np.random.default_rng(1), np.repeat(np.arange(12), 50)
    assert chances.false_alarms(5 + rng.normal(size=600), groups)["by_group"] < 10


def test_a_query_whose_class_the_archive_does_not_have_is_left_out():
    rng, groups = np.random.default_rng(2), np.repeat(np.arange(12), 10)
    d = pd.Series(rng.normal(size=120))
    holes = d.where(np.arange(120) % 5 > 0)
    found, kept = (chances.table({"d": one}, groups) for one in (holes, holes.dropna()))
    pd.testing.assert_frame_equal(found, kept)
    assert found.notna().all(axis=None)
