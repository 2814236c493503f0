"""Scaling and PCA are fitted on the training part only, and every length is a prefix of one rotation."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lib.errors import InputError
from lib.heads import Reduction


def features(seed: int, n: int, dim: int = 6) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, dim)) @ rng.normal(size=(dim, dim)) + 5).astype(np.float32)


def test_scaling_uses_the_training_part_alone():
    train, test = features(0, 40), features(1, 10)
    scaled = Reduction.fit(train).scale(test)
    expected = (test - train.mean(0)) / train.std(0)
    np.testing.assert_allclose(scaled, expected, rtol=1e-3, atol=1e-4)
    assert scaled.dtype == np.float32


@pytest.mark.parametrize("n", [1, 3, 6])
def test_a_length_is_the_pca_of_that_length(n):
    train, test = features(0, 40), features(1, 10)
    scaled = ((rows - train.mean(0, dtype=np.float64)) / train.std(0, dtype=np.float64) for rows in (train, test))
    fitted, asked = scaled
    expected = PCA(n, svd_solver="full").fit(fitted).transform(asked)
    np.testing.assert_allclose(Reduction.fit(train)(test, n), expected, rtol=1e-4, atol=1e-5)


def test_full_pca_only_rotates_unless_it_whitens():
    """HD-6: distances between scaled features stay as they are, so the [CLS] row and the 384 row should agree."""
    train = features(0, 40)
    plain, whitened = Reduction.fit(train), Reduction.fit(train, whiten=True)
    before, after = plain.scale(train), plain(train, 6)
    np.testing.assert_allclose(
        np.linalg.norm(before[:, None] - before[None], axis=-1),
        np.linalg.norm(after[:, None] - after[None], axis=-1),
        atol=1e-4,
    )
    np.testing.assert_allclose(whitened(train, 6).std(0, ddof=1), np.ones(6), rtol=1e-4)


def test_a_constant_column_stays_finite():
    train = features(0, 20)
    train[:, 2] = 7
    for whiten in (False, True):
        assert np.isfinite(Reduction.fit(train, whiten=whiten)(train, 6)).all()


@pytest.mark.parametrize("n", [0, 7])
def test_too_many_components_are_refused_with_the_way_out(n):
    with pytest.raises(InputError, match=rf"PCA\({n}\).*1 to 6; choose a smaller length"):
        Reduction.fit(features(0, 40))(features(1, 3), n)


def test_few_images_limit_the_length():
    assert Reduction.fit(features(0, 4)).longest == 4
