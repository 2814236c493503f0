"""Scores of novelty against torchmetrics, scikit-image, scipy and loops."""

import math

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from scipy.spatial.distance import mahalanobis as one_mahalanobis
from sklearn.covariance import LedoitWolf

from lib.errors import InputError
from lib.metrics import novelty


def images(n=2, channels=3, side=192, seed=0):
    generator = torch.Generator().manual_seed(seed)
    coarse = torch.rand(n, channels, side // 8, side // 8, generator=generator)
    smooth = torch.nn.functional.interpolate(coarse, size=(side, side), mode="bilinear")
    return (0.8 * smooth + 0.2 * torch.rand(n, channels, side, side, generator=generator)).clamp(0, 1)


def noisy(x, amount, seed=1):
    return (x + amount * torch.randn(x.shape, generator=torch.Generator().manual_seed(seed))).clamp(0, 1)


def by_filters(x, y, scales):
    """Equation 18 of two grey images with filters of scipy, and only where the window lies inside the image."""
    powers = np.array(novelty.WEIGHTS[:scales]) / sum(novelty.WEIGHTS[:scales]) * sum(novelty.WEIGHTS)

    def blurred(image):
        return gaussian_filter(image, 1.5, truncate=5 / 1.5)[5:-5, 5:-5]

    value = 1.0
    for scale, power in enumerate(powers):
        a, b = blurred(x), blurred(y)
        contrast = (2 * (blurred(x * y) - a * b) + 0.0009) / (blurred(x * x) - a * a + blurred(y * y) - b * b + 0.0009)
        luminance = (2 * a * b + 0.0001) / (a * a + b * b + 0.0001)
        value *= max(0, (contrast * luminance if scale == scales - 1 else contrast).mean()) ** power
        x, y = (image.reshape(len(image) // 2, 2, -1, 2).mean(axis=(1, 3)) for image in (x, y))
    return value


@pytest.mark.parametrize("scales", [1, 5])
@pytest.mark.parametrize("amount", [0.02, 0.3])
def test_the_similarity_is_equation_18(scales, amount):
    x = images(channels=1).double()
    y = noisy(x, amount)
    expected = [by_filters(a[0].numpy(), b[0].numpy(), scales) for a, b in zip(x, y, strict=True)]
    assert novelty.ms_ssim(x, y, scales).numpy() == pytest.approx(expected, abs=1e-10)
    assert novelty.ms_ssim(x.float(), y.float(), scales).numpy() == pytest.approx(expected, abs=1e-4)
    assert novelty.ms_ssim(x, x, scales).numpy() == pytest.approx(1, abs=1e-6)
    assert scales == 1 or novelty.ms_ssim(x, 1 - x, scales).eq(0).all()


@pytest.mark.parametrize(("side", "scales"), [(11, 1), (21, 1), (22, 2), (176, 5)])
def test_small_images_have_fewer_scales(side, scales):
    x = images(n=1, channels=1, side=max(side, 16))[..., :side, :side]
    assert torch.equal(novelty.ms_ssim(x, noisy(x, 0.1)), novelty.ms_ssim(x, noisy(x, 0.1), scales=scales))


def test_the_residual_is_l1_for_grey_and_structure_for_colour():
    colour, grey = images(), images(channels=1)
    three = grey.expand(-1, 3, -1, -1)
    for x, kind in ((colour, "ms-ssim"), (grey, "l1"), (three, "l1")):
        y = noisy(x, 0.1)
        assert (novelty.residual(x, y) == novelty.residual(x, y, kind)).all()
    mixed, lossy = torch.cat([three, colour]), noisy(torch.cat([three, colour]), 0.1)
    alone = [novelty.residual(mixed[i : i + 1], lossy[i : i + 1])[0] for i in range(len(mixed))]
    assert novelty.residual(mixed, lossy) == pytest.approx(alone)  # each image by its own kind
    y = noisy(grey, 0.1)
    assert novelty.residual(grey, y) == pytest.approx(np.abs(grey.numpy() - y.numpy()).mean(axis=(1, 2, 3)))
    y = noisy(colour, 0.1)
    assert novelty.residual(colour, y) == pytest.approx(1 - novelty.ms_ssim(colour, y).numpy())


def test_the_threshold_lets_most_training_images_pass():
    scores = np.random.default_rng(0).normal(5, 2, size=20000)
    assert novelty.threshold(scores) == pytest.approx(11, abs=0.1)
    assert (scores > novelty.threshold(scores)).mean() == pytest.approx(0.00135, abs=0.001)


@pytest.mark.parametrize("bits", [8, 16, 24])
def test_the_chance_in_a_ball_by_drawing(bits):
    rng = np.random.default_rng(0)
    centres, codes = rng.integers(2, size=(4000, 4, bits)), rng.integers(2, size=(4000, 1, bits))
    inside = (centres != codes).sum(axis=2).min(axis=1) <= novelty.ball_radius(bits)
    assert inside.mean() == pytest.approx(novelty.chance_in_a_ball(bits, 4), abs=0.025)
    assert novelty.chance_in_a_ball(128, 16) == pytest.approx(3e-7, rel=0.2)  # as the errata say


def test_mahalanobis_class_by_class():
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    training = rng.normal(size=(60, 5)) @ rng.normal(size=(5, 5)) + 4 * labels[:, None]
    x = rng.normal(size=(7, 5))
    means = [training[labels == c].mean(axis=0) for c in range(3)]
    residues = np.stack([row - means[c] for row, c in zip(training, labels, strict=True)])
    inverse = np.linalg.inv(LedoitWolf(assume_centered=True).fit(residues).covariance_)
    expected = [min(one_mahalanobis(row, mean, inverse) for mean in means) for row in x]
    assert novelty.mahalanobis(x, training, labels) == pytest.approx(expected)


def test_separation_pair_by_pair():
    rng = np.random.default_rng(0)
    known, novel = rng.integers(8, size=60), rng.integers(4, 12, size=40)
    auroc = np.mean([(b > a) + 0.5 * (a == b) for a in known for b in novel])
    limit = min(t for t in range(12) if (known <= t).mean() >= 0.95)
    found = novelty.separation(known, novel)
    assert found["auroc"] == pytest.approx(auroc)
    assert found["fpr95"] == pytest.approx((novel <= limit).mean())


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: novelty.ms_ssim(torch.zeros(1, 1, 8, 8), torch.zeros(1, 1, 8, 8)), "window"),
        (lambda: novelty.ms_ssim(torch.zeros(1, 1, 32, 32), torch.zeros(1, 1, 32, 32), scales=5), "allow 2 scales"),
        (lambda: novelty.ms_ssim(255 * torch.ones(1, 1, 32, 32), torch.zeros(1, 1, 32, 32)), "scale them"),
        (lambda: novelty.residual(torch.zeros(1, 1, 32, 32), torch.zeros(1, 1, 16, 16)), "rebuilt"),
        (lambda: novelty.residual(torch.zeros(1, 1, 32, 32), torch.zeros(1, 1, 32, 32), "l2"), "auto, l1"),
        (lambda: novelty.threshold([]), "training"),
        (lambda: novelty.separation([1.0], [float("nan")]), "novel"),
        (lambda: novelty.mahalanobis([[1.0]], [[1.0]], ["a", "b"]), "labels"),
        (lambda: novelty.mahalanobis([[1.0]], [[1.0], [2.0]], ["a", None]), "training image 1 has no label"),
        (lambda: novelty.mahalanobis([[float("nan")]], [[1.0], [2.0]], ["a", "a"]), "features of row 0 hold NaN"),
        (lambda: novelty.mahalanobis([[1.0]], [[1.0], [float("nan")]], ["a", "a"]), "training features of row 1"),
        (lambda: novelty.residual(*2 * [torch.zeros(1, 1, 32, 32, dtype=torch.uint8)]), "images / 255"),
        (
            lambda: novelty.mahalanobis([[math.inf]], [[1.0], [2.0]], ["a", "a"]),
            "features of row 0 hold NaN or infinity",
        ),
        (lambda: novelty.residual(*2 * [torch.full((1, 1, 32, 32), torch.nan)], "l1"), "row 0 hold NaN"),
        (lambda: novelty.residual(*2 * [torch.full((1, 1, 32, 32), torch.inf)], "l1"), "row 0 hold NaN or infinity"),
    ],
)
def test_what_has_no_meaning_is_refused_in_words(call, words):
    with pytest.raises(InputError, match=words):
        call()
