"""Seven losses of deep hashing, the opponents of ACIR's Table 1, each from the formulas of its own paper.

All take the outputs of a hash head, ``h: (..., B, bits)``; the code is sgn(h). The call is that of :mod:`lib.losses`.

**Means, not sums.** The papers sum over images, bits or pairs; here every term is a mean, so that a weight means the
same for another batch or code length. Published weights belong to sums and to their batches; ours are the defaults.
Pairs of an image with itself are left out: they teach nothing.

=========  ================================================================  ==================================
loss       what it asks                                                      paper
=========  ================================================================  ==================================
CSQ        each bit is that of the class's hash centre (cross-entropy)       Yuan et al., CVPR 2020
DPN        each bit lies beyond a margin on the centre's side (hinge)        Fan et al., IJCAI 2020
DCH        Cauchy likelihood of pairs by their angle                         Cao et al., CVPR 2018
DBDH       logistic likelihood of pairs of discrete, balanced codes          Zheng et al., Neurocomputing 2020
DSDH       logistic likelihood, and the codes classify linearly              Li et al., NeurIPS 2017
QSMIH      quadratic mutual information of angles and classes                Passalis and Tefas, SPIC 2021
Triplet    a pair of one class is nearer than a pair of two, by a margin     Lai et al., CVPR 2015 (ATH, MTH)
=========  ================================================================  ==================================
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from lib import checks
from lib.errors import InputError
from lib.geometry import Sphere
from lib.losses.batch import check, counted, image_mean, pair_mean, pairs
from lib.losses.codes import away_from_signs, cosines, hash_centres, straight_through


@dataclass(frozen=True)
class _ToCentres:
    """What losses with a code for each class share: n_classes, bits, and the seed of drawn centres."""

    n_classes: int
    bits: int
    seed: int = 0
    recordable = True

    def __post_init__(self) -> None:
        hash_centres(self.n_classes, self.bits, self.seed)

    def targets(self, h: Tensor, labels: Tensor) -> Tensor:
        """The centre of each label (..., B, bits); raises InputError for other shapes and for labels without one."""
        check(h, labels, self.n_classes, f"there are centres of {self.n_classes} classes")
        if h.shape[-1] != self.bits:
            raise InputError(f"a row has {h.shape[-1]} numbers, but codes have {self.bits} bits: give both one length")
        return hash_centres(self.n_classes, self.bits, self.seed, h.dtype, h.device)[labels]


@dataclass(frozen=True)
class CSQ(_ToCentres):
    """Central similarity: the mean of −[t log p + (1 − t) log(1 − p)] + weight · log cosh(|h| − 1).

    p = (1 + h)/2, t = 1 where the bit of the class's centre is +1. ``h`` comes from a tanh. weight: of the
    quantisation, 10⁻⁴ in the paper.
    """

    weight: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.not_negative("weight", self.weight)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        towards = self.targets(h, labels) * h  # p of the right bit is (1 + towards)/2
        # A tanh that is 1 or −1 to float32 would have the log of 0; this is as far as the dtype can tell from it.
        right = ((1 + towards) / 2).clamp_min(torch.finfo(h.dtype).eps)
        gap = (h.abs() - 1).abs()
        log_cosh = gap + softplus(-2 * gap) - math.log(2)
        return image_mean((self.weight * log_cosh - right.log()).mean(-1), valid)


@dataclass(frozen=True)
class DPN(_ToCentres):
    """Polarisation: the mean of max(0, margin − t·h) over bits and images, t = ±1 the bit of the class's centre.

    The paper draws the codes of the classes at random, which suffices; here they are the centres of CSQ. Its margin is
    at least 1, for outputs without bounds; of a tanh, margin 1 pushes every bit for good.
    """

    margin: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.positive("margin", self.margin)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        return image_mean((self.margin - self.targets(h, labels) * h).relu().mean(-1), valid)


@dataclass(frozen=True)
class DCH:
    """Deep Cauchy hashing: with D = bits/2 · (1 − cos), pairs of one class are alike with probability γ/(γ + D).

    The mean of log(1 + D/γ) over pairs of one class, plus that of log(1 + γ/D) over pairs of two (the paper's weights
    make both kinds count alike), plus weight · the mean of log(1 + D(|h|, 1)/γ). gamma: scale, in bits (paper: 20).
    """

    gamma: float = 20.0
    weight: float = 0.1
    recordable = True

    def __post_init__(self) -> None:
        checks.positive("gamma", self.gamma)
        checks.not_negative("weight", self.weight)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        same, other = pairs(h, labels, valid)
        half = h.shape[-1] / 2
        distance = half * (1 - cosines(h))
        ones = Sphere().project(torch.ones_like(h[..., :1, :]))
        to_ones = half * (1 - (Sphere().project(h.abs()) * ones).sum(-1))
        alike = pair_mean((distance / self.gamma).log1p(), same)
        # Equal codes of two classes would be infinitely bad.
        apart = pair_mean((self.gamma / distance.clamp_min(1e-4 * half)).log1p(), other)
        return alike + apart + self.weight * image_mean((to_ones / self.gamma).log1p(), valid)


@dataclass(frozen=True)
class DBDH:
    """Deep balanced discrete hashing: the logistic likelihood of pairs of codes, plus weight · (mean of a code)².

    With Θ = b·b′/2 a pair costs log(1 + e^Θ) − s Θ, s = 1 for one class. discrete: b = sgn(h) with a gradient that goes
    straight through, as its abstract says; else b = h within [−1, 1], as in open implementations. These are the source
    of the balance, the paper's text was not at hand: a balanced code has as many bits of −1 as of +1.
    """

    weight: float = 0.1
    discrete: bool = True
    recordable = True

    def __post_init__(self) -> None:
        checks.not_negative("weight", self.weight)
        checks.switch("discrete", self.discrete)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        b = straight_through(h) if self.discrete else h.clamp(-1, 1)
        return logistic(b, labels, valid) + self.weight * image_mean(b.mean(-1).square(), valid)


@dataclass(frozen=True)
class DSDH:
    """Deep supervised discrete hashing, as far as a gradient can train it.

    The logistic likelihood of DBDH with Θ = h·h′/2, plus ``classify`` · min over W of the mean over images of
    ‖y − W h‖² + ridge·‖W‖², plus ``weight`` · the mean of ‖sgn(h) − h‖² over images. y: the classes, one-hot.

    The paper alternates: it keeps W and discrete codes B of *all* training images, solves for both in turn, bit by bit,
    and lets the network follow B. In a batch W has a closed form, so that the classifier is part of the loss and no
    state; it reads h in place of B, and B is sgn(h), the best there is where the classifier weighs little.
    """

    classify: float = 1.0
    ridge: float = 0.1
    weight: float = 0.01

    def __post_init__(self) -> None:
        checks.positive("ridge", self.ridge)
        for name in ("classify", "weight"):
            checks.not_negative(name, getattr(self, name))

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        unexplained = ridge_residual(h, labels, self.ridge, valid)
        to_signs = image_mean(away_from_signs(h).square().sum(-1), valid)
        return logistic(h, labels, valid) + self.classify * unexplained + self.weight * to_signs


@dataclass(frozen=True)
class QSMIH:
    """Quadratic spherical mutual information with the square clamp: with S = (1 + cos)/2 of a pair::

        mean over pairs of s (1 − S)² + S²/M, plus weight · mean of ||h| − 1|

    s = 1 for one class. M: how many classes there would be if all were as frequent, pairs over pairs of one class.
    """

    weight: float = 0.01
    recordable = True

    def __post_init__(self) -> None:
        checks.not_negative("weight", self.weight)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        same, other = pairs(h, labels, valid)
        similarity = (1 + cosines(h)) / 2
        all_pairs = same + other
        share = pair_mean(same, all_pairs)[..., None, None]  # 1/M
        each = same * (1 - similarity).square() + share * similarity.square()
        return pair_mean(each, all_pairs) + self.weight * image_mean(away_from_signs(h).mean(-1), valid)


@dataclass(frozen=True)
class Triplet:
    """Triplet hashing: the mean of max(0, margin·bits + ‖h − h⁺‖² − ‖h − h⁻‖²) over all triplets of the batch.

    Plus weight · mean of ||h| − 1|. Divided by bits, so that margin = 0.5 asks for an eighth of the bits (a bit that
    differs makes 4). ATH adds a classifier on another branch and MTH scales of the image; this is what they share.
    """

    margin: float = 0.5
    weight: float = 0.1
    recordable = True

    def __post_init__(self) -> None:
        checks.positive("margin", self.margin)
        checks.not_negative("weight", self.weight)

    def __call__(self, h: Tensor, labels: Tensor, *, valid: Tensor | None = None) -> Tensor:
        same, other = pairs(h, labels, valid)
        squared = h.square().sum(-1)
        distance = (squared[..., :, None] + squared[..., None, :] - 2 * h @ h.mT) / h.shape[-1]
        hinge = triplet_sums(distance, same, other, self.margin).sum(-1)
        triplets = (same.sum(-1) * other.sum(-1)).sum(-1)
        return hinge / triplets.clamp_min(1) + self.weight * image_mean(away_from_signs(h).mean(-1), valid)


def triplet_sums(distance: Tensor, same: Tensor, other: Tensor, margin: float) -> Tensor:
    """For each anchor the sum of max(0, margin + D(i, j) − D(i, k)) over j of its class and k of others, (..., B).

    ``distance``, ``same``, ``other``: (..., B, B), of :func:`lib.losses.batch.pairs`. From sorted distances: B² numbers
    for what are B³ triplets. A j costs its limit margin + D(i, j) for each k nearer than that, less the sum of these.
    """
    far = torch.where(other > 0, distance, torch.inf).sort(-1).values
    limit = (margin + distance).contiguous()
    nearer = torch.searchsorted(far.detach(), limit.detach())
    sums = torch.nn.functional.pad(far.masked_fill(far.isinf(), 0).cumsum(-1), (1, 0))
    return (same * (nearer * limit - sums.gather(-1, nearer))).sum(-1)


def logistic(h: Tensor, labels: Tensor, valid: Tensor | None = None) -> Tensor:
    """The mean of log(1 + e^Θ) − s Θ over pairs, Θ = h·h′/2 (DPSH, DSDH, DBDH); without overflow for any Θ."""
    same, other = pairs(h, labels, valid)
    theta = h @ h.mT / 2
    return pair_mean(softplus(theta) - same * theta, same + other)


def ridge_residual(h: Tensor, labels: Tensor, ridge: float, valid: Tensor | None = None) -> Tensor:
    """min over W of the mean over images of ‖y − W h‖², plus ridge·‖W‖² (..., of a batch), y one-hot.

    With K = H Hᵀ + λ, λ = ridge · images, it is ridge · Σ (K⁻¹)_ij over the pairs of one class, an image with itself
    among them: neither W nor the number of classes is needed. NaN where h has outgrown its float, and K cannot be
    factored, so that a training that runs away is seen by its loss (:mod:`lib.training.divergence`).
    """
    same, _ = pairs(h, labels, valid)
    counts = counted(h, labels, valid)
    h = h * counts[..., None]
    one_class = same + torch.diag_embed(counts)
    eye = torch.eye(h.shape[-2], dtype=h.dtype, device=h.device)
    penalty = ridge * counts.sum(-1).clamp_min(1)[..., None, None]
    factor, failed = torch.linalg.cholesky_ex(h @ h.mT + penalty * eye)
    residual = ridge * torch.cholesky_solve(one_class, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
    return residual.masked_fill(failed > 0, torch.nan)
