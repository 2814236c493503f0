"""The classical texture descriptor: colour, local binary patterns, co-occurrence and Gabor energies.

In the spirit of Kather et al. 2016 (Multi-class texture analysis in colorectal cancer histology, doi
10.1038/srep27988), who compared these families on the tiles that the Hyper-DINO paper retrieves. It is computed
with scikit-image, needs no weights and no training, and stands beside every learned encoder as the yardstick.

The whole image is first resized to 96 × 96 pixels (aspect ratio not kept, so nothing is cut off); all radii,
distances and wavelengths below are in pixels of that working size. Directions are averaged, so that a tile and
the same tile turned by 90° have the same descriptor.
"""

import hashlib
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np
import scipy.fft
import skimage
from PIL import Image
from skimage.color import rgb2hed, rgb2hsv
from skimage.feature import graycomatrix, graycoprops, local_binary_pattern

# scikit-image releases the interpreter lock in its inner loops: two threads take 0.55 of the time of one.
WORKERS = min(4, os.cpu_count() or 1)

SIZE = 96
CHANNELS = ("red", "green", "blue", "hue_cos", "hue_sin", "saturation", "value", "hematoxylin", "eosin", "dab")
STATISTICS = ("mean", "std", "skewness", "p10", "p90")
LBP = ((1, 8), (2, 16), (3, 24))
GLCM_CHANNELS = ("grey", "hematoxylin")
HEMATOXYLIN_MAX = 0.2
GLCM_LEVELS = 32
GLCM_DISTANCES = (1, 2, 4, 8)
GLCM_PROPERTIES = ("contrast", "correlation", "energy", "homogeneity", "dissimilarity")
GABOR_WAVELENGTHS = (3.0, 6.0, 12.0, 24.0)
GABOR_ORIENTATIONS = 6
GABOR_STATISTICS = ("mean", "std", "anisotropy")

NAMES: tuple[str, ...] = (
    *(f"colour_{channel}_{statistic}" for channel in CHANNELS for statistic in STATISTICS),
    *(f"lbp_r{radius}_{code}" for radius, points in LBP for code in range(points + 2)),
    *(
        f"glcm_{channel}_{name}_d{distance}"
        for channel in GLCM_CHANNELS
        for name in GLCM_PROPERTIES
        for distance in GLCM_DISTANCES
    ),
    *(f"gabor_{name}_w{wavelength:g}" for name in GABOR_STATISTICS for wavelength in GABOR_WAVELENGTHS),
)


@dataclass(frozen=True)
class Texture:
    """The texture descriptor behind the interface of an encoder."""

    name: str = field(default="texture", init=False)
    dim: int = field(default=len(NAMES), init=False)

    @property
    def provenance(self) -> dict[str, str]:
        """What the numbers depend on: this module's source and the library that computes them."""
        source = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
        return {"encoder": self.name, "source_sha256": source, "scikit-image": skimage.__version__}

    def encode(self, images: Sequence[Image.Image | np.ndarray]) -> np.ndarray:
        """Descriptors of images of any size and mode as (n, dim) float32, every number finite.

        images: of Pillow, or (h, w, 3) uint8 each.
        """
        with ThreadPoolExecutor(WORKERS) as pool:
            rows = list(pool.map(describe, images))
        return np.array(rows, dtype=np.float32).reshape(len(rows), self.dim)


def describe(image: Image.Image | np.ndarray) -> np.ndarray:
    """The descriptor of one image, (dim,) float64 in the order of :data:`NAMES`."""
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    image = image.convert("RGB").resize((SIZE, SIZE), Image.Resampling.BILINEAR)
    rgb = np.asarray(image)
    grey = np.asarray(image.convert("L"))
    hed = np.moveaxis(rgb2hed(rgb), -1, 0)
    grey_unit = grey / 255.0
    return np.concatenate(
        [_colour(rgb, hed), _lbp(grey), _glcm(grey_unit), _glcm(hed[0] / HEMATOXYLIN_MAX), _gabor(grey_unit)]
    )


def _colour(rgb: np.ndarray, hed: np.ndarray) -> np.ndarray:
    """Statistics per channel; hue, an angle, enters as the point saturation · (cos, sin)."""
    hue, saturation, value = np.moveaxis(rgb2hsv(rgb), -1, 0)
    angle = 2 * np.pi * hue
    plane = [saturation * np.cos(angle), saturation * np.sin(angle), saturation, value]
    pixels = np.concatenate([np.moveaxis(rgb / 255.0, -1, 0), plane, hed]).reshape(len(CHANNELS), -1)
    mean = pixels.mean(axis=1)
    centred = pixels - mean[:, None]
    std = np.sqrt((centred * centred).mean(axis=1))
    # The floor gives a constant channel skewness 0 instead of 0/0; 8-bit channels that vary are far above it.
    unit = centred / np.maximum(std, 1e-6)[:, None]
    skewness = (unit * unit * unit).mean(axis=1)
    p10, p90 = np.quantile(pixels, [0.1, 0.9], axis=1)
    return np.stack([mean, std, skewness, p10, p90], axis=1).ravel()


def _lbp(grey: np.ndarray) -> np.ndarray:
    """Relative frequency of each uniform, rotation-invariant binary pattern at every radius."""
    histograms = []
    for radius, points in LBP:
        codes = local_binary_pattern(grey, points, radius, method="uniform").astype(int)
        histograms.append(np.bincount(codes.ravel(), minlength=points + 2) / codes.size)
    return np.concatenate(histograms)


def _glcm(unit: np.ndarray) -> np.ndarray:
    """Haralick properties of a channel from 0 to 1, averaged over four directions: property by distance."""
    # The minimum puts 1.0, and stain denser than on nearly all real slides, into the last level.
    levels = np.minimum(unit * GLCM_LEVELS, GLCM_LEVELS - 1).astype(np.uint8)
    angles = [0, np.pi / 4, np.pi / 2, 3 * np.pi / 4]
    matrix = graycomatrix(levels, GLCM_DISTANCES, angles, GLCM_LEVELS, symmetric=True, normed=True)
    return np.concatenate([graycoprops(matrix, name).mean(axis=1) for name in GLCM_PROPERTIES])


def _gabor(unit: np.ndarray) -> np.ndarray:
    """Mean and spread of the Gabor magnitude and its dependence on direction, per wavelength; borders wrap."""
    spectrum = scipy.fft.fft2(unit - unit.mean())
    magnitude = np.abs(scipy.fft.ifft2(spectrum * _gabor_bank()))
    per_direction = magnitude.mean(axis=(-2, -1))
    mean = per_direction.mean(axis=1)
    std = magnitude.std(axis=(-2, -1)).mean(axis=1)
    # The floor makes a constant image isotropic instead of 0/0.
    anisotropy = per_direction.std(axis=1) / np.maximum(mean, 1e-6)
    return np.concatenate([mean, std, anisotropy])


@lru_cache(maxsize=1)
def _gabor_bank() -> np.ndarray:
    """Frequency responses (wavelength, orientation, SIZE, SIZE) of complex Gabor filters one octave wide.

    Each is a Gaussian of peak 1 around (cos, sin) / wavelength, at half height where the frequency is 2/3 and 4/3 of
    the centre (one octave), so that a grating of amplitude a at the filter's wavelength and direction answers a / 2.
    """
    frequency = scipy.fft.fftfreq(SIZE)
    centre = 1 / np.array(GABOR_WAVELENGTHS)[:, None, None, None]
    theta = np.pi * np.arange(GABOR_ORIENTATIONS)[:, None, None] / GABOR_ORIENTATIONS
    dx = frequency[None, :] - centre * np.cos(theta)
    dy = frequency[:, None] - centre * np.sin(theta)
    width = centre / 3 / np.sqrt(2 * np.log(2))
    return np.exp(-(dx**2 + dy**2) / (2 * width**2))
