"""What losses, heads, metrics and search need to know of a space."""

from typing import ClassVar, Protocol

from torch import Tensor

from lib.geometry.points import Points


class Geometry(Protocol):
    """A space with its points and distances."""

    name: ClassVar[str]

    def pairwise(self, x: Points, y: Points) -> Tensor:
        """Distances of all pairs; ``x: (..., n, d)``, ``y: (..., m, d)`` points, returns ``(..., n, m)``."""

    def between(self, x: Points, y: Points) -> Tensor:
        """Distances row by row; ``x, y: (..., d)`` points, returns ``(...)``."""

    def exp0(self, v: Points, /) -> Tensor:
        """Points ``(..., d)`` from tangent vectors ``v: (..., d)`` at the origin."""

    def log0(self, x: Points, /) -> Tensor:
        """Tangent vectors ``(..., d)`` at the origin from points ``x: (..., d)``."""

    def project(self, x: Points) -> Tensor:
        """``x: (..., d)`` brought back into the space."""

    def mean(self, x: Points, weights: Points | None = None) -> Tensor:
        """Closed-form mean of points ``x: (..., n, d)`` with ``weights: (..., n)`` ≥ 0, returns ``(..., d)``.

        Without weights all points count alike.
        Raises InputError for a negative weight, or where the weights of a mean add up to 0.
        """

    def rank_key(self, query: Points, gallery: Points) -> Tensor:
        """A number that grows with the distance within each row, without transcendental functions.

        ``query: (..., q, d)``, ``gallery: (..., m, d)`` points, returns ``(..., q, m)``. Keys of different rows
        cannot be compared.
        """
