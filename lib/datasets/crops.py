"""Crops of decoded images, of any sizes, cut, resized, mirrored and normalised in batches on the device of the network.

It knows no tables, as :mod:`lib.datasets.pixels` does: what a network sees does not depend on who found the image.
"""

import functools
import math
from collections.abc import Iterable, Sequence

import numpy as np
import torch
from PIL import Image
from torch import Generator, Tensor
from torchvision.transforms.v2 import InterpolationMode

from lib.datasets.resampling import by_matrices, resampled, resized

ASPECT = (3 / 4, 4 / 3)
"""Width by height of a random crop, least and most, as torchvision has it."""

TRIES = 10
"""Random crops are drawn so many times at most until one lies within the image, as torchvision does."""


def planes(image: Image.Image | np.ndarray | Tensor) -> Tensor:
    """An image of any mode, or (h, w, 3) uint8, as (3, h, w) uint8; a tensor (3, h, w) as it is.

    Bytes stay in memory as they are, the colours of a pixel side by side.
    """
    if isinstance(image, Tensor):
        return image
    pixels = np.asarray(image.convert("RGB") if isinstance(image, Image.Image) else image)
    return torch.from_numpy(pixels if pixels.flags.writeable else pixels.copy()).permute(2, 0, 1)


def moved(images: Sequence[Tensor], device: torch.device) -> list[Tensor]:
    """Images (3, h, w) uint8 of any sizes on ``device``: to a GPU in one copy that nothing waits for."""
    if device.type == "cpu" or all(image.device.type == device.type for image in images):
        return [image.to(device) for image in images]
    flat = [image.permute(1, 2, 0).reshape(-1) for image in images]
    pinned = torch.empty(sum(map(len, flat)), dtype=torch.uint8, pin_memory=device.type == "cuda")
    parts = torch.cat(flat, out=pinned).to(device, non_blocking=True).split([len(x) for x in flat])
    return [part.view(*x.shape[1:], 3).permute(2, 0, 1) for part, x in zip(parts, images, strict=True)]


def shapes_of(images: Sequence[Tensor | None]) -> Tensor:
    """(n, 2) heights and widths of images (3, h, w); 0 for None."""
    return torch.tensor([(0, 0) if image is None else image.shape[1:] for image in images]).reshape(-1, 2)


def random_boxes(
    shapes: Tensor, area: tuple[float, float], generator: Generator, aspect: tuple[float, float] = ASPECT
) -> Tensor:
    """A random crop of each image as (n, 4) top, left, height, width, distributed as torchvision's RandomResizedCrop.

    shapes: (n, 2) heights and widths; area: least and most of an image that a crop covers; aspect: of width by height,
    uniform in its logarithm. An image for which :data:`TRIES` draws give no crop within it gets the largest central one
    with an allowed aspect. ``generator``: on the CPU.
    """
    height, width = shapes.T[..., None].double()
    u = torch.rand(len(shapes), TRIES + 1, 2, generator=generator, dtype=torch.float64)
    covered = height * width * (area[0] + (area[1] - area[0]) * u[:, :TRIES, 0])
    low, high = map(math.log, aspect)
    ratio = (low + (high - low) * u[:, :TRIES, 1]).exp()
    sides = torch.stack([(covered / ratio).sqrt().round(), (covered * ratio).sqrt().round()], dim=-1)
    fits = ((sides > 0) & (sides <= shapes[:, None])).all(-1)
    fallback = torch.cat([height.minimum((width / aspect[0]).round()), width.minimum((height * aspect[1]).round())], -1)
    first = sides[torch.arange(len(sides)), fits.long().argmax(1)]
    side = torch.where(fits.any(1, keepdim=True), first, fallback)
    free = shapes - side
    corner = torch.where(fits.any(1, keepdim=True), (u[:, TRIES] * (free + 1)).floor(), (free / 2).floor())
    return torch.cat([corner, side], dim=1).long()


def whole_boxes(shapes: Tensor) -> Tensor:
    """The whole of each image as (n, 4) top, left, height, width; shapes: (n, 2)."""
    return torch.cat([torch.zeros_like(shapes), shapes], dim=1)


def cut(
    images: Sequence[Tensor],
    boxes: Tensor,
    size: tuple[int, int],
    device: torch.device,
    *,
    interpolation: InterpolationMode = InterpolationMode.BICUBIC,
) -> Tensor:
    """The part of each image in its box, resized to ``size`` with antialiasing: (n, 3, *size) uint8 on ``device``.

    images: (3, h, w) uint8 each; boxes: (n, 4) top, left, height, width.
    """
    corners = boxes.tolist()
    crops = moved([x[:, t : t + h, j : j + w] for x, (t, j, h, w) in zip(images, corners, strict=True)], device)
    if by_matrices(device, crops):
        return resampled(crops, torch.zeros(len(crops), 2), boxes[:, 2:], size, interpolation)
    return torch.stack(resized(crops, [size] * len(crops), interpolation))


def central(
    images: Sequence[Tensor],
    shorter: int,
    size: int,
    device: torch.device,
    *,
    interpolation: InterpolationMode = InterpolationMode.BICUBIC,
) -> Tensor:
    """The middle of each image once its shorter side is resized to ``shorter``: (n, 3, size, size) uint8.

    images: (3, h, w) uint8 each, resized as by :func:`cut`, as torchvision's Resize and CenterCrop round.
    """
    shapes = shapes_of(images)
    scaled = shorter * shapes // shapes.amin(1, keepdim=True)
    corners = ((scaled - size) / 2).round().long()
    images = moved(images, device)
    if by_matrices(device, images):
        step = shapes / scaled
        return resampled(images, corners * step, size * step, (size, size), interpolation)
    whole = zip(resized(images, [(h, w) for h, w in scaled.tolist()], interpolation), corners.tolist(), strict=True)
    return torch.stack([x[:, top : top + size, left : left + size] for x, (top, left) in whole])


def mirrored(x: Tensor, flipped: Tensor) -> Tensor:
    """``x: (n, 3, h, w)`` with those images turned left for right that ``flipped: (n,)`` names."""
    return torch.where(flipped.to(x.device)[:, None, None, None], x.flip(3), x)


def normalised(x: Tensor, mean: Iterable[float], std: Iterable[float]) -> Tensor:
    """``x: (n, 3, h, w)`` uint8 as float32, (x / 255 - mean) / std."""
    mean, std = (_channels(tuple(values), x.device) for values in (mean, std))
    return (x.float() / 255 - mean) / std


@functools.cache
def _channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """A number for each channel on ``device``, (c, 1, 1), kept there: a copy for each batch would wait for the last."""
    with torch.inference_mode(False):
        return torch.tensor(values, device=device)[:, None, None]
