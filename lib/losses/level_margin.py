"""LAM, a margin between the branches of a label tree (Climbing the Label Tree, Section 3.3, Equations 9 to 11)."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall, Sphere, karcher
from lib.losses.label_tree import check_batch, distance
from lib.taxonomy import Taxonomy


class LevelAwareMargin(nn.Module):
    """LAM, Equations 9 to 11: every row nearer to its own ancestor's prototype than to any other of that level.

    Prototypes are moving averages without a gradient, from the first batch with their ancestor on, moved before used.
    That first mean is the closed one of the geometry (in the ball the gyromidpoint, where Section 3.1 has the Fréchet
    mean). In evaluation a row whose own prototype was never seen counts for nothing.

    Args:
        tree: its levels 1 to L − 1 have prototypes; a tree of one level has none, and the loss is 0.
        dim: length of the embeddings.
        geometry: as in :class:`Contrastive`; c > 0 in the ball.
        margin: m of level 1. Level l has margin/l, "larger margins at coarser levels"; no rule is printed.
        rate: η of the moving average.
        weights: λ of levels 1 to L − 1; None for 1 at all. "We mildly prioritize coarse splits", without a value.

    Raises InputError for a value without meaning, and another number of weights than of levels.
    """

    def __init__(
        self,
        tree: Taxonomy,
        dim: int,
        geometry: Geometry | None = None,
        *,
        margin: float = 0.3,
        rate: float = 0.05,
        weights: Sequence[float] | None = None,
    ) -> None:
        super().__init__()
        self.geometry = Sphere() if geometry is None else geometry
        checks.values(dim_out=dim, geometry=self.geometry, margin=margin, prototype_rate=rate)
        self.margin, self.rate, self.levels, self.n_leaves = margin, rate, range(1, tree.depth), len(tree.leaves)
        self.weights = [1.0] * len(self.levels) if weights is None else weights
        checks.several("weights", self.weights, checks.not_negative, least=0)
        if len(self.weights) != len(self.levels):
            raise InputError(
                f"{len(self.weights)} weights for the {len(self.levels)} levels between the root and the leaves of "
                f"{tree.name}: give one for each, the coarsest first"
            )
        for level in self.levels:
            nodes, n = tree.ancestor_codes(level), len(tree.level(level))
            self.register_buffer(f"ancestors_{level}", torch.as_tensor(nodes), persistent=False)
            self.register_buffer(f"below_{level}", torch.as_tensor(tree.leaf_depths() > level), persistent=False)
            self.register_buffer(f"prototypes_{level}", torch.zeros(n, dim))
            self.register_buffer(f"seen_{level}", torch.zeros(n, dtype=torch.bool))

    def forward(self, z: Tensor, labels: Tensor, *, images: Tensor | None = None) -> Tensor:
        """Σ over levels of λ times the mean hinge of ``z: (N, d)``; prototypes move in training.

        A class that ends at a level or above has no ancestor there: prototypes are of groups, not of classes.
        Raises InputError for a batch that does not fit (:func:`lib.losses.label_tree.check_batch`).
        """
        check_batch(z, labels, self.n_leaves)
        total = z.sum() * 0
        for level, weight in zip(self.levels, self.weights, strict=True):
            below = self.get_buffer(f"below_{level}")[labels]
            rows, nodes = z[below], self.get_buffer(f"ancestors_{level}")[labels[below]]
            if self.training:
                self.move(level, rows.detach(), nodes)
            known, prototypes = self.get_buffer(f"seen_{level}"), self.get_buffer(f"prototypes_{level}")
            share = weight * below.to(z.dtype).mean()
            total = total + share * hinge(rows, nodes, prototypes, known, self.geometry, self.margin / level)
        return total

    @torch.no_grad()
    def move(self, level: int, z: Tensor, nodes: Tensor) -> None:
        """One step of the moving averages of a level (Equations 9 and 10) with ``z: (N, d)`` of its ``nodes: (N,)``."""
        prototypes, seen = self.get_buffer(f"prototypes_{level}"), self.get_buffer(f"seen_{level}")
        present = nodes.unique()
        for node in present[~seen[present]]:
            own = z[nodes == node].to(prototypes.dtype)
            prototypes[node] = self.geometry.mean(own) if isinstance(self.geometry, PoincareBall) else own.mean(0)
        known = seen[nodes]
        if known.any():
            rows = nodes[known]
            prototypes[:] = moved(prototypes, z[known].to(prototypes.dtype), rows, self.geometry, self.rate)
        seen[present] = True


def moved(prototypes: Tensor, points: Tensor, nodes: Tensor, geometry: Geometry, rate: float) -> Tensor:
    """Each of ``prototypes: (A, d)`` a step towards its ``points: (n, d)``, those with its number in ``nodes: (n,)``.

    Equation 9; in the ball Equation 10, a step in the tangent space. A prototype without a point stays where it is.
    """
    if isinstance(geometry, PoincareBall):
        return karcher.steps(geometry, prototypes, points, nodes, rate)
    often = torch.bincount(nodes, minlength=len(prototypes))[:, None]
    means = torch.zeros_like(prototypes).index_add_(0, nodes, points) / often.clamp_min(1)
    return torch.where(often > 0, (1 - rate) * prototypes + rate * means, prototypes)


def hinge(z: Tensor, nodes: Tensor, prototypes: Tensor, known: Tensor, geometry: Geometry, margin: float) -> Tensor:
    """Mean of [d⁺ − d⁻ + m]₊ (Equation 11) of ``z: (N, d)`` in ``nodes: (N,)`` of a level with ``prototypes: (A, d)``.

    known: (A,) which prototypes there are; without two of them nothing can be too near, and the loss is 0.
    """
    own_known = known[nodes]
    z, nodes = z[own_known], nodes[own_known]
    if known.sum() < 2 or not len(z):
        return z.sum() * 0
    d = distance(geometry, z, prototypes.to(z.dtype))
    own = nn.functional.one_hot(nodes, len(prototypes)).bool()
    nearest = d.masked_fill(own | ~known, torch.inf).amin(-1)
    return (d[own] - nearest + margin).relu().mean()
