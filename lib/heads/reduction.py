"""What happens to a feature before a head sees it: standard scaling, then PCA or NCA (Hyper-DINO, section 2.1)."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from lib import checks
from lib.errors import InputError
from lib.heads.scaling import widths

SOURCES = ("raw", "scaled", "PCA", "whitened", "NCA")


@dataclass(frozen=True)
class Reduction:
    """A scaler and a linear map, fitted on the training part.

    A PCA that keeps all components and does not whiten only rotates the scaled features (HD-6), so that whitening is
    a source of its own; the paper does not mention it.
    """

    scaler: StandardScaler
    matrix: np.ndarray | None  # (dim, n) float64, applied to the scaled features
    half: bool

    @classmethod
    def fit(
        cls,
        train: np.ndarray,
        labels: np.ndarray,
        source: str,
        n: int,
        *,
        half: bool = True,
        nca_images: int = 2000,
        seed: int = 0,
    ) -> "Reduction":
        """Fit on training features ``train: (rows, dim)`` with ``labels: (rows,)``, which NCA alone looks at.

        Args:
            train, labels: the training part; a column that is constant there, or nearly so, is left at about 0
                (:mod:`lib.heads.scaling`), unless features are raw.
            source: ``"raw"``, features as they are, or ``"scaled"``, Hyper-DINO's [CLS] (``n`` is ``dim`` for both);
                ``"PCA"``, ``"whitened"`` or ``"NCA"``.
            n: length of what comes out. The principal components of all lengths are prefixes of one rotation.
            half: round to float16, as section 2.1 does with these features.
            nca_images: NCA takes time and memory with the square of the number of images; of more training images
                than this a random part is drawn.
            seed: of that part and of NCA's start.

        Raises:
            InputError: if ``n`` does not fit, for an unknown source, a value without meaning, and features that hold
                NaN or infinity.
        """
        if source not in SOURCES:
            raise InputError(f"features come as {', '.join(SOURCES)}; not as {source!r}")
        checks.values(half=half, nca_images=nca_images, seed=seed)
        checks.whole("n", n)
        _finite(train)
        whole = source in ("raw", "scaled")
        longest = train.shape[1] if whole or source == "NCA" else min(train.shape)
        if n > longest or (whole and n != longest):
            allowed = longest if whole else f"1 to {longest}"
            raise InputError(
                f"{source}({n}) does not fit {train.shape[0]} training images with {train.shape[1]} numbers each; "
                f"choose the length {allowed}"
            )
        wide = train.astype(np.float64)
        scaler = StandardScaler(with_mean=False, with_std=False).fit(wide) if source == "raw" else standard(wide)
        scaled = scaler.transform(wide)
        if source == "NCA":
            part = np.random.default_rng(seed).permutation(len(scaled))[:nca_images]
            start = _nca_start(scaled[part], labels[part], n)
            nca = NeighborhoodComponentsAnalysis(n, init=start, random_state=seed).fit(scaled[part], labels[part])
            return cls(scaler, nca.components_.T, half)
        return cls(scaler, None if whole else _components(scaled, n, source == "whitened"), half)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Reduced features (rows, n) float32 of features ``x: (rows, dim)``; rounded to float16 first if ``half``.

        Raises InputError for NaN and infinity, and where a reduced feature is too large for float16 or float32.
        """
        _finite(x)
        scaled = self.scaler.transform(x.astype(np.float64))
        reduced = scaled if self.matrix is None else scaled @ self.matrix
        largest = float(np.abs(reduced).max(initial=0))
        way_out = "scale the features, which are unlike the training images' there"
        way_out += ", or keep float32 (half=False)" if self.half else ""
        checks.fits("reduced features", largest, 16 if self.half else 32, way_out)
        return reduced.astype(np.float16 if self.half else np.float32).astype(np.float32)


def standard(train: np.ndarray) -> StandardScaler:
    """The scaler of training features ``train: (rows, dim)``, with the :func:`~lib.heads.scaling.widths` of columns."""
    scaler = StandardScaler().fit(train)
    deviation = np.sqrt(scaler.var_)
    scaler.scale_ = widths(np.where(scaler.scale_ == deviation, deviation, 0))  # scikit-learn has 1 for rounding alone
    return scaler


def _finite(x: np.ndarray) -> None:
    """Raise InputError for the first row of features ``x: (rows, dim)`` with NaN or infinity."""
    if len(bad := np.flatnonzero(~np.isfinite(x).all(axis=1))):
        raise InputError(f"row {bad[0]} of the features holds NaN or infinity; extract the features again")


def _nca_start(scaled: np.ndarray, labels: np.ndarray, n: int) -> str:
    """scikit-learn's own choice, but for a discriminant analysis that would divide by rounding errors.

    It divides each number by its deviation within the classes. A number that all images of a class share, as may be
    with few of them, has a deviation of about 1e-17 in place of 0, and NCA would start, and stay, beyond 1e15.
    """
    classes, code = np.unique(labels, return_inverse=True)
    within = scaled - np.stack([scaled[code == c].mean(axis=0) for c in range(len(classes))])[code]
    deviation = within.std(axis=0)
    rounding = (deviation > 0) & (deviation < 1e-8)  # scikit-learn sees to those that are exactly 0
    return "pca" if n < len(classes) and rounding.any() else "auto"


def _components(scaled: np.ndarray, n: int, whiten: bool) -> np.ndarray:
    """The first ``n`` principal directions (dim, n) of centred rows, divided by their deviation if ``whiten``."""
    pca = PCA(svd_solver="covariance_eigh" if len(scaled) > scaled.shape[1] else "full").fit(scaled)
    directions = pca.components_[:n].T
    if not whiten:
        return directions
    # A component without any variance would be divided by 0; it carries nothing and stays 0.
    deviation = np.sqrt(pca.explained_variance_[:n])
    return np.divide(directions, deviation, out=np.zeros_like(directions), where=deviation > 1e-6 * deviation[0])
