"""Hyperbolic contrastive loss with a dynamic margin (Hyper-DINO, section 2.3).

    L = L_pos + L_neg + R_norm

The loss never looks inside the geometry: the same code trains the Euclidean and the spherical control.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Geometry, PoincareBall


class Parts(NamedTuple):
    """The loss and what it is made of; each a tensor of the batch shape ``(...)``."""

    total: Tensor
    positive: Tensor
    negative: Tensor
    norm: Tensor
    margin: Tensor


def contrastive(
    h: Tensor,
    labels: Tensor,
    geometry: Geometry,
    *,
    m0: float = 0.5,
    alpha: float = 0.1,
    norm_weight: float = 1e-3,
    self_pairs: bool = False,
    detach_mean: bool = True,
    valid: Tensor | None = None,
    epsilon: float = 1e-8,
) -> Parts:
    """Pull pairs of one class together, push pairs of two classes beyond a margin that follows the mean distance.

    Args:
        h: (..., B, d) embeddings, points of ``geometry``; leading dimensions are independent batches.
        labels: (..., B) integer classes, below 2^24.
        geometry: where the distances ``D_ij`` are measured.
        m0: base margin, in units of distance (published: 0.5).
        alpha: how much of the mean distance is added to the margin, ``m = m0 + alpha · mean(D)`` (published: 0.1).
        norm_weight: weight of the mean Euclidean norm (lambda; published: 1e-3).
        self_pairs: count the pairs ``i = j``. The printed masks do (erratum HD-9); they add nothing but zeros,
            which dilute ``L_pos`` by ``1/positives per image`` and lower the mean distance, so the default drops them.
        detach_mean: no gradient through the mean distance. Otherwise the margin can shrink only by pulling *all*
            points together, against the purpose of the term; the paper does not say (HD-9).
        valid: (..., B) bool, which rows count; the others only fill up batches of unequal size. All if not given.
        epsilon: added to the pair counts, as printed. It acts only where a batch holds no positive (or no
            negative) pair at all: the term is then 0 and not 0/0. The paper gives no value (HD-7).

    Returns:
        :class:`Parts`, each of shape ``(...)``.

    Raises:
        InputError: if ``labels`` does not fit ``h`` or are no whole numbers from 0 on, and if ``m0``, ``alpha`` or
            ``norm_weight`` is a number without meaning; as tensors, a value for each batch, they are taken as they are.
    """
    weights = {"m0": m0, "alpha": alpha, "norm_weight": norm_weight}
    checks.values(**{name: value for name, value in weights.items() if not isinstance(value, Tensor)})
    if labels.shape != h.shape[:-1]:
        raise InputError(f"labels have shape {tuple(labels.shape)}, the embeddings need {tuple(h.shape[:-1])}")
    checks.codes("labels", labels)
    distance = geometry.pairwise(h, h)
    classes = labels.to(distance.dtype)
    counts = torch.ones_like(classes) if valid is None else valid.to(distance.dtype)
    # 0 and 1 by arithmetic on the labels: several times faster than by comparison.
    pairs = counts[..., :, None] * counts[..., None, :]
    same = pairs * (1 - (classes[..., :, None] - classes[..., None, :]).abs_().clamp_max_(1))
    other = pairs - same
    size = counts.sum(-1)
    n_self = 0 if self_pairs else size

    # A pair with itself is at distance 0, so that it changes how many pairs there are, but no sum of distances.
    pulled, pushed = same * distance, other * distance
    mean_distance = (pulled + pushed).sum((-2, -1)) / (size**2 - n_self).clamp_min(1)  # one image has no pair
    margin = m0 + alpha * (mean_distance.detach() if detach_mean else mean_distance)
    missing = (other * margin[..., None, None] - pushed).relu()
    positive = pulled.sum((-2, -1)) / (same.sum((-2, -1)) - n_self + epsilon)
    negative = missing.sum((-2, -1)) / (other.sum((-2, -1)) + epsilon)
    norm = norm_weight * (counts * torch.linalg.vector_norm(h, dim=-1)).sum(-1) / size
    return Parts(positive + negative + norm, positive, negative, norm, margin)


@dataclass(frozen=True)
class ContrastiveLoss:
    """The total of :func:`contrastive` with these settings, as :mod:`lib.training.sweep` calls it."""

    geometry: Geometry = field(default_factory=PoincareBall)
    m0: float = 0.5
    alpha: float = 0.1
    norm_weight: float = 1e-3
    self_pairs: bool = False
    detach_mean: bool = True
    by_distance = recordable = True
    """See :data:`lib.training.stacks.Loss`."""

    def __call__(self, h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, d), labels (..., B) and which rows count (..., B) give the loss (...)."""
        return contrastive(h, labels, valid=valid, **vars(self)).total
