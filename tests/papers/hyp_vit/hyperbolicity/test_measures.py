"""δ by draws is that of the library, comparisons are on the same draws, and both distances are searched."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.decomposition import PCA

from lib.geometry import Euclidean
from lib.geometry.hyperbolicity import hyperbolicity, sampled
from lib.papers.hyp_vit.hyperbolicity import controls, measures
from lib.training.splits import splits


@pytest.fixture(scope="module")
def features() -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    one = random.normal(size=(150, 6)) * [5, 3, 1, 1, 0.5, 0.1]
    return {"one": one.astype(np.float32), "other": random.exponential(size=(150, 4)).astype(np.float32)}


def test_the_mean_over_draws_is_that_of_the_library(features):
    rows = measures.over_draws(measures.of_features(features, 40, 5, 3), "encoder").set_index("encoder")
    for name, x in features.items():
        found = sampled(x, Euclidean(), size=40, repeats=5, seed=3)
        row = rows.loc[name]
        assert (row["relative"], row["low"], row["high"]) == pytest.approx((found.relative, found.low, found.high))
        assert row["n_draws"] == 5


def test_all_encoders_and_copies_see_the_same_draws(features):
    twice = {"one": features["one"], "again": 3 * features["one"]}
    rows = measures.of_features(twice, 40, 4, 0)
    wide = rows.pivot(index="draw", columns="encoder", values="relative")
    np.testing.assert_allclose(wide["one"], wide["again"], rtol=1e-5)  # relative δ has no unit
    assert wide["one"].nunique() == 4
    same = measures.of_features(features, 40, 4, 0)
    pd.testing.assert_frame_equal(
        same[same["encoder"] == "one"][["relative"]], rows[rows["encoder"] == "one"][["relative"]]
    )


def test_directions_are_the_participation_ratio(features):
    x = torch.from_numpy(features["one"]).double()
    variances = PCA().fit(x.numpy()).explained_variance_
    found = measures.directions(Euclidean().pairwise(x, x))
    assert found == pytest.approx(variances.sum() ** 2 / (variances**2).sum())
    line = torch.linspace(0, 1, 9, dtype=torch.float64)[:, None]
    assert measures.directions(Euclidean().pairwise(line, line)) == pytest.approx(1)


def test_controls_are_drawn_anew_in_every_draw_and_follow_the_seed():
    rows = measures.of_controls([2, 64], 40, 3, 0)
    clouds = rows[rows["control"] == "Gaussian cloud, 64 numbers"]["relative"]
    assert clouds.nunique() == 3
    pd.testing.assert_frame_equal(rows, measures.of_controls([2, 64], 40, 3, 0))
    assert rows.loc[rows["control"] == "random tree", "relative"].max() < 1e-5


def test_every_base_point_stays_within_the_bound(features):
    rows = measures.bases(features, 15, 2, 0)
    assert len(rows) == 2 * 2 * 15
    assert rows["share"].between(0.5, 1).all()
    chosen = torch.from_numpy(features["one"][measures.subsets(150, 15, 2, 0)[1]])
    whole = hyperbolicity(Euclidean().pairwise(chosen, chosen)).relative
    of_draw = rows[(rows["encoder"] == "one") & (rows["draw"] == 1)]
    assert of_draw["relative"].max() == pytest.approx(whole)


def test_changes_are_paired_by_draw():
    lines = [
        {"encoder": "one", "features": name, "draw": draw, "relative": r, "directions": 5.0 * (name != measures.OWN)}
        for name, values in ((measures.OWN, [0.2, 0.3, 0.4]), ("copy", [0.1, 0.25, 0.25]))
        for draw, r in enumerate(values)
    ]
    (row,) = measures.changes(pd.DataFrame(lines)).itertuples()
    assert (row.encoder, row.features, row.n_draws) == ("one", "copy", 3)
    assert (row.own_relative, row.relative, row.own_directions, row.directions) == pytest.approx((0.3, 0.2, 0, 5))
    interval = stats.ttest_1samp([-0.1, -0.05, -0.15], 0).confidence_interval()
    assert (row.difference, row.low, row.high) == pytest.approx((-0.1, interval.low, interval.high))


def test_independent_numbers_make_a_star():
    """Features of one direction and many numbers: shuffled, they have many directions and a low δ."""
    random = np.random.default_rng(0)
    x = (random.normal(size=(200, 1)) + 0.1 * random.normal(size=(200, 400))).astype(np.float32)
    found = measures.of_features({"x": x}, 100, 3, 0, controls.shuffled)
    assert (found["directions"] > 50).all() and (found["relative"] < 0.2).all()
    assert (measures.of_features({"x": x}, 100, 3, 0)["directions"] < 1.1).all()


@pytest.fixture(scope="module")
def labelled() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three classes around centres, in twelve groups of ten images."""
    random = np.random.default_rng(1)
    labels = np.arange(120) % 3
    x = random.normal(size=(120, 5)) + 2.0 * random.normal(size=(3, 5))[labels]
    return x.astype(np.float32) + 7, labels, np.arange(120) // 10


def test_both_distances_are_searched_and_compared_over_groups(labelled):
    x, labels, groups = labelled
    where = splits(groups % 4, 0)
    rows = measures.searched({"x": x}, {"x": 0.3}, labels, groups, where, (1, 5), 0)
    assert rows["k"].tolist() == [1, 5] and (rows["n_units"] == 12).all() and (rows["n_tests"] == 2).all()
    assert (rows["c"] == measures.curvature(0.3)).all()
    assert rows["chance"][0] == pytest.approx(100 / 3, abs=1) and (rows["euclidean"] > rows["chance"] + 20).all()
    np.testing.assert_allclose(rows["hyperbolic"] - rows["euclidean"], rows["difference"], atol=1e-9)


def test_an_almost_flat_ball_searches_as_flat_space_does(labelled):
    """A large relative δ gives a small c, and the shorter the features against the rim, the flatter the ball."""
    x, labels, groups = labelled
    rows = measures.searched({"x": x}, {"x": 100.0}, labels, groups, splits(groups % 4, 0), (5,), 0)
    assert abs(rows["difference"][0]) < 0.2 and rows["radius"][0] < 1


def test_the_longest_of_the_gallery_has_the_clipping_radius(labelled, monkeypatch):
    x, labels, groups = labelled
    seen = []
    evaluate = measures.retrieval.evaluate

    def watched(query, gallery, *rest):
        seen.append((gallery, rest[2]))
        return evaluate(query, gallery, *rest)

    monkeypatch.setattr(measures.retrieval, "evaluate", watched)
    measures.searched({"x": x}, {"x": 0.3}, labels, groups, splits(groups % 4, 0)[:1], (1,), 0)
    (points, ball), (flat, _) = seen
    assert ball.log0(points).norm(dim=1).max().item() == pytest.approx(measures.CLIP, rel=1e-4)
    np.testing.assert_allclose(flat.mean(dim=0), np.zeros(5), atol=1e-5)
