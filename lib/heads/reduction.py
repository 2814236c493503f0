"""What happens to a feature before a head sees it: standard scaling, then PCA (Hyper-DINO, section 2.1)."""

from dataclasses import dataclass

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from lib.errors import InputError


@dataclass(frozen=True)
class Reduction:
    """A scaler and a full PCA fitted on the training part; every length is a prefix of the same rotation.

    A PCA without whitening that keeps all components only rotates the scaled features (HD-6), so ``whiten`` is
    explicit; the paper does not mention it and the default is off.
    """

    scaler: StandardScaler
    pca: PCA
    whiten: bool

    @classmethod
    def fit(cls, train: np.ndarray, *, whiten: bool = False) -> "Reduction":
        """Fit on training features ``train: (n, dim)``; a constant column is left at 0."""
        scaler = StandardScaler().fit(train.astype(np.float64))
        pca = PCA(svd_solver="full").fit(scaler.transform(train.astype(np.float64)))
        return cls(scaler, pca, whiten)

    @property
    def longest(self) -> int:
        """The largest number of components: the feature length or the number of training images, if smaller."""
        return int(self.pca.n_components_)

    def scale(self, x: np.ndarray) -> np.ndarray:
        """Standard-scaled features (n, dim), float32: the paper's ``[CLS]`` input."""
        return self.scaler.transform(x.astype(np.float64)).astype(np.float32)

    def __call__(self, x: np.ndarray, n: int) -> np.ndarray:
        """The first ``n`` principal components of the scaled features: (rows, n), float32.

        Raises:
            InputError: if ``n`` is larger than :attr:`longest`.
        """
        if not 1 <= n <= self.longest:
            raise InputError(
                f"PCA({n}) asks for more components than there are: {len(self.scaler.mean_)} numbers per image and the "
                f"training images allow 1 to {self.longest}; choose a smaller length"
            )
        components = self.pca.transform(self.scaler.transform(x.astype(np.float64)))[:, :n]
        if self.whiten:
            # A component without any variance would be divided by 0; it carries nothing and stays 0.
            deviation = np.sqrt(self.pca.explained_variance_[:n])
            components = np.divide(components, deviation, out=np.zeros_like(components), where=deviation > 1e-12)
        return components.astype(np.float32)
