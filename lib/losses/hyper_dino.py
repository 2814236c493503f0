"""Hyperbolic contrastive loss with a dynamic margin (Hyper-DINO, section 2.3).

    L = L_pos + L_neg + R_norm

The loss never looks inside the geometry: the same code trains the Euclidean and the spherical control.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from lib import checks
from lib.geometry import Geometry, PoincareBall
from lib.losses.batch import counted


class Parts(NamedTuple):
    """The loss and what it is made of; each a tensor of the batch shape ``(...)``."""

    total: Tensor
    positive: Tensor
    negative: Tensor
    norm: Tensor
    margin: Tensor


EPSILON = 1e-8
"""Added to the pair counts, as printed. It acts only where a batch holds no positive (or no negative) pair at all: the
term is then 0 and not 0/0. The paper gives no value (HD-7)."""


@dataclass(frozen=True)
class ContrastiveLoss:
    """Pull pairs of one class together, push pairs of two classes beyond a margin that follows the mean distance.

    geometry: where the distances ``D_ij`` are measured. m0: base margin, in units of distance (published: 0.5). alpha:
    how much of the mean distance is added to the margin, ``m = m0 + alpha · mean(D)`` (published: 0.1). norm_weight:
    weight of the mean Euclidean norm (lambda; published: 1e-3).

    self_pairs: count the pairs ``i = j``. The printed masks do (erratum HD-9); they add nothing but zeros, which dilute
    ``L_pos`` by ``1/positives per image`` and lower the mean distance, so the default drops them. detach_mean: no
    gradient through the mean distance. Otherwise the margin can shrink only by pulling *all* points together, against
    the purpose of the term; the paper does not say (HD-9).

    Raises InputError for a value without meaning. ``m0``, ``alpha`` and ``norm_weight`` as tensors, a value for each
    batch of a stack, are taken as they are.
    """

    geometry: Geometry = field(default_factory=PoincareBall)
    m0: float | Tensor = 0.5
    alpha: float | Tensor = 0.1
    norm_weight: float | Tensor = 1e-3
    self_pairs: bool = False
    detach_mean: bool = True
    by_distance = recordable = True
    """See :data:`lib.training.stacks.Loss`."""

    def __post_init__(self) -> None:
        of_batches = [name for name in ("m0", "alpha", "norm_weight") if isinstance(getattr(self, name), Tensor)]
        checks.values(**{name: value for name, value in vars(self).items() if name not in of_batches})

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """Points of the geometry (..., B, d), labels below 2^24: the loss (...)."""
        return self.parts(h, labels, valid=valid).total

    def parts(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Parts:
        """The loss and its terms, arguments as in a call."""
        distance = self.geometry.pairwise(h, h)
        counts, classes = counted(distance, labels, valid), labels.to(distance.dtype)
        # 0 and 1 by arithmetic on the labels: several times faster than by comparison.
        pairs = counts[..., :, None] * counts[..., None, :]
        same = pairs * (1 - (classes[..., :, None] - classes[..., None, :]).abs_().clamp_max_(1))
        other = pairs - same
        size = counts.sum(-1)
        n_self = 0 if self.self_pairs else size

        # A pair with itself is at distance 0, so that it changes how many pairs there are, but no sum of distances.
        pulled, pushed = same * distance, other * distance
        mean_distance = (pulled + pushed).sum((-2, -1)) / (size**2 - n_self).clamp_min(1)  # one image has no pair
        margin = self.m0 + self.alpha * (mean_distance.detach() if self.detach_mean else mean_distance)
        missing = (other * margin[..., None, None] - pushed).relu()
        positive = pulled.sum((-2, -1)) / (same.sum((-2, -1)) - n_self + EPSILON)
        negative = missing.sum((-2, -1)) / (other.sum((-2, -1)) + EPSILON)
        norm = self.norm_weight * (counts * torch.linalg.vector_norm(h, dim=-1)).sum(-1) / size
        return Parts(positive + negative + norm, positive, negative, norm, margin)
