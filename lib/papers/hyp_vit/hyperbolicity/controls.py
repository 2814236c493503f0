"""What δ is to be read against: points whose likeness to a tree is known, and features that lost their structure."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
import torch
from torch import Tensor

from lib.geometry import Euclidean, PoincareBall, Sphere

BALL = (1.0, 5.0, 10.0)
"""Radii of the disks of the hyperbolic plane, in units of its own length; 10 is where float64 is still exact."""

Change = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Features (n, d) → other features of the same images, at random."""


def known(size: int, lengths: list[int], random: np.random.Generator) -> Iterator[tuple[str, int, Tensor]]:
    """One sample of ``size`` points of every control: its name, the dimension (0: none) and the distances (n, n).

    lengths: of the Gaussian clouds. A tree has δ = 0; a disk of the hyperbolic plane has δ ≤ ln 2 however large it is,
    so its relative δ falls with the radius; the great circles of a sphere come close to the largest relative δ, 1.
    """
    yield "random tree", 0, tree(size, random)
    for radius in reversed(BALL):
        yield f"hyperbolic disk, radius {radius:g}", 2, disk(size, radius, random)
    for d in lengths:
        cloud = torch.from_numpy(random.normal(size=(size, d)).astype(np.float32))
        yield f"Gaussian cloud, {d:,} numbers", d, Euclidean().pairwise(cloud, cloud)
    globe = torch.from_numpy(random.normal(size=(size, 3)))
    yield "sphere, along great circles", 2, Sphere().pairwise(globe, globe)


def tree(n: int, random: np.random.Generator) -> Tensor:
    """Distances (n, n) between all nodes of a tree that grows at random nodes; edges between 0.5 and 1.5.

    >>> from lib.geometry.hyperbolicity import hyperbolicity
    >>> hyperbolicity(tree(50, np.random.default_rng(0))).relative < 1e-12
    True
    """
    distances = np.zeros((n, n))
    for node in range(1, n):
        to_others = distances[random.integers(node), :node] + random.uniform(0.5, 1.5)
        distances[node, :node] = distances[:node, node] = to_others
    return torch.from_numpy(distances)


def disk(n: int, radius: float, random: np.random.Generator) -> Tensor:
    """Distances (n, n) of points spread evenly by area over a disk of the hyperbolic plane (curvature −1).

    The area within ρ of the centre grows as cosh ρ − 1, so of a large disk nearly all is near its rim.
    """
    away = np.arccosh(1 + random.uniform(size=n) * (np.cosh(radius) - 1))
    angle = random.uniform(0, 2 * np.pi, n)
    ball = PoincareBall(1.0)
    points = ball.exp0(torch.from_numpy(away[:, None] / 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1)))
    return ball.pairwise(points, points)


def as_they_are(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """The features themselves."""
    return x


def unit_length(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every image's features divided by their L2 norm."""
    return x / np.linalg.norm(x, axis=1, keepdims=True).clip(min=np.finfo(x.dtype).tiny)


def shuffled(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """Every column permuted over the images by itself: each number keeps its values, no two belong together."""
    return random.permuted(x, axis=0)


def gaussian(x: np.ndarray, random: np.random.Generator) -> np.ndarray:
    """A Gaussian cloud with the mean and the covariance of ``x``: as long in every direction, without clusters."""
    mean = x.mean(axis=0)
    weights = random.normal(size=(len(x), len(x))).astype(x.dtype) / np.sqrt(len(x) - 1, dtype=x.dtype)
    return mean + weights @ (x - mean)


COPIES: Mapping[str, Change] = {"columns shuffled": shuffled, "Gaussian of the same covariance": gaussian}
"""What is left of features when one kind of structure is taken away."""
