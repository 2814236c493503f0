"""Embeddings of a made-up hierarchy, as many as a search is to be tried on."""

import torch
from torch import Tensor

from lib.geometry import PoincareBall

LEVELS, BRANCHES = 4, 8


def hierarchy(n: int, d: int, c: float = 1.0, seed: int = 0) -> Tensor:
    """``n`` leaves of a tree with four levels of eight branches, as points (n, d) float32 of the ball of curvature −c.

    A node lies a random step away from its parent, half as long at every level, and a leaf a last one from its node.
    The tree is always the same; ``seed`` draws the leaves, so that queries and gallery share a tree but no leaf.

    >>> hierarchy(1000, 32).norm(dim=1).max() < 1
    tensor(True)
    """
    tree, leaves = torch.Generator().manual_seed(7), torch.Generator().manual_seed(seed)
    node = torch.randint(BRANCHES**LEVELS, (n,), generator=leaves)
    tangent = _steps(n, d, leaves) / 2**LEVELS
    for level in range(1, LEVELS + 1):
        steps = _steps(BRANCHES**level, d, tree) / 2 ** (level - 1)
        tangent += steps[node // BRANCHES ** (LEVELS - level)]
    ball = PoincareBall(c)
    return ball.project(ball.exp0(tangent))


def clusters(n: int, d: int, radii: tuple[float, float], seed: int = 0) -> Tensor:
    """``n`` points (n, d) float32 of the ball with c = 1, at hyperbolic radii drawn evenly from ``radii``.

    They lie about 200 directions, so that some are near and others far at every radius. The directions are always the
    same; ``seed`` draws the points. Where ``radii`` are far apart, the norms of the d + 2 numbers of
    :mod:`lib.geometry.inner` spread.

    >>> clusters(1000, 32, (8, 12)).norm(dim=1).min() > 0.999
    tensor(True)
    """
    tree, drawn = torch.Generator().manual_seed(7), torch.Generator().manual_seed(seed)
    centres = torch.nn.functional.normalize(torch.randn(200, d, generator=tree, dtype=torch.float64), dim=1)
    near = centres[torch.randint(200, (n,), generator=drawn)]
    near += 0.5 / d**0.5 * torch.randn(n, d, generator=drawn, dtype=torch.float64)
    radius = radii[0] + (radii[1] - radii[0]) * torch.rand(n, 1, generator=drawn, dtype=torch.float64)
    return PoincareBall(1.0).exp0(torch.nn.functional.normalize(near, dim=1) * radius / 2).float()


def _steps(n: int, d: int, generator: torch.Generator) -> Tensor:
    """Random steps (n, d) with a length of about 0.8."""
    return 0.8 / d**0.5 * torch.randn(n, d, generator=generator)
