"""Images as an encoder that is fine-tuned sees them: random crops to learn from, one crop to be judged by.

They are decoded once (:mod:`lib.datasets.pixels`), then cropped a batch at a time on the device of the network. What is
random about an image depends on the seed, the step and its place in the batch alone: numbers are drawn for the whole
batch, however many processes share it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn

from lib import checks
from lib.datasets.crops import central, cut, mirrored, normalised, random_boxes
from lib.datasets.pixels import Decoded
from lib.training.multicrop import generator_of

Numbers = tuple[float, float, float]

DRAWS = 8
"""Random numbers that an image has of its own beside its crop; the first decides whether it is mirrored."""


@dataclass(frozen=True)
class Preparation:
    """How an image becomes the pixels of a network.

    ``size``: of the square that it sees (published: 224). ``resize``: test images are brought to this on the shorter
    side, then cropped in the middle (published: 256 for CUB, else 224). ``area``: least and most of an image that a
    training crop covers; the text does not say, the authors' code has 0.2 to 1 (HV-15). ``mean``, ``std``: of the
    encoder's own pretraining, see :meth:`of`. Raises InputError for a value without meaning.
    """

    size: int = 224
    resize: int = 224
    area: tuple[float, float] = (0.2, 1.0)
    mean: Numbers = (0.5, 0.5, 0.5)
    std: Numbers = (0.5, 0.5, 0.5)

    def __post_init__(self) -> None:
        checks.whole("size", self.size)
        checks.whole("resize", self.resize, least=self.size)
        checks.pair("area", self.area, checks.portion)

    @classmethod
    def of(cls, encoder: nn.Module, size: int = 224, resize: int | None = None) -> "Preparation":
        """With mean and deviation of a timm ``encoder``: 0.5 for ViT-S, those of ImageNet for DeiT-S and DINO."""
        return cls(size, size if resize is None else resize).seen_by(encoder)

    def seen_by(self, encoder: nn.Module) -> Self:
        """The same with the mean and the deviation that a timm ``encoder`` was pretrained with."""
        known = resolve_model_data_config(encoder)
        return replace(self, mean=tuple(known["mean"]), std=tuple(known["std"]))

    def varied(self, x: Tensor, u: Tensor) -> Tensor:
        """Training crops ``x: (b, 3, size, size)`` uint8, of which half are mirrored (Section 3.2).

        u: (b, :data:`DRAWS`) from 0 to 1 on the CPU, the random numbers of each image.
        """
        return mirrored(x, u[:, 0] < 0.5)


def random_views(
    images: Decoded,
    batches: Iterable[tuple[int, Tensor]],
    preparation: Preparation,
    seed: int,
    device: torch.device,
    *,
    part: slice = slice(None),
) -> Iterator[Tensor]:
    """Random crops, resized with bicubic interpolation (Section 3.2): (b, 3, size, size) float32 of each batch.

    batches: step and rows of the images. part: the places of a batch that this process embeds; its pixels do not depend
    on it. device: of the pixels.
    """
    shapes, size = images.shapes, (preparation.size, preparation.size)
    for step, rows in batches:
        generator = generator_of(seed, 2, step)
        boxes = random_boxes(shapes[rows], preparation.area, generator)[part]
        u = torch.rand(len(rows), DRAWS, generator=generator)[part]
        x = cut([images.images[row] for row in rows[part].tolist()], boxes, size, device)
        yield normalised(preparation.varied(x, u), preparation.mean, preparation.std)


def central_views(images: Decoded, preparation: Preparation, batch_size: int, device: torch.device) -> Iterator[Tensor]:
    """The shorter side resized, then the middle (Section 3.2): (b, 3, size, size) of all images in their order."""
    for start in range(0, len(images.images), batch_size):
        x = central(images.images[start : start + batch_size], preparation.resize, preparation.size, device)
        yield normalised(x, preparation.mean, preparation.std)
