"""How tree-like is a set of points? Gromov's δ of its distances (Hyp-ViT, Section 2.3; Khrulkov et al., 2020).

With the Gromov product (x|y)_w = ½(d(x,w) + d(y,w) − d(x,y)), a space is δ-hyperbolic at the base point w if
(x|z)_w ≥ min((x|y)_w, (y|z)_w) − δ for all x, y, z. A tree has δ = 0. Two rules must be stated with a number:

* **base point**: δ_w ≤ δ ≤ 2·δ_w, with δ the largest of all base points. One base point is quick and up to a factor
  of 2 too small.
* **relative**: δ_rel = 2δ/diameter lies between 0 (tree) and 1. Of the two public versions of Hyp-ViT one leaves out
  the 2, which makes the curvature that is derived from it four times as large.

Both public versions build all n³ triples, about 27 GB for 1,500 points. Here the max-min product is taken block by
block, in a few n² numbers of memory.
"""

from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from lib.errors import InputError
from lib.geometry import Geometry, by_name
from lib.geometry.points import Points, as_tensor

CURVATURE_OF_DELTA = 0.144
"""c = (0.144/δ_rel)²: the δ of the standard Poincaré disk, see Khrulkov et al. (2020), Equation 6."""

_CELLS = 2**16
"""Numbers that are compared at a time: they stay in the processor's cache."""


@dataclass(frozen=True)
class Hyperbolicity:
    """δ, the diameter and δ_rel = 2δ/diameter of ``n`` points; ``low`` and ``high`` bound δ_rel.

    Of one set of points with all base points both bounds are δ_rel itself. With one base point they are δ_rel and
    min(1, 2·δ_rel), as δ_w ≤ δ ≤ 2·δ_w. Of random subsets they are a 95 % confidence interval of the mean.
    """

    delta: float
    diameter: float
    relative: float
    low: float
    high: float
    n: int

    @property
    def curvature(self) -> float:
        """The c that Hyp-ViT (Section 2.3) derives: (0.144/δ_rel)², infinite for a tree."""
        return (CURVATURE_OF_DELTA / self.relative) ** 2 if self.relative else np.inf


@torch.no_grad()
def hyperbolicity(distances: Points, base: int | None = None) -> Hyperbolicity:
    """Gromov's δ of the points whose distances are given, exactly, by n³ (``base``) or n⁴ comparisons (None).

    Args:
        distances: (n, n) symmetric, zero on the diagonal.
        base: the base point; None takes the largest δ of all of them, for small n.

    Raises:
        InputError: if ``distances`` is not such a matrix, or all points are equal.

    The path with four corners is as far from a tree as four points with unit steps can be:

    >>> ring = torch.tensor([[0.0, 1, 2, 1], [1, 0, 1, 2], [2, 1, 0, 1], [1, 2, 1, 0]])
    >>> hyperbolicity(ring).delta, hyperbolicity(ring).relative
    (1.0, 1.0)
    """
    distances = _checked(distances)
    n, diameter = len(distances), distances.max().item()
    bases = range(n) if base is None else [base]
    delta = max(_delta(distances, w) for w in bases)
    relative = 2 * delta / diameter
    return Hyperbolicity(delta, diameter, relative, relative, relative if base is None else min(1.0, 2 * relative), n)


@torch.no_grad()
def sampled(
    points: Points, geometry: str | Geometry, size: int = 1000, repeats: int = 10, seed: int = 0
) -> Hyperbolicity:
    """δ of random subsets of many points, and a confidence interval (Student's t over the subsets) of mean δ_rel.

    Args:
        points: (n, d) in ``geometry``, a :class:`lib.geometry.Geometry` or its name.
        size: points of a subset; all points if there are fewer, and then one subset is enough.
        repeats: number of subsets, drawn without replacement; each has a base point of its own.
        seed: of the draw.

    A subset has fewer triples than the whole, and one base point gives a lower bound, so this is a number to compare
    datasets by at equal ``size``, not an upper bound.
    """
    points, geometry = as_tensor(points), by_name(geometry)
    if len(points) <= size:
        return hyperbolicity(geometry.pairwise(points, points), base=0)
    if repeats < 2:
        raise InputError(f"repeats = {repeats}: a confidence interval needs at least 2 subsets")
    random = np.random.default_rng(seed)
    draws = []
    for _ in range(repeats):
        subset = points[torch.from_numpy(random.choice(len(points), size, replace=False))]
        draws.append(hyperbolicity(geometry.pairwise(subset, subset), base=0))
    relative = np.array([one.relative for one in draws])
    half = stats.t.ppf(0.975, repeats - 1) * relative.std(ddof=1) / np.sqrt(repeats)
    mean = [float(np.mean([getattr(one, name) for one in draws])) for name in ("delta", "diameter", "relative")]
    return Hyperbolicity(*mean, max(0.0, mean[2] - half), min(1.0, mean[2] + half), size)


def max_min_product(a: Points) -> Tensor:
    """max over k of min(a[i, k], a[k, j]) for a symmetric ``a: (n, n)``, in n² memory; returns (n, n)."""
    a = as_tensor(a, "matrix")
    n = len(a)
    product = torch.empty_like(a)
    height = max(1, _CELLS // n)
    for start in range(0, n, height):
        rows = a[start : start + height]
        best = product[start : start + height]
        torch.minimum(rows[:, :1], a[:1], out=best)
        smaller = torch.empty_like(rows)
        for k in range(1, n):
            torch.minimum(rows[:, k, None], a[k], out=smaller)
            torch.maximum(best, smaller, out=best)
    return product


def _delta(distances: Tensor, base: int) -> float:
    """δ_w = max over x, z of (max over y of min((x|y)_w, (y|z)_w)) − (x|z)_w."""
    to_base = distances[base]
    product = (to_base[:, None] + to_base[None] - distances) / 2
    return (max_min_product(product) - product).max().item()


def _checked(distances: Points) -> Tensor:
    distances = as_tensor(distances, "distances")
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or not len(distances):
        raise InputError(f"distances have the shape {tuple(distances.shape)}; expected (n, n) with n >= 1")
    distances = distances.double() if not distances.is_floating_point() else distances
    if not distances.isfinite().all():
        row = (~distances.isfinite()).any(1).nonzero()[0].item()
        raise InputError(f"the distances of point {row} hold NaN or infinity; project the points first")
    close = 1e-4 * distances.max()
    if (distances - distances.T).abs().max() > close or distances.diagonal().abs().max() > close:
        raise InputError("distances must be symmetric with zeros on the diagonal; hand in pairwise(points, points)")
    if distances.max() == 0:
        raise InputError("all points are equal: δ relative to a diameter of 0 has no meaning")
    return distances
