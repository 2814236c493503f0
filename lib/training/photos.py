"""Images of a table as an encoder that is fine-tuned sees them: random crops to learn from, one crop to be judged by.

What is random about an image depends on the seed, the step and its place in the batch alone, however many processes
read images.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import torch
from timm.data import resolve_model_data_config
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset
from torchvision.transforms import v2

from lib import checks
from lib.datasets.images import read_image
from lib.datasets.table import ImageTable

Numbers = tuple[float, float, float]


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

    def training(self) -> v2.Compose:
        """A random crop, resized with bicubic interpolation, and mirrored half of the time (Section 3.2)."""
        crop = v2.RandomResizedCrop(self.size, self.area, interpolation=v2.InterpolationMode.BICUBIC)
        return v2.Compose([crop, v2.RandomHorizontalFlip(), *self._pixels()])

    def testing(self) -> v2.Compose:
        """The shorter side resized, then the middle (Section 3.2)."""
        resize = v2.Resize(self.resize, interpolation=v2.InterpolationMode.BICUBIC)
        return v2.Compose([resize, v2.CenterCrop(self.size), *self._pixels()])

    def _pixels(self) -> list[v2.Transform]:
        return [v2.ToImage(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(self.mean, self.std)]


class _Photos(Dataset):
    """Pixels of row ``i`` of the table under random number ``key``, asked for as (i, key)."""

    def __init__(self, table: ImageTable, transform: v2.Compose) -> None:
        self.table, self.transform = table, transform

    def __getitem__(self, asked: tuple[int, int]) -> Tensor:
        row, key = asked
        image = read_image(self.table.path(row))
        with torch.random.fork_rng(devices=[]):  # torchvision draws from the global state of the CPU
            torch.default_generator.manual_seed(key)
            return self.transform(image)


def random_views(
    table: ImageTable,
    batches: Iterable[tuple[int, Tensor]],
    preparation: Preparation,
    seed: int,
    *,
    part: slice = slice(None),
    workers: int = 0,
) -> Iterator[Tensor]:
    """Pixels (b, 3, size, size) of each of the ``batches``, given as step and rows of the table.

    part: the places of a batch that this process reads. workers: processes that read and crop ahead; 0 for none. The
    pixels do not depend on either. Raises BrokenImage for a file that cannot be read, naming it.
    """

    def asked() -> Iterator[list[tuple[int, int]]]:
        for step, rows in batches:
            keys = np.random.SeedSequence((seed, 2, step)).generate_state(len(rows), np.uint64) >> np.uint64(1)
            yield list(zip(rows.tolist(), keys.tolist(), strict=True))[part]

    return _loaded(table, preparation.training(), asked(), workers)


def central_views(table: ImageTable, preparation: Preparation, batch_size: int, workers: int = 0) -> Iterator[Tensor]:
    """Pixels (b, 3, size, size) of all rows of the table in their order, ``batch_size`` at a time."""
    asked = ([(row, 0) for row in part.tolist()] for part in torch.arange(len(table)).split(batch_size))
    return _loaded(table, preparation.testing(), asked, workers)


def _loaded(
    table: ImageTable, transform: v2.Compose, asked: Iterable[list[tuple[int, int]]], workers: int
) -> Iterator[Tensor]:
    # A generator of its own, since a loader draws a number when it starts.
    photos = _Photos(table, transform)
    return iter(DataLoader(photos, batch_sampler=asked, num_workers=workers, generator=torch.Generator()))
