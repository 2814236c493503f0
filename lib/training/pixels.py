"""All images of a table as one tensor, for a network that is trained on the pixels themselves.

A module of its own, so that a dataset more in the catalogue trains no network anew.
"""

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms import v2

from lib.datasets.images import read_image
from lib.datasets.table import ImageTable
from lib.encoders.small_vit import SIZE
from lib.errors import BrokenImage, InputError
from lib.progress import track

MOST_IMAGES = 20_000
"""More images than this are sampled: as bytes of 96 x 96 pixels they take half a gigabyte of memory."""


def load_images(table: ImageTable, limit: int = MOST_IMAGES, seed: int = 0, on_broken: str = "error") -> Tensor:
    """Images of the table as (n, 3, 96, 96) uint8, each resized as the encoder does.

    limit: of more images a random part under ``seed`` is taken. on_broken: "error" raises BrokenImage at the first
    unreadable image, "skip" leaves such images out. Raises InputError if none is left.
    """
    wanted = np.arange(len(table))
    if len(table) > limit:
        wanted = np.sort(np.random.default_rng(seed).choice(len(table), limit, replace=False))
    resize = v2.Compose([v2.ToImage(), v2.Resize((SIZE, SIZE), antialias=True)])
    pixels = torch.empty(len(wanted), 3, SIZE, SIZE, dtype=torch.uint8)
    n = 0
    for row in track(wanted, total=len(wanted), what=f"reading {table.name}", unit="images"):
        try:
            pixels[n] = resize(read_image(table.path(row)))
            n += 1
        except BrokenImage:
            if on_broken == "error":
                raise
    if n == 0:
        raise InputError(f"{table.name}: none of the {len(table)} images under {table.root} can be used.")
    return pixels[:n]
