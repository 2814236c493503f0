"""What is fitted comes from the training part alone, and equals scikit-learn's scaler, PCA and NCA."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from lib.errors import InputError
from lib.heads import Reduction
from lib.heads.reduction import SOURCES

DIM = 6
every_source = pytest.mark.parametrize("source", SOURCES)
every_fitted_source = pytest.mark.parametrize("source", [source for source in SOURCES if source != "raw"])


def features(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, DIM)) @ rng.normal(size=(DIM, DIM)) + 5).astype(np.float32)


def classes(n: int) -> np.ndarray:
    return np.arange(n) % 3


def fitted(train: np.ndarray, source: str, n: int = DIM, *, half: bool = False, **options) -> Reduction:
    return Reduction.fit(train, classes(len(train)), source, n, half=half, **options)


def scaled(train: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Standard scaling written out, in float64."""
    wide = train.astype(np.float64)
    return (x.astype(np.float64) - wide.mean(0)) / wide.std(0)


def apart(rows: np.ndarray) -> np.ndarray:
    return np.linalg.norm(rows[:, None] - rows[None], axis=-1)


def test_nca_stays_finite_where_a_number_is_the_same_for_all_images_of_a_class():
    """A discriminant analysis would divide by that number's deviation within the classes, which is rounding alone."""
    train = features(0, 30)
    train[:, 0] = np.array([0.1, 0.7, 0.3], dtype=np.float32)[classes(30)]
    for n in (1, 2, DIM):
        assert np.abs(fitted(train, "NCA", n, half=True)(train)).max() < 1000


@every_fitted_source
def test_the_training_part_alone_decides(source):
    """The map is fitted before any other image is seen; each image is mapped by itself."""
    train, test = features(0, 40), features(1, 10)
    reduction = fitted(train, source)
    mapped = reduction(test)
    np.testing.assert_array_equal(mapped, fitted(train, source)(test))
    changed = test.copy()
    changed[1:] *= 1000
    np.testing.assert_allclose(reduction(changed)[0], mapped[0], rtol=1e-5, atol=1e-6)
    assert mapped.dtype == np.float32
    assert np.abs(fitted(test, source)(test) - mapped).max() > 0.1


def test_raw_features_are_what_they_were_whatever_was_trained_on():
    train, test = features(0, 40), features(1, 10)
    np.testing.assert_array_equal(fitted(train, "raw")(test), test)
    np.testing.assert_array_equal(fitted(train, "raw", half=True)(test), test.astype(np.float16))
    with pytest.raises(InputError, match=r"raw\(3\) does not fit .*; choose the length 6"):
        fitted(train, "raw", 3)


@pytest.mark.parametrize("n_train", [40, 7, 4])
@pytest.mark.parametrize("n", [1, 3, DIM])
def test_a_length_is_the_pca_of_that_length(n, n_train):
    """Also where there are hardly more, or fewer, images than numbers; all lengths are prefixes of the longest."""
    if n > n_train:
        pytest.skip("more components than images")
    train, test = features(0, n_train), features(1, 10)
    expected = PCA(n, svd_solver="full").fit(scaled(train, train)).transform(scaled(train, test))
    got, longest = fitted(train, "PCA", n)(test), fitted(train, "PCA", min(DIM, n_train))(test)
    informative = min(n, n_train - 1)  # centred images span one dimension less
    np.testing.assert_allclose(got[:, :informative], expected[:, :informative], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got, longest[:, :n], rtol=1e-6, atol=1e-6)


def test_full_pca_only_rotates():
    """HD-6: distances between scaled features stay as they are, so the [CLS] row and the 384 row should agree."""
    train, test = features(0, 40), features(1, 10)
    before, after = (apart(fitted(train, source)(test)) for source in ("scaled", "PCA"))
    np.testing.assert_allclose(before, after, atol=1e-4)
    assert np.abs(apart(fitted(train, "PCA", 3)(test)) - before).max() > 0.1


@pytest.mark.parametrize("n", [3, DIM])
def test_whitening_gives_unit_variance_and_no_correlation(n):
    train, test = features(0, 40), features(1, 10)
    whitened = fitted(train, "whitened", n)
    np.testing.assert_allclose(np.cov(whitened(train).T), np.eye(n), atol=1e-4)
    expected = PCA(n, svd_solver="full", whiten=True).fit(scaled(train, train)).transform(scaled(train, test))
    np.testing.assert_allclose(whitened(test), expected, rtol=1e-4, atol=1e-5)
    assert np.abs(apart(whitened(test)) - apart(fitted(train, "PCA", n)(test))).max() > 0.1


@pytest.mark.parametrize("n_train", [40, 5])
def test_whitened_components_without_variance_stay_zero(n_train):
    """Two columns that repeat others, or fewer images than numbers: no noise is blown up to unit variance."""
    train, test = features(0, n_train), features(1, 10)
    train[:, 4:], test[:, 4:] = train[:, :2], test[:, :2]
    rank = min(4, n_train - 1)
    longest = min(DIM, n_train)
    reduction = fitted(train, "whitened", longest)
    test[:, 4] += 1  # leaves the plane that the training images span
    assert (reduction(test)[:, rank:] == 0).all()
    np.testing.assert_allclose(reduction(train).std(0, ddof=1)[:rank], np.ones(rank), rtol=1e-4)


@every_source
def test_a_constant_column_takes_no_part(source):
    """Images are as far from each other as without it."""
    train, test = features(0, 40), features(1, 10)
    train[:, 2] = test[:, 2] = 7
    with_it = fitted(train, source)(test)
    without = fitted(np.delete(train, 2, 1), source, DIM - 1)(np.delete(test, 2, 1))
    np.testing.assert_allclose(apart(with_it), apart(without), rtol=1e-4, atol=1e-4)
    if source == "scaled":
        assert (with_it[:, 2] == 0).all()


@every_fitted_source
@pytest.mark.parametrize("least", [5.6e-7, 1e-3])
def test_a_column_that_hardly_varies_counts_as_constant(source, least):
    """Near 0 in all training images but one, as behind a ReLU: another image that has it stays an ordinary one."""
    train, test = features(0, 40), features(1, 10)
    train[:, 2], test[:, 2] = 0, 0
    train[0, 2], test[0, 2] = least, 0.5
    with pytest.warns(
        UserWarning, match=r"^1 of 6 features hardly vary .* number 2: its deviation is .*, the median 2"
    ):
        with_it = fitted(train, source, half=True)(test)
    without = fitted(np.delete(train, 2, 1), source, DIM - 1, half=True)(np.delete(test, 2, 1))
    np.testing.assert_allclose(apart(with_it), apart(without), rtol=1e-2, atol=1e-2)


@pytest.mark.filterwarnings("ignore:invalid value encountered in divide")  # scikit-learn's share of no variance
@every_fitted_source
def test_images_that_are_all_alike_give_zeros(source):
    assert (fitted(np.full((9, DIM), 3.0, dtype=np.float32), source)(np.full((2, DIM), 3.0, np.float32)) == 0).all()


@pytest.mark.parametrize("n", [2, 4, DIM])
def test_nca_is_that_of_scikit_learn(n):
    """On scaled features, whatever start scikit-learn chooses for the length; the images come in a drawn order."""
    train, test, labels = features(0, 60), features(1, 10), classes(60)
    order = np.random.default_rng(3).permutation(60)
    scaler = StandardScaler().fit(train.astype(np.float64))
    nca = NeighborhoodComponentsAnalysis(n, random_state=3)
    nca.fit(scaler.transform(train.astype(np.float64))[order], labels[order])
    expected = nca.transform(scaler.transform(test.astype(np.float64)))
    got = Reduction.fit(train, labels, "NCA", n, half=False, seed=3)(test)
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


def test_nca_alone_looks_at_the_labels():
    train, test = features(0, 40), features(1, 10)
    turned = np.random.default_rng(0).permutation(classes(40))
    for source in SOURCES:
        one, two = (Reduction.fit(train, labels, source, DIM)(test) for labels in (classes(40), turned))
        assert np.array_equal(one, two) == (source != "NCA")


def test_nca_learns_from_a_part_that_the_seed_draws():
    train, test = features(0, 60), features(1, 10)

    def nca(seed: int, nca_images: int) -> np.ndarray:
        return fitted(train, "NCA", 3, seed=seed, nca_images=nca_images)(test)

    np.testing.assert_array_equal(nca(0, 30), nca(0, 30))
    assert np.abs(nca(0, 30) - nca(1, 30)).max() > 1e-2
    assert np.abs(nca(0, 30) - nca(0, 60)).max() > 1e-2
    np.testing.assert_array_equal(nca(0, 60), nca(0, 1000))


@every_source
def test_half_rounds_to_float16_as_numpy_does(source):
    train, test = features(0, 40), features(1, 10)
    exact, half = fitted(train, source)(test), fitted(train, source, half=True)(test)
    assert half.dtype == np.float32
    reduction = fitted(train, source)
    wide = reduction.scaler.transform(test.astype(np.float64)) @ (
        np.eye(DIM) if reduction.matrix is None else reduction.matrix
    )
    np.testing.assert_array_equal(half, wide.astype(np.float16).astype(np.float32))
    assert (half != exact).any()


@pytest.mark.parametrize(
    ("source", "n", "n_train", "way_out"),
    [
        ("PCA", 7, 40, "1 to 6"),
        ("PCA", 5, 4, "1 to 4"),
        ("whitened", 5, 4, "1 to 4"),
        ("NCA", 7, 40, "1 to 6"),
        ("scaled", 5, 40, "6"),
        ("scaled", 7, 40, "6"),
    ],
)
def test_a_length_that_does_not_fit_is_refused_with_the_way_out(source, n, n_train, way_out):
    message = (
        rf"{source}\({n}\) does not fit {n_train} training images with 6 numbers each; choose the length {way_out}$"
    )
    with pytest.raises(InputError, match=message):
        fitted(features(0, n_train), source, n)


@every_source
def test_what_float16_cannot_hold_is_an_error_that_names_it_and_the_way_out(source):
    train, test = features(0, 40), features(1, 10)
    test[7] *= 1e6
    with pytest.raises(InputError, match=r"as large as \d.*e\+0[67], but float16 ends at 65,504: scale .*half=False"):
        fitted(train, source, half=True)(test)
    assert np.isfinite(fitted(train, source)(test)).all()


@every_source
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_no_numbers_are_named(source, bad):
    train, test = features(0, 40), features(1, 10)
    broken = test.copy()
    broken[3, 1] = bad
    with pytest.raises(InputError, match="row 3 of the features holds NaN or infinity"):
        fitted(train, source)(broken)
    with pytest.raises(InputError, match="row 3 of the features"):
        fitted(broken, source, 2)
