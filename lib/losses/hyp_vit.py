"""Pairwise cross-entropy over the positive pairs of a batch (Hyperbolic Vision Transformers, Section 2.2).

A batch is N classes x d images, in any order. With D a distance and K = 2N::

    l(i, j) = −log exp(−D(i, j)/τ) / Σ_{k ≠ i} exp(−D(i, k)/τ)                                      (Equation 5)

The s-th images of all classes, as they stand in the batch, are subset s. For d > 2 the text takes the loss "for each
pair of subsets": the sum in Equation 5 goes over the 2N images of the subsets of i and j. So i is never pushed away
from the other d − 2 images of its own class, as it would be if the sum went over the whole batch.

**The temperature on the sphere (erratum HV-8).** Equation 4 is 2 − 2·cos, so −D_cos/τ is cos/(τ/2) up to a constant,
which the softmax does not see. The text prints τ = 0.1, the authors' code computes cos/0.1: that is Equation 4 with
τ = 0.2. Here the temperature is always that of the printed equations. Published numbers were made with
:data:`TEMPERATURE` = 0.2 for both distances; :data:`PRINTED_SPHERICAL` is half as warm a softmax.
"""

from dataclasses import dataclass, field

import torch
from torch import Tensor

from lib import checks
from lib.errors import InputError
from lib.geometry import Euclidean, Geometry, PoincareBall, Sphere
from lib.losses.batch import check, reordered, which

TEMPERATURE = 0.2
"""Of D_hyp as printed (Section 3.2), and of D_cos as the authors' code has it (HV-8)."""
PRINTED_SPHERICAL = 0.1
"""Of D_cos as printed in Section 3.2 (HV-8)."""


def cosine_distance(x: Tensor, y: Tensor) -> Tensor:
    """D_cos = ‖x/‖x‖ − y/‖y‖‖² = 2 − 2·cos of all pairs (Equation 4); ``x: (..., n, d)``, ``y: (..., m, d)``.

    From differences, as 2 − 2·cos of near-duplicates would be rounding noise. A zero vector has no direction: it is at
    1 from every direction and at 0 from another zero.

    >>> cosine_distance(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 3.0], [-1.0, 0.0]])).round(decimals=4)
    tensor([[2., 4.]])
    """
    one_set, x = x is y, Sphere().project(x)
    return Euclidean().pairwise(x, x if one_set else Sphere().project(y)).square()


def pairwise_cross_entropy(distance: Tensor, d: int, temperature: float, counts: Tensor) -> Tensor:
    """Equation 5 from all distances of a batch: summed over ordered pairs of subsets, the mean over the classes.

    Args:
        distance: (..., N·d, N·d) of all pairs of rows.
        d: images of each class, one after the other.
        temperature: τ > 0.
        counts: (..., N) bool, which classes count.

    Returns:
        (...): d(d − 1) times the mean of l(i, j). The text asks for the sum over the pairs of subsets and leaves open
        how the N classes of one are put together; the authors' code takes the mean. Gradient clipping sees the
        factor. It is 0 where no class counts, and with a single class, which has nothing to be told from.
    """
    checks.values(temperature=temperature)
    logits = (-distance / temperature).unflatten(-1, (-1, d)).unflatten(-3, (-1, d))  # anchor n, a; image m, b
    n = logits.shape[-4]
    own = torch.eye(n, dtype=torch.bool, device=distance.device)[:, None, :, None]
    same = torch.eye(d, dtype=torch.bool, device=distance.device)[:, None, :]
    # exp of it is 0; with −inf a sum that holds nothing else, as that of a single class, would have no gradient.
    nothing = -(torch.finfo(distance.dtype).max ** 0.5)
    logits_k = logits.masked_fill(~counts[..., None, None, :, None], nothing)
    within = logits_k.masked_fill(own & same, nothing).diagonal(dim1=-3, dim2=-1).logsumexp(-2)  # n, a: k ≠ i
    across = logits_k.logsumexp(-2)  # n, a, b
    positive = logits.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)  # n, a, b
    each = torch.logaddexp(across, within[..., None]) - positive
    per_class = each.masked_fill(same.squeeze(-2), 0).sum((-2, -1))
    return (per_class * counts).sum(-1) / counts.sum(-1).clamp_min(1)


@dataclass(frozen=True)
class PairwiseCrossEntropy:
    """Equation 5 with these settings; the defaults are those of the Hyp- versions, :func:`spherical` has the others.

    ``geometry``: where embeddings live, and D their distance (D_hyp in the ball). ``cosine``: compare by D_cos instead,
    wherever they live. ``temperature``: τ of Equation 5, see HV-8 above. ``samples``: d, the images of each class.

    What fills a shorter batch up to the longest counts for nothing, and neither does a class of which one row does not
    count. Raises InputError for a value without meaning.
    """

    geometry: Geometry = field(default_factory=lambda: PoincareBall(0.1))
    temperature: float = TEMPERATURE
    samples: int = 2
    cosine: bool = False
    by_distance = recordable = True
    """See :data:`lib.training.stacks.Loss`."""

    def __post_init__(self) -> None:
        checks.values(geometry=self.geometry, temperature=self.temperature)
        checks.two_or_more("samples", self.samples)
        checks.switch("cosine", self.cosine)

    def distance(self, h: Tensor) -> Tensor:
        """D of all pairs of ``h: (..., B, dim)``, (..., B, B)."""
        return cosine_distance(h, h) if self.cosine else self.geometry.pairwise(h, h)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        """Embeddings (..., B, dim), d rows of each class, in any order: the loss (...).

        Raises InputError for a batch that does not fit, and for a class that has not d rows.
        """
        check(h, labels)
        if labels.shape[-1] % self.samples:
            raise InputError(
                f"{labels.shape[-1]} rows are no classes of samples = {self.samples} images each: take batches of "
                "lib.training.by_class"
            )
        same, valid = labels[..., :, None] == labels[..., None, :], which(labels, valid)
        own = (same & valid[..., None, :]).sum(-1)  # rows of its class that count
        valid = valid & ~((own < self.samples) & (same & ~valid[..., None, :]).any(-1))
        check_classes(labels, own, valid, self.samples)
        # By class, classes as they come first: rows that stand like that already stay where they are.
        order = same.byte().argmax(-1).masked_fill(~valid, labels.shape[-1]).argsort(dim=-1, stable=True)
        h, valid = reordered(order, h, valid)
        counts = valid.unflatten(-1, (-1, self.samples)).all(-1)
        return pairwise_cross_entropy(self.distance(h), self.samples, self.temperature, counts)


def spherical(temperature: float = TEMPERATURE, samples: int = 2) -> PairwiseCrossEntropy:
    """The loss of the Sph- versions: D_cos on the sphere; the default temperature is the authors' code's (HV-8)."""
    return PairwiseCrossEntropy(Sphere(), temperature, samples, cosine=True)


def check_classes(labels: Tensor, own: Tensor, valid: Tensor, samples: int) -> None:
    """Raise InputError where a row that counts is of a class whose rows that count, ``own: (..., B)``, are not d.

    A class that came twice would be pushed away from itself. Labels on a GPU are not looked at.
    """
    if not checks.at_hand(labels):
        return
    if (wrong := valid & (own != samples)).any():
        raise InputError(
            f"class number {labels[wrong][0].item()} has not samples = {samples} images in its batch, as every class "
            "needs: take batches of lib.training.by_class"
        )
