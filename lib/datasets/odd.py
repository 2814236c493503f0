"""Pictures that belong to no archive of tissue: some are made from its own images, others are drawn, no licence.

A picture depends on the seed, its kind and its number only, and for what is made from an image on that image.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from PIL import Image
from scipy.ndimage import gaussian_filter

from lib import checks
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.files import whole

KIND = "odd pictures"

Draw = Callable[[np.ndarray, np.random.Generator], np.ndarray]
"""Takes an image (h, w, 3) from 0 to 1 and a source of chance; returns one of the same shape."""


def out_of_focus(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The image blurred by 3 to 6 percent of its side, as by a slide that lies askew."""
    width = rng.uniform(0.03, 0.06) * min(image.shape[:2])
    return gaussian_filter(image, (width, width, 0), mode="reflect")


def inverted(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Bright on dark, with its colours turned: as from a fluorescence microscope."""
    return 1 - image[..., rng.permutation(3)]


def pen_marks(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """One to three strokes of a felt pen across the image, in green, blue or black."""
    h, w = image.shape[:2]
    ink = np.array([(0.05, 0.45, 0.15), (0.08, 0.15, 0.6), (0.05, 0.05, 0.08)])[rng.integers(3)]
    y, x = np.mgrid[:h, :w] / min(h, w)
    cover = np.zeros((h, w))
    for _ in range(rng.integers(1, 4)):
        angle, bend, phase = rng.uniform(0, np.pi), rng.uniform(0, 0.1), rng.uniform(0, 6)
        along, across = x * np.cos(angle) + y * np.sin(angle), y * np.cos(angle) - x * np.sin(angle)
        middle = np.median(across) + rng.uniform(-0.3, 0.3) + bend * np.sin(6 * along + phase)
        cover = np.maximum(cover, np.clip((rng.uniform(0.05, 0.1) - np.abs(across - middle)) * 40, 0, 0.85))
    return image * (1 - cover[..., None]) + ink * cover[..., None]


def blank_glass(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A slide with nothing on it: nearly white, unevenly lit, a little dust."""
    h, w = image.shape[:2]
    y, x = np.mgrid[:h, :w] / min(h, w)
    light = rng.uniform(0.9, 0.97) - 0.05 * np.hypot(x - rng.uniform(0, 1), y - rng.uniform(0, 1))
    dust = gaussian_filter((rng.random((h, w)) < 0.001).astype(float), 0.01 * min(h, w)) * 0.02 * min(h, w)
    tint = 1 - rng.uniform(0, 0.03, 3)
    return (light - dust)[..., None] * tint + rng.normal(0, 0.004, (h, w, 1))


def radiograph(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A grey chest: a bright body with two dark lungs, ribs and a spine."""
    h, w = image.shape[:2]
    y, x = np.mgrid[:h, :w] / np.array([h, w]).reshape(2, 1, 1) - 0.5
    body = 1 / (1 + np.exp((np.hypot(x / rng.uniform(0.4, 0.55), y / rng.uniform(0.55, 0.8)) - 1) * 12))
    grey = 0.08 + 0.5 * body
    for side in (-1, 1):
        lung = np.hypot(
            (x - side * rng.uniform(0.18, 0.22)) / 0.14, (y + rng.uniform(0, 0.06)) / rng.uniform(0.28, 0.36)
        )
        grey -= 0.3 / (1 + np.exp((lung - 1) * 10))
    slope, pitch = rng.uniform(0.3, 0.8), rng.uniform(0.09, 0.13)
    ribs = np.exp(-(((y - slope * x**2 * 2 + slope * np.abs(x) * 0.5) % pitch - pitch / 2) ** 2) / (pitch / 7) ** 2)
    spine = np.exp(-((x / 0.05) ** 2)) * (0.8 + 0.2 * np.cos(2 * np.pi * y / rng.uniform(0.06, 0.09)))
    grey = grey + body * (0.12 * ribs + 0.25 * spine)
    grey = gaussian_filter(grey, 0.006 * min(h, w)) + rng.normal(0, 0.015, (h, w))
    return np.repeat(grey[..., None], 3, axis=2)


def printed_page(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A scanned letter: lines of small signs, black on white."""
    h, w = image.shape[:2]
    size = max(1, round(min(h, w) / rng.integers(60, 100)))
    page = np.zeros((h // size + 1, w // size + 1))
    signs = rng.random((20, 5, 3)) < 0.55
    for top in range(3, len(page) - 8, 8):
        end = page.shape[1] * rng.uniform(0.5, 0.95)
        for left in range(3, int(end) - 4, 4):
            if rng.random() < 0.85:  # the rest are blanks between words
                page[top : top + 5, left : left + 3] = signs[rng.integers(20)]
    ink = np.kron(page, np.ones((size, size)))[:h, :w]
    return np.repeat((rng.uniform(0.93, 1) - 0.85 * gaussian_filter(ink, 0.3 * size))[..., None], 3, axis=2)


def noise(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A number at random for each pixel and colour: what a broken file may look like."""
    return rng.random(image.shape)


ALTERED: dict[str, Draw] = {"out of focus": out_of_focus, "inverted": inverted, "pen marks": pen_marks}
"""Made from an image of the archive."""

DRAWN: dict[str, Draw] = {
    "blank glass": blank_glass,
    "radiograph": radiograph,
    "printed page": printed_page,
    "noise": noise,
}
"""Made from nothing."""

KINDS = ALTERED | DRAWN


def draw(kind: str, image: np.ndarray, seed: int, number: int) -> np.ndarray:
    """One picture of a ``kind`` of :data:`KINDS`, (h, w, 3) uint8.

    image: (h, w, 3) uint8, from which the altered kinds are made; for the others its size alone counts. Raises
    InputError for an unknown kind and an image of another shape, or below 16 pixels.
    """
    if kind not in KINDS:
        raise InputError(f"kind = {kind!r} is unknown; choose one of {', '.join(KINDS)}")
    if image.ndim != 3 or image.shape[2] != 3 or min(image.shape[:2]) < 16:
        raise InputError(f"the image is {image.shape}: expected (height, width, 3), 16 pixels or more")
    rng = np.random.default_rng([seed, list(KINDS).index(kind), number])
    values = KINDS[kind](image / 255, rng)
    return (255 * values.clip(0, 1)).round().astype(np.uint8)  # noise and dust go beyond black and white


def write(root: Path, images: ImageTable, n_each: int, seed: int, skip: tuple[str, ...] = ()) -> ImageTable:
    """Draw ``n_each`` pictures of every kind into the folder ``root``; what was drawn there before is replaced.

    Args:
        root: a folder of its own.
        images: from which the altered ones are made, drawn at random without the same one twice in a kind; all
            pictures have the size of theirs.
        n_each: of each kind; of the altered ones no more than there are ``images``.
        seed: decides every picture.
        skip: kinds that are left out.

    Returns:
        A table with label = kind, group = that of the image which an altered picture was made from, and made_from.
    """
    checks.whole("n_each", n_each)
    rng, rows = np.random.default_rng([seed, len(KINDS)]), []
    with whole(root, KIND) as draft:
        for kind in (kind for kind in KINDS if kind not in skip):
            (draft / kind.replace(" ", "_")).mkdir(parents=True)
            chosen = rng.permutation(len(images))[:n_each]
            for number in range(len(chosen) if kind in ALTERED else n_each):
                source = chosen[number % len(chosen)]
                picture = draw(kind, np.asarray(read_image(images.path(source))), seed, number)
                path = f"{kind.replace(' ', '_')}/{number:03d}.png"
                Image.fromarray(picture).save(draft / path, compress_level=1)
                origin = images.rows.iloc[source]
                group, made_from = (origin["group"], origin["image_id"]) if kind in ALTERED else (path, "")
                rows.append({"image_id": path, "path": path, "label": kind, "group": group, "made_from": made_from})
    return ImageTable(root.name, root, pd.DataFrame(rows), images.group_kind)
