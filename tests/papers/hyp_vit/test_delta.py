"""δ by draws is that of the library, copies lose what they are said to lose, and both distances are searched."""

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.decomposition import PCA

from lib.geometry import Euclidean
from lib.geometry.hyperbolicity import hyperbolicity, sampled
from lib.papers.hyp_vit import delta
from lib.training.splits import splits


@pytest.fixture
def random() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def features(random) -> dict[str, np.ndarray]:
    long = random.normal(size=(150, 6)) * [5, 3, 1, 1, 0.5, 0.1]
    return {"long": long.astype(np.float32), "other": random.exponential(size=(150, 4)).astype(np.float32)}


def test_controls_are_as_tree_like_as_is_known(random):
    """A tree has δ = 0; the plane of curvature -1 is ln 2-hyperbolic; great circles are as far as can be."""
    rows = delta.of_controls([2, 64], 150, 3, 0).set_index("control")
    assert rows.loc["random tree", "relative"].max() < 1e-5
    assert rows.loc["sphere, along great circles", "relative"].min() > 0.75
    assert rows.loc["Gaussian cloud, 64 numbers", "relative"].nunique() == 3  # drawn anew in every draw
    for radius in delta.RADII:
        of = hyperbolicity(delta.disk(200, radius, random).double(), base=0)
        assert of.delta <= np.log(2) + 1e-9 and 1.6 * radius < of.diameter <= 2 * radius + 1e-6


def test_copies_keep_columns_or_covariance_and_lose_the_rest(random):
    """Of three numbers the second is the first and noise, the third is far longer."""
    first = random.normal(size=400)
    columns = [first, first + 0.1 * random.normal(size=400), 20 * random.exponential(size=400)]
    x = np.stack(columns, axis=1).astype(np.float32)
    copy = delta.shuffled(x, random)
    assert np.array_equal(np.sort(copy, axis=0), np.sort(x, axis=0))
    assert np.corrcoef(x.T)[0, 1] > 0.9 and abs(np.corrcoef(copy.T)[0, 1]) < 0.2
    copies = np.concatenate([delta.gaussian(x, random) for _ in range(20)])
    np.testing.assert_allclose(np.cov(copies.T), np.cov(x.T), rtol=0.1, atol=0.3)
    np.testing.assert_allclose(copies.mean(axis=0), x.mean(axis=0), atol=0.7)
    x[0] = 0
    norms = np.linalg.norm(delta.unit_length(x, random), axis=1)
    assert norms[0] == 0 and norms[1:] == pytest.approx(1, rel=1e-6)


def test_the_mean_over_draws_is_that_of_the_library(features):
    rows = delta.over_draws(delta.of_features(features, 40, 5, 3), "encoder").set_index("encoder")
    for name, x in features.items():
        wanted, row = sampled(x, Euclidean(), size=40, repeats=5, seed=3), rows.loc[name]
        assert (row["relative"], row["low"], row["high"]) == pytest.approx((wanted.relative, wanted.low, wanted.high))


def test_directions_are_the_participation_ratio(features):
    x = torch.from_numpy(features["long"]).double()
    variances = PCA().fit(x.numpy()).explained_variance_
    directions = delta.directions(Euclidean().pairwise(x, x))
    assert directions == pytest.approx(variances.sum() ** 2 / (variances**2).sum())


def test_every_base_point_stays_within_a_factor_of_two(features):
    rows = delta.bases(features, 15, 2, 0)
    assert len(rows) == 2 * 2 * 15 and rows["share"].between(0.5, 1).all()
    chosen = torch.from_numpy(features["long"][delta.subsets(150, 15, 2, 0)[1]])
    of_draw = rows[(rows["encoder"] == "long") & (rows["draw"] == 1)]
    assert of_draw["relative"].max() == pytest.approx(hyperbolicity(Euclidean().pairwise(chosen, chosen)).relative)


def test_copies_are_compared_draw_by_draw():
    lines = [
        {"encoder": "net", "features": name, "draw": draw, "relative": r, "directions": 5.0 * (name != delta.OWN)}
        for name, values in ((delta.OWN, [0.2, 0.3, 0.4]), ("copy", [0.1, 0.25, 0.25]))
        for draw, r in enumerate(values)
    ]
    (row,) = delta.changes(pd.DataFrame(lines)).itertuples()
    assert (row.own_relative, row.relative, row.own_directions, row.directions) == pytest.approx((0.3, 0.2, 0, 5))
    interval = stats.ttest_1samp([-0.1, -0.05, -0.15], 0).confidence_interval()
    assert (row.difference, row.low, row.high) == pytest.approx((-0.1, interval.low, interval.high))


@pytest.fixture
def labelled() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three classes around centres, in twelve groups of ten images."""
    random = np.random.default_rng(1)
    labels = np.arange(120) % 3
    x = random.normal(size=(120, 5)) + 2.0 * random.normal(size=(3, 5))[labels]
    return x.astype(np.float32) + 7, labels, np.arange(120) // 10


@pytest.mark.parametrize(("relative", "c"), [(0.3, 0.2304), (100.0, 2.0736e-06)])
def test_both_distances_are_searched_and_compared_over_groups(labelled, relative, c):
    """A large relative δ gives a small c: an almost flat ball searches as flat space does."""
    x, labels, groups = labelled
    rows = delta.searched({"x": x}, {"x": relative}, labels, groups, splits(groups % 4, 0), (1, 5), 0)
    assert rows["k"].tolist() == [1, 5] and (rows["n_units"] == 12).all() and (rows["n_tests"] == 2).all()
    assert rows["c"].to_numpy() == pytest.approx(c)
    assert rows["chance"][0] == pytest.approx(100 / 3, abs=1) and (rows["euclidean"] > rows["chance"] + 20).all()
    np.testing.assert_allclose(rows["hyperbolic"] - rows["euclidean"], rows["difference"], atol=1e-9)
    assert c > 0.1 or (rows["difference"].abs().max() < 0.2 and rows["radius"][0] < 1)


def test_the_longest_of_the_gallery_has_the_clipping_radius(labelled, monkeypatch):
    x, labels, groups = labelled
    galleries, evaluate = [], delta.retrieval.evaluate

    def watched(query, gallery, *rest):
        galleries.append((gallery, rest[2]))
        return evaluate(query, gallery, *rest)

    monkeypatch.setattr(delta.retrieval, "evaluate", watched)
    delta.searched({"x": x}, {"x": 0.3}, labels, groups, splits(groups % 4, 0)[:1], (1,), 0)
    (points, ball), (flat, _) = galleries
    assert ball.log0(points).norm(dim=1).max().item() == pytest.approx(delta.CLIP, rel=1e-4)
    np.testing.assert_allclose(flat.mean(dim=0), np.zeros(5), atol=1e-5)
