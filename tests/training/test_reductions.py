"""A reduction is Reduction.fit's to the bit, wherever it comes from; what takes time is fitted once."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from lib.errors import InputError
from lib.heads.reduction import NeighborhoodComponentsAnalysis, Reduction
from lib.training import reductions

RNG = np.random.default_rng(0)
X, TEST = (RNG.normal(size=(n, 12)).astype(np.float32) for n in (60, 20))
LABELS = np.arange(60) % 3


@pytest.fixture
def fits(monkeypatch) -> list[np.ndarray]:
    """The images of every NCA that is fitted."""
    seen, fit = [], NeighborhoodComponentsAnalysis.fit
    monkeypatch.setattr(NeighborhoodComponentsAnalysis, "fit", lambda nca, x, y: seen.append(x) or fit(nca, x, y))
    return seen


@pytest.mark.parametrize("half", [True, False])
def test_an_nca_is_fitted_once_and_equal_to_the_bit(tmp_path, fits, half):
    options = {"half": half, "nca_images": 50, "seed": 3}
    plain = Reduction.fit(X, LABELS, "NCA", 4, **options)
    for calls in (2, 2):
        again = reductions.fit(X, LABELS, "NCA", 4, store=tmp_path, **options)
        assert len(fits) == calls and again.half == half
        assert np.array_equal(again.matrix, plain.matrix) and again.matrix.strides == plain.matrix.strides
        assert np.array_equal(again.scaler.mean_, plain.scaler.mean_)
        assert np.array_equal(again.scaler.scale_, plain.scaler.scale_)
        assert np.array_equal(again(TEST), plain(TEST))


@pytest.mark.parametrize("shape", [(reductions.LONG, 300), (400, reductions.LONG)])
@pytest.mark.parametrize("source", ["PCA", "whitened"])
def test_the_components_of_a_long_feature_are_fitted_once_for_all_lengths(tmp_path, monkeypatch, source, shape):
    """Also where only the labels, or what concerns NCA, differ; bits depend on the layout of the matrix as well."""
    x = np.random.default_rng(1).normal(size=shape).astype(np.float32)
    labels = np.arange(len(x)) % 3
    plain = {n: Reduction.fit(x, labels, source, n) for n in (5, 40, min(shape))}
    fitted, principal = [], PCA.fit
    monkeypatch.setattr(PCA, "fit", lambda pca, x: fitted.append(x) or principal(pca, x))
    for n, expected in plain.items():
        again = reductions.fit(x, (labels + n) % 3, source, n, store=tmp_path, seed=n)
        assert np.array_equal(again.matrix, expected.matrix) and again.matrix.strides == expected.matrix.strides
        assert np.array_equal(again(x[:9]), expected(x[:9]))
    assert len(fitted) == 1
    x[3, 2] += 1
    reductions.fit(x, labels, source, 5, store=tmp_path)
    assert len(fitted) == 2
    with pytest.raises(InputError, match="does not fit"):
        reductions.fit(x, labels, source, min(shape) + 1, store=tmp_path)
