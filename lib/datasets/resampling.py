"""Images resized in batches, bicubic and antialiased: by torchvision on a CPU, by products of matrices on a GPU.

torchvision takes images of one size at once, and resizes bytes in integers, with the same bits on every processor. On a
GPU the crops of a batch, each of a size of its own, would be hundreds of small kernels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2.functional import resize

PADDED = 2**26
"""Pixels that :func:`resampled` works on at once; as float32 they take 3/4 GiB."""


def by_matrices(device: torch.device, images: Sequence[Tensor]) -> bool:
    """Whether images are resized faster by :func:`resampled` than by :func:`resized`, which is fast for equal sizes."""
    return device.type == "cuda" and len({image.shape for image in images}) > 1


def resized(
    images: Sequence[Tensor], sizes: Sequence[tuple[int, int]], interpolation: InterpolationMode
) -> list[Tensor]:
    """Each image (3, h, w) resized to its size by torchvision; those of one shape and size at once."""
    alike: dict[tuple, list[int]] = {}
    for place, (image, size) in enumerate(zip(images, sizes, strict=True)):
        alike.setdefault((image.shape, size), []).append(place)
    done: dict[int, Tensor] = {}
    for (_, size), places in alike.items():
        # Colours of a pixel side by side in memory: torch resizes such bytes in half the time.
        x = torch.stack([images[place].permute(1, 2, 0) for place in places]).permute(0, 3, 1, 2)
        done |= zip(places, resize(x, list(size), interpolation, antialias=True), strict=True)
    return [done[place] for place in range(len(images))]


def resampled(
    images: Sequence[Tensor], start: Tensor, length: Tensor, size: tuple[int, int], interpolation: InterpolationMode
) -> Tensor:
    """Parts of images resized with antialiasing as products of matrices, (n, 3, *size) uint8, on the images' device.

    A GPU takes images of any sizes at once like this; on a CPU it is slower than torchvision, and within a level of it.
    images: (3, h, w) uint8 each; start, length: (n, 2) of each part, down and across, in pixels and fractions of them.
    Pixels beside a part count where a filter reaches them, those beyond the image do not, as Pillow has it.
    """
    shapes = torch.tensor([image.shape[1:] for image in images])
    tall, wide = shapes.amax(0).tolist()
    device, done = images[0].device, []
    for rows in torch.arange(len(images)).split(max(1, PADDED // (tall * wide))):
        padded = torch.zeros(len(rows), tall, 3, wide, device=device)
        for place, row in enumerate(rows.tolist()):
            _, height, width = images[row].shape
            padded[place, :height, :, :width] = images[row].transpose(0, 1)
        down, across = (
            _filters(*(x[rows, axis].to(device) for x in (start, length, shapes)), size[axis], most, interpolation)
            for axis, most in enumerate((tall, wide))
        )
        narrow = (down @ padded.flatten(2)).view(len(rows), -1, wide) @ across.mT
        done.append(narrow.view(len(rows), size[0], 3, size[1]).transpose(1, 2).round().clamp(0, 255).byte())
    return torch.cat(done)


def _filters(
    start: Tensor, length: Tensor, side: Tensor, size: int, most: int, interpolation: InterpolationMode
) -> Tensor:
    """What every pixel of an image's side counts in each of ``size`` pixels of a part of it: (n, size, most).

    start, length: of the part; side: of the image, at most ``most``; (n,) each. Cubic (a = -1/2) or linear.
    """
    step = (length / size)[:, None, None]
    pixels = torch.arange(most, device=start.device) + 0.5
    centres = start[:, None, None] + (torch.arange(size, device=start.device)[:, None] + 0.5) * step
    x = ((pixels - centres) / step.clamp(min=1)).abs()
    if interpolation == InterpolationMode.BICUBIC:
        near, far = (1.5 * x - 2.5) * x * x + 1, ((-0.5 * x + 2.5) * x - 4) * x + 2
        weights = torch.where(x < 1, near, far) * (x < 2)
    else:
        weights = (1 - x).clamp(min=0)
    weights = weights * (pixels < side[:, None, None])
    return weights / weights.sum(-1, keepdim=True)
