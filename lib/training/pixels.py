"""All images of a table as one tensor, for a network that is trained on the pixels themselves.

A module of its own, so that a dataset more in the catalogue trains no network anew.
"""

import numpy as np
import torch
from torch import Tensor
from torchvision.transforms.v2 import InterpolationMode

from lib.datasets.crops import cut, planes, shapes_of, whole_boxes
from lib.datasets.decoding import stream
from lib.datasets.images import broken
from lib.datasets.table import ImageTable
from lib.encoders.small_vit import SIZE
from lib.errors import InputError
from lib.progress import track

MOST_IMAGES = 20_000
"""More images than this are sampled: as bytes of 96 x 96 pixels they take half a gigabyte of memory."""


def load_images(table: ImageTable, limit: int = MOST_IMAGES, seed: int = 0, on_broken: str = "error") -> Tensor:
    """Images of the table as (n, 3, 96, 96) uint8, each resized as the encoder does.

    limit: of more images a random part under ``seed`` is taken. on_broken: "error" raises BrokenImage, which names all
    unreadable images, "skip" leaves them out. Raises InputError if none is left.
    """
    wanted = np.arange(len(table))
    if len(table) > limit:
        wanted = np.sort(np.random.default_rng(seed).choice(len(table), limit, replace=False))
    parts, reasons = [torch.empty(0, 3, SIZE, SIZE, dtype=torch.uint8)], []
    read = stream([table.path(row) for row in wanted])
    shown = {"total": len(wanted), "what": f"reading {table.name}", "unit": "images"}
    for part in track(read, **shown, size=lambda part: len(part.images)):
        images = [planes(image) for image in part.images if image is not None]
        reasons += part.reasons.values()
        if images:
            how = {"interpolation": InterpolationMode.BILINEAR}
            parts.append(cut(images, whole_boxes(shapes_of(images)), (SIZE, SIZE), torch.device("cpu"), **how))
    if reasons and on_broken == "error":
        raise broken(reasons)
    pixels = torch.cat(parts)
    if not len(pixels):
        raise InputError(f"{table.name}: none of the {len(table)} images under {table.root} can be used.")
    return pixels
