"""Structure-aware contrastive hashing (ACIR, Section 3.3, Equations 12 to 17).

    L_WSC = mean over pairs of w_i w_j · (−H s log S − e^H (1 − s) log(1 − S)) + α L_Q

S: how alike two codes are, from their Pearson coefficient over the bits. H: how alike the two images look, from their
fingerprints. s = 1 for one class. w: weights of the classes (Equation 16). What the paper leaves open is decided here:

* **S (erratum AC-3).** A Pearson coefficient r is negative for half of all pairs, and its log is not defined. S is
  (1 + r)/2, as in the authors' code; ``clamped`` takes r itself where it is positive, and a small number elsewhere,
  with no gradient there. The mean that r takes away is that of the bits of one code (AC-6), so that a code of equal
  bits has no direction, and S = 1/2 to all others.
* **H (AC-6).** Fingerprints are small copies of the images, their likeness is (1 + r)/2 or the cosine of the authors'
  code, both in [0, 1]. Section 3.3 speaks of positive, neutral and negative pairs, Equation 15 has weights: ``neutral``
  is a likeness below which a pair of one class counts nothing, and from which on 1; None: the weights.
* **L_Q (AC-4).** Equation 14 asks for the Pearson coefficient of |h| and a vector of ones, which is 0/0. Taken as 0,
  the term is constant, as printed and in the authors' code: no gradient, whatever α is. Ours has the cosine in its
  place, which still takes 0.01 everywhere for a perfect code (AC-4), plus the magnitude of Equation 2.
* **Where the sign is taken.** S does not change if a number is added to all bits of a code: nothing in L_SC keeps codes
  from being all +1. It is the tanh, the start and L_Q that do.
* **W_M L_SC (AC-7)** is element by element.
* **The mean** is over the B (B − 1) pairs of two images. The authors' code divides by B², pairs of an image with itself
  among them, whose S is 1: its contrast is (B − 1)/B of this one.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn.functional import adaptive_avg_pool2d, l1_loss

from lib import checks
from lib.errors import InputError
from lib.geometry import Sphere
from lib.losses.batch import image_mean, pair_mean, pairs
from lib.losses.codes import away_from_signs, cosines

QUANTISATIONS = ("ours", "printed", "code")
LIKENESSES = ("pearson", "cosine")

FLOOR = 1e-6
"""No S is nearer to 0 or 1, as its log would be infinite; that of the authors' code."""

SIDE = 16
"""Pixels of a fingerprint's side; the paper gives none, and the authors' code has 32 (AC-23)."""


class Parts(NamedTuple):
    """The loss and what it is made of; each a tensor of the batch shape ``(...)``."""

    total: Tensor
    contrast: Tensor
    quantisation: Tensor


def pearson(x: Tensor) -> Tensor:
    """Equation 12 of all pairs of rows ``x: (..., B, n)``, (..., B, B): over the n numbers of a row.

    A row of n equal numbers has no direction; it is 0 to all others.

    >>> pearson(torch.tensor([[0.0, 1.0, 2.0], [3.0, 5.0, 7.0], [1.0, 1.0, 1.0]])).round(decimals=4)[0].tolist()
    [1.0, 1.0, 0.0]
    """
    unit = _centred(x)
    return unit @ unit.mT


def fingerprints(images: Tensor, side: int = SIDE) -> Tensor:
    """Small copies of ``images: (n, channels, height, width)``, each pixel a mean: (n, channels · side²).

    The side of the authors' code is 32 (:data:`SIDE`). Of an image with fewer pixels than that on a side some are
    repeated, so that all images have fingerprints of one length. Raises InputError for another shape.
    """
    checks.whole("side", side, least=2)
    if images.ndim != 4 or 0 in images.shape[1:]:
        raise InputError(f"images are {tuple(images.shape)}: expected (n, channels, height, width)")
    return adaptive_avg_pool2d(images.float(), side).flatten(1)


def likeness(fingerprints: Tensor, kind: str = "pearson") -> Tensor:
    """H: how alike all pairs of ``fingerprints: (..., B, p)`` are, (..., B, B) in [0, 1].

    "pearson" is (1 + r)/2, which brightness and contrast do not change. "cosine" is that of the authors' code; negative
    only for pixels with negative values, and then 0. Of bright images it is near 1 whatever they show.
    """
    if kind not in LIKENESSES:
        raise InputError(f"likeness = {kind!r} is unknown; choose one of {', '.join(LIKENESSES)}")
    # Rounding takes both a little beyond 0 and 1.
    return (cosines(fingerprints) if kind == "cosine" else (1 + pearson(fingerprints)) / 2).clamp(0, 1)


def class_weights(labels: ArrayLike) -> tuple[float, ...]:
    """Equation 16: w_c = N/(N_c · C) of the classes 0 to C − 1 that ``labels: (n,)`` have.

    Raises InputError for labels that are no whole numbers from 0 on, and for a class without an image.

    >>> class_weights([0, 0, 0, 1])
    (0.6666666666666666, 2.0)
    """
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or not len(labels) or labels.min() < 0:
        given = np.array2string(labels, threshold=6)
        raise InputError(f"labels are {given}: expected one whole number from 0 on for each image, −1 is none")
    counts = np.bincount(labels)
    if (counts == 0).any():
        raise InputError(f"no image has class {counts.argmin()}: number the classes from 0 on, without gaps")
    return tuple((counts.sum() / (counts * len(counts))).tolist())


def reconstruction(images: Tensor, rebuilt: Tensor) -> Tensor:
    """The mean of |x − x̂| over all numbers of ``images`` and ``rebuilt``, of one shape (Section 3.4)."""
    if images.shape != rebuilt.shape:
        raise InputError(f"the images are {tuple(images.shape)}, but what is rebuilt is {tuple(rebuilt.shape)}")
    return l1_loss(rebuilt, images)


def quantisation(h: Tensor, form: str = "ours") -> Tensor:
    """L_Q of each code ``h: (..., B, bits)``, (..., B); ``form``: one of :data:`QUANTISATIONS`.

    ========  =======================================================================================
    ours      log(2 − cos(|h|, 1)) + mean of ||h| − 1|: 0 for a code of −1 and +1, and only there
    printed   log(2 − r(|h|, 1)), r = 0 for 0/0: log 2 for any h (Equation 14)
    code      log(1 + d), d = (1 − r)/2: log 1.5 for any h
    ========  =======================================================================================
    """
    if form not in QUANTISATIONS:
        raise InputError(f"quantisation = {form!r} is unknown; choose one of {', '.join(QUANTISATIONS)}")
    magnitudes, ones = h.abs(), torch.ones_like(h)
    if form == "ours":
        cosine = (Sphere().project(magnitudes) * Sphere().project(ones)).sum(-1)
        return (2 - cosine).clamp_min(1).log() + away_from_signs(h).mean(-1)  # rounding takes a cosine beyond 1
    r = (_centred(magnitudes) * _centred(ones)).sum(-1)
    return (2 - r).log() if form == "printed" else (1 + (1 - r) / 2).log()


def _centred(x: Tensor) -> Tensor:
    """Rows (..., n) less their mean, of unit length; 0 for equal numbers, which rounding would give a direction."""
    centred = x - x.mean(-1, keepdim=True)
    noise = 4 * torch.finfo(x.dtype).eps * x.detach().abs().amax(-1, keepdim=True)
    return Sphere().project(centred.masked_fill(centred.detach().abs().amax(-1, keepdim=True) <= noise, 0))


@dataclass(frozen=True)
class StructureAware:
    """L_WSC with these settings.

    alpha: weight of L_Q. The published 0.5 belongs to a term without a gradient, where no value does anything; at 0.5
    ours holds bits where they begin. quantisation, likeness: see :func:`quantisation`, :func:`likeness`. clamped: S
    from r alone (AC-3). even: a control that is in no paper: all pairs of one class have one weight, the mean of what
    their looks would give them, and all pairs of two classes another; so the loss pulls and pushes as hard as with
    looks, and no pair differs by its own. neutral: see above. class_weights: of :func:`class_weights`, all alike if
    empty. looks: weigh pairs by H, so that every call needs ``prints``; otherwise labels alone decide, which is
    Equation 13 with class weights. Raises InputError for a value without meaning.
    """

    alpha: float = 0.1
    quantisation: str = "ours"
    likeness: str = "pearson"
    clamped: bool = False
    even: bool = False
    neutral: float | None = None
    class_weights: tuple[float, ...] = ()
    looks: bool = False

    @property
    def recordable(self) -> bool:
        """See :data:`lib.training.stacks.Loss`; class weights come from the CPU in every call."""
        return not self.class_weights

    def __post_init__(self) -> None:
        checks.values(alpha=self.alpha)
        for name in ("clamped", "even", "looks"):
            checks.switch(name, getattr(self, name))
        checks.several("class_weights", self.class_weights, each=checks.positive, least=0)
        if self.neutral is not None:
            checks.share("neutral", self.neutral)
        quantisation(torch.ones(1, 2), self.quantisation)
        likeness(torch.ones(1, 2), self.likeness)

    def __call__(
        self, h: Tensor, labels: Tensor, *, prints: Tensor | None = None, valid: Tensor | None = None
    ) -> Tensor:
        """Codes (..., B, bits), fingerprints (..., B, p) if ``looks``: the loss (...)."""
        return self.parts(h, labels, prints=prints, valid=valid).total

    def parts(self, h: Tensor, labels: Tensor, *, prints: Tensor | None = None, valid: Tensor | None = None) -> Parts:
        """The loss and its two terms, arguments as in a call; raises InputError for a batch that does not fit."""
        if self.looks != (prints is not None):
            given = "no prints" if self.looks else "prints"
            raise InputError(f"the loss has looks = {self.looks}, but gets {given}: looks = True needs fingerprints")
        if h.shape[-1] < 2:
            raise InputError("a code of one bit has no Pearson coefficient: take 2 bits or more")
        same, other = pairs(h, labels, valid)
        weights = self._of_classes(labels, h)
        of_pairs = weights[..., :, None] * weights[..., None, :]
        alike, apart = (1.0, 1.0) if prints is None else self._of_looks(prints.detach())
        if self.even and self.looks:
            alike, apart = (_shared(*pair) for pair in ((alike, same * of_pairs), (apart, other * of_pairs)))
        s = self.similarity(h)
        each = of_pairs * -(same * alike * s.log() + other * apart * (1 - s).log())
        contrast = pair_mean(each, same + other)
        bits_off = image_mean(quantisation(h, self.quantisation), valid)
        return Parts(contrast + self.alpha * bits_off, contrast, bits_off)

    def similarity(self, h: Tensor) -> Tensor:
        """S of all pairs of codes ``h: (..., B, bits)``, (..., B, B), from :data:`FLOOR` to 1 − :data:`FLOOR`."""
        r = pearson(h)
        return (r if self.clamped else (1 + r) / 2).clamp(FLOOR, 1 - FLOOR)

    def _of_looks(self, prints: Tensor) -> tuple[Tensor, Tensor]:
        """The weights of pairs of one class, and of two, from fingerprints ``prints: (..., B, p)``."""
        h = likeness(prints, self.likeness)
        return (h if self.neutral is None else (h >= self.neutral).to(h.dtype)), h.exp()

    def _of_classes(self, labels: Tensor, h: Tensor) -> Tensor:
        if not self.class_weights:
            return h.new_ones(labels.shape)
        n = len(self.class_weights)
        checks.codes("labels", labels, n, f"there are weights of {n} classes")
        return h.new_tensor(self.class_weights)[labels]


def _shared(values: Tensor, weights: Tensor) -> Tensor:
    """The weighted mean (..., 1, 1) of ``values`` and ``weights``, both (..., B, B); 0 where all weights are."""
    total = weights.sum((-2, -1), keepdim=True)
    return (values * weights).sum((-2, -1), keepdim=True) / total.masked_fill(total == 0, 1)
