"""Random crops of images, each with its own place, turn and stain, drawn for a whole batch at once.

One affine grid cuts all crops of a batch, bilinear, on the device where the images lie. A generator that is handed in
decides, so that step ``i`` of a training is the same whether or not the training was interrupted before.
"""

import math

import numpy as np
import torch
from skimage.color import hed_from_rgb, rgb_from_hed
from torch import Generator, Tensor
from torch.nn import functional

from lib.geometry.numerics import root

ASPECT = 4 / 3  # the most that a crop is stretched, either way


def generator_of(*key: int) -> Generator:
    """A generator for one purpose and step: neighbouring seeds have nothing in common."""
    return torch.Generator().manual_seed(int(np.random.SeedSequence(key).generate_state(1, np.uint64)[0] >> 1))


def crops(
    images: Tensor,
    size: int,
    area: tuple[float, float],
    generator: Generator,
    stain: float = 0.2,
) -> Tensor:
    """One random crop of each image as (n, 3, size, size) float32 from 0 to 1, on the images' device.

    images: (n, 3, h, w) uint8; size: side of the crops in pixels; area: least and most of the image that a crop
    covers, as a fraction; generator: on the CPU; stain: factors of :func:`jitter` are drawn from 1 - stain to
    1 + stain. A crop is mirrored in either direction and turned by a multiple of 90 degrees: a tile has no up.
    """
    theta = placements(len(images), area, generator).to(images.device)
    grid = functional.affine_grid(theta, [len(images), 3, size, size], align_corners=False)
    pixels = functional.grid_sample(images.float() / 255, grid, padding_mode="border", align_corners=False)
    return jitter(pixels, _uniform((len(images), 3), (1 - stain, 1 + stain), generator)) if stain else pixels


def placements(n: int, area: tuple[float, float], generator: Generator) -> Tensor:
    """Affine maps (n, 2, 3) from the crop's coordinates to the image's, both from -1 to 1."""
    ratio = _uniform((n,), (-math.log(ASPECT), math.log(ASPECT)), generator).exp()
    covered = _uniform((n,), area, generator)
    side = torch.stack([root(covered * ratio), root(covered / ratio)], dim=-1).clamp(max=1)
    centre = (1 - side) * _uniform((n, 2), (-1, 1), generator)
    mirrored = 2 * torch.randint(2, (n, 2), generator=generator) - 1
    transposed = torch.randint(2, (n,), generator=generator).bool()
    linear = torch.diag_embed(side * mirrored)
    linear = torch.where(transposed[:, None, None], linear.flip(-1), linear)
    return torch.cat([linear, centre[:, :, None]], dim=-1)


def jitter(pixels: Tensor, factors: Tensor) -> Tensor:
    """Each image (n, 3, h, w) from 0 to 1 with the amounts of its three stains multiplied by ``factors: (n, 3)``.

    Amounts of haematoxylin, eosin and a third dye are separated in optical density, where they add up (Ruifrok and
    Johnston 2001; scikit-image's matrices). Black has no finite density and counts as one grey value of 255.
    """
    apart, together = (torch.tensor(m, dtype=torch.float32).to(pixels.device) for m in (hed_from_rgb, rgb_from_hed))
    change = apart @ torch.diag_embed(factors.to(pixels.device)) @ together
    density = -pixels.clamp(min=1 / 255).log()
    return torch.einsum("ncd,nchw->ndhw", change, density).neg().exp().clamp(0, 1)


def _uniform(shape: tuple[int, ...], between: tuple[float, float], generator: Generator) -> Tensor:
    low, high = between
    return low + (high - low) * torch.rand(shape, generator=generator)
