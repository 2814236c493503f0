"""Images that belong to no class of the archive: scores of novelty, ACIR's two rules, and how well a score separates.

Every score grows with novelty. ACIR (Section 3.4) rebuilds an image from its features and takes what is lost as the
score, its threshold the mean + 3 standard deviations; in addition it calls novel what lies in no Hamming ball around a
class centre. The set behind the threshold is not named and only the upper side is tested (erratum AC-7): here it is the
training images, and the upper side. The rule of the balls depends on the length of the code more than on the model
(AC-21, :func:`chance_in_a_ball`), so methods are compared by :func:`separation`, which needs no threshold, beside two
opponents that need no decoder: the distance to the nearest training feature, and :func:`mahalanobis`.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from scipy.stats import binom
from sklearn.covariance import LedoitWolf
from sklearn.metrics import roc_auc_score, roc_curve
from torch import Tensor
from torch.nn.functional import avg_pool2d

from lib import checks
from lib.errors import InputError
from lib.metrics.keys import classes_of

WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
"""Exponents of the scales, from fine to coarse, of Wang et al. (2003); the paper gives none (AC-23)."""

WINDOW, SIGMA = 11, 1.5
"""Pixels of the Gaussian window, and its width (Wang et al.)."""

PASSING = 0.95
"""The share of known images that pass, where :func:`separation` looks at how many novel ones do."""


def ms_ssim(x: Tensor, y: Tensor, scales: int | None = None) -> Tensor:
    """Equation 18: the structural similarity of each pair of images at several scales, (n,) from 0 to 1.

    Luminance at the coarsest scale times contrast and structure at every scale, to the powers :data:`WEIGHTS`; for
    fewer scales the finest ones, their powers scaled to the same sum. A negative structure has no such power and counts
    0. scikit-image has one scale only; torchmetrics, not among what this library needs, differs by up to 10⁻³: at the
    coarsest scale its window looks beyond the rim of the image.

    Args:
        x, y: (n, channels, height, width), values from 0 to 1; channels are averaged.
        scales: 1 to 5, each half as fine as the one before; as many as the images allow if not given.

    Raises:
        InputError: for other shapes or values, and for images too small for a window of 11 pixels at the last scale.
    """
    possible = _scales(x, y)
    scales = possible if scales is None else scales
    checks.whole("scales", scales)
    if scales > possible:
        raise InputError(f"images of {min(x.shape[2:])} pixels allow {possible} scales, not {scales}")
    powers = np.array(WEIGHTS[:scales]) / sum(WEIGHTS[:scales]) * sum(WEIGHTS)
    product = torch.ones(len(x), dtype=x.dtype, device=x.device)
    for scale, power in enumerate(powers.tolist()):
        luminance, structure = _ssim(x, y)
        whole = structure * luminance if scale == scales - 1 else structure
        product = product * whole.mean((1, 2, 3)).relu() ** power
        x, y = avg_pool2d(x, 2), avg_pool2d(y, 2)
    return product


def _scales(x: Tensor, y: Tensor) -> int:
    if x.ndim != 4 or x.shape != y.shape or not x.numel():
        raise InputError(
            f"images are {tuple(x.shape)} and {tuple(y.shape)}: expected (n, channels, height, width) twice"
        )
    for name, images in (("images", x), ("rebuilt images", y)):
        low, high = images.aminmax()
        if not (low >= -1e-6 and high <= 1 + 1e-6):  # an interpolated image goes beyond by rounding
            raise InputError(f"the {name} go from {low.item():.3g} to {high.item():.3g}: scale them to 0 to 1")
    side = min(x.shape[2:])
    if side < WINDOW:
        raise InputError(f"images of {side} pixels are smaller than the window of {WINDOW}: use the L1 residual")
    return min(len(WEIGHTS), int(np.log2(side / WINDOW)) + 1)


def _ssim(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Luminance, and contrast times structure, at every place of the window: (n, channels, h − 10, w − 10)."""
    maps = torch.stack([x, y, x * x, y * y, x * y])
    down, across = (_band(side, x) for side in x.shape[2:])  # a Gaussian window is one along each side
    mean_x, mean_y, square_x, square_y, product = down.mT @ maps @ across
    var_x, var_y = square_x - mean_x**2, square_y - mean_y**2
    both = product - mean_x * mean_y
    c1, c2 = 0.01**2, 0.03**2
    luminance = (2 * mean_x * mean_y + c1) / (mean_x**2 + mean_y**2 + c1)
    return luminance, (2 * both + c2) / (var_x + var_y + c2)


def _band(side: int, like: Tensor) -> Tensor:
    """(side, side − 10): each column a Gaussian window at its place, of sum 1. Products with it are far faster than
    convolutions of a single channel."""
    at = torch.arange(side, dtype=like.dtype, device=like.device)
    apart = at[:, None] - at[: side - WINDOW + 1] - WINDOW // 2
    line = torch.exp(-(apart**2) / (2 * SIGMA**2)).masked_fill(apart.abs() > WINDOW // 2, 0)
    return line / line.sum(0)


def residual(images: Tensor, rebuilt: Tensor, kind: Literal["auto", "l1", "ms-ssim"] = "auto") -> np.ndarray:
    """What a decoder has lost of each image (Section 3.4): mean |x − x̂| or 1 − MS-SSIM, (n,) float64.

    ``images``, ``rebuilt``: (n, channels, height, width), from 0 to 1. "auto" is L1 for grey images (one channel, or
    equal ones) and MS-SSIM for colour: the end of the section, of which the beginning says the opposite (AC-7).
    """
    if kind not in ("auto", "l1", "ms-ssim"):
        raise InputError(f"kind = {kind!r} is unknown; choose one of auto, l1, ms-ssim")
    if images.shape != rebuilt.shape:
        raise InputError(f"the images are {tuple(images.shape)}, but what is rebuilt is {tuple(rebuilt.shape)}")
    for name, values in (("images", images), ("rebuilt images", rebuilt)):
        if not values.is_floating_point():
            raise InputError(f"the {name} are {values.dtype}: hand in fractions from 0 to 1, such as images / 255")
        checks.finite(f"the pixels of the {name}", values.detach().cpu().float().numpy())
    grey = (images == images[:, :1]).flatten(1).all(1) if kind == "auto" else torch.full((len(images),), kind == "l1")
    lost = (images - rebuilt).abs().flatten(1).mean(1)
    if not grey.all():
        lost[~grey] = 1 - ms_ssim(images[~grey], rebuilt[~grey])
    return lost.detach().cpu().double().numpy()


def threshold(scores: ArrayLike, sigmas: float = 3.0) -> float:
    """Equation 19, upper side: mean + 3 standard deviations of the ``scores: (n,)`` of training images.

    >>> threshold([1.0, 3.0])
    5.0
    """
    checks.not_negative("sigmas", sigmas)
    values = _scores("training", scores)
    return float(values.mean() + sigmas * values.std())


def ball_radius(bits: int) -> int:
    """The paper's radius of the Hamming ball around a class centre: bits/4 + 1, rounded down (Section 4.2).

    >>> [ball_radius(bits) for bits in (8, 16, 64, 128)]
    [3, 5, 17, 33]
    """
    checks.whole("bits", bits)
    return bits // 4 + 1


def chance_in_a_ball(bits: int, n_centres: int) -> float:
    """How probably a random code lies in at least one of ``n_centres`` balls around independent centres (AC-21).

    >>> [round(chance_in_a_ball(bits, 16), 3) for bits in (8, 16, 64)]
    [0.999, 0.831, 0.002]
    """
    checks.whole("n_centres", n_centres)
    inside = binom.cdf(ball_radius(bits), bits, 0.5)
    return float(-np.expm1(n_centres * np.log1p(-inside)))


def mahalanobis(features: ArrayLike, training: ArrayLike, labels: ArrayLike) -> np.ndarray:
    """The distance of each of ``features: (q, d)`` to the nearest class mean, in units of the spread in a class, (q,).

    Lee et al. (2018): one covariance for all classes of ``training: (n, d)`` with ``labels: (n,)``, here shrunk
    (Ledoit and Wolf), as features are often longer than there are images.
    """
    features, training = _features(features, training)
    classes, of = classes_of(labels, "training image")
    if of.shape != (len(training),):
        raise InputError(f"there are {of.size} labels, but {len(training)} training images")
    means = np.stack([training[of == c].mean(axis=0) for c in range(len(classes))])
    spread = LedoitWolf(assume_centered=True).fit(training - means[of])
    return cdist(features, means, "mahalanobis", VI=spread.precision_).min(axis=1)


def separation(known: ArrayLike, novel: ArrayLike) -> dict[str, float]:
    """How well a score tells ``novel: (m,)`` images from ``known: (n,)`` ones.

    auroc: the chance that a novel image scores higher than a known one, a tie counting half. fpr95: how many of the
    novel images pass where at least 95 percent of the known ones do; 0.95 by chance, 0 is best.

    >>> separation([0.0, 1.0, 2.0], [1.0, 3.0])
    {'auroc': 0.75, 'fpr95': 0.5}
    """
    known, novel = _scores("known", known), _scores("novel", novel)
    is_known = np.repeat([1, 0], [len(known), len(novel)])
    scores = -np.concatenate([known, novel])
    passed_novel, passed_known, _ = roc_curve(is_known, scores, drop_intermediate=False)
    at = np.argmax(passed_known >= PASSING)
    return {"auroc": float(roc_auc_score(is_known, scores)), "fpr95": float(passed_novel[at])}


def _scores(name: str, values: ArrayLike) -> np.ndarray:
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all():
        raise InputError(f"the scores of {name} images, shape {values.shape}, have to be finite numbers, one or more")
    return values


def _features(features: ArrayLike, training: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    features, training = np.asarray(features, dtype=np.float64), np.asarray(training, dtype=np.float64)
    if features.ndim != 2 or training.ndim != 2 or features.shape[1] != training.shape[1] or not len(training):
        raise InputError(
            f"features are {features.shape}, those of training {training.shape}: expected (q, d) and (n, d)"
        )
    checks.finite("the features", features)
    checks.finite("the training features", training)
    return features, training
