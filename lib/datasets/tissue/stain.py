"""From stain density to colour: each patient's slide has its own dyes, light, focus and camera noise."""

from dataclasses import dataclass

import numpy as np

# Optical density of haematoxylin and eosin in red, green and blue (Macenko et al. 2009, reference slide).
HAEMATOXYLIN = np.array([0.5626, 0.7201, 0.4062])
EOSIN = np.array([0.2159, 0.8012, 0.5581])


@dataclass(frozen=True)
class Slide:
    """How one patient's slide looks.

    ``dyes``: (2, 3) optical density of haematoxylin and eosin at density 1; ``light``: (3,) bare glass, 0 to 255;
    ``blur``: 0 (sharp) to 1; ``noise``: deviation in grey values; ``shrinkage``: how far the tissue has shrunk.
    """

    dyes: np.ndarray
    light: np.ndarray
    blur: float
    noise: float
    shrinkage: float


def of_patient(seed: int, stream: int, patient: int) -> Slide:
    """The slide of patient number ``patient`` in the set drawn from ``seed``, from its random ``stream``."""
    rng = np.random.default_rng([seed, stream, patient])
    reddish = rng.uniform(0, 0.3)
    pure = np.stack([HAEMATOXYLIN + reddish * EOSIN, EOSIN]) + rng.normal(0, 0.035, (2, 3))
    unit = pure / np.linalg.norm(pure, axis=1, keepdims=True)
    strength = np.exp(rng.normal(0, 0.18, (2, 1)))
    return Slide(
        dyes=(unit * strength).astype(np.float32),
        light=(rng.uniform(228, 246) + rng.normal(0, 3, 3)).astype(np.float32),
        blur=rng.uniform(0.1, 0.7),
        noise=rng.uniform(1.0, 3.5),
        shrinkage=float(np.exp(rng.normal(0, 0.05))),
    )


def _soften(image: np.ndarray, amount: float) -> np.ndarray:
    """``image`` (h, w, 3) mixed with its 1-2-1 average along both axes; ``amount`` 0 (sharp) to 1."""
    for axis in (0, 1):
        edge = [(1, 1) if i == axis else (0, 0) for i in range(3)]
        padded = np.pad(image, edge, mode="edge")
        before, after = (padded[:-2], padded[2:]) if axis == 0 else (padded[:, :-2], padded[:, 2:])
        image = image * (1 - amount / 2) + (before + after) * (amount / 4)
    return image


def develop(density: np.ndarray, slide: Slide, rng: np.random.Generator) -> np.ndarray:
    """The photograph (h, w, 3) uint8 of stain ``density`` (2, h, w: haematoxylin, eosin), by Beer-Lambert."""
    light = slide.light * np.exp(-np.moveaxis(density, 0, -1) @ slide.dyes)
    light = _soften(light, np.float32(slide.blur))
    light += np.float32(slide.noise) * rng.standard_normal(light.shape, dtype=np.float32)
    return np.clip(light + 0.5, 0, 255).astype(np.uint8)
