"""Several views of every image, cached: how a head on a frozen backbone is trained with augmented images.

The linear-prototypes paper (section III-B) augments with flips, colour jitter, Gaussian blur, rotations, affine
transformations, optical distortion and coarse dropout. A frozen backbone then sees another image each time, so no
single feature of an image can be kept (erratum LP-13). Kept here are the features of a fixed number of views: view 0
is the image itself, the others are augmented. The paper prints no strengths; those of :func:`augmentation` are ours.

A view depends on the seed, its number and the pixels of the image, not on order, batch or global random state, and not
on the encoder: two encoders see the same views. View 3 lies in the folder ``*.views`` beside the
plain features, as ``3.safetensors``.
"""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from PIL import Image
from torch import Tensor
from torch.nn import functional
from torchvision.transforms import v2
from torchvision.transforms.v2.functional import resize, to_pil_image

from lib.datasets.crops import planes
from lib.datasets.table import ImageTable
from lib.encoders import cache
from lib.encoders.cache import Encoder

SIZE = 224
"""Pixels, as in the paper: images whose shorter side is longer are reduced to it, smaller ones stay as they are."""
LEAST_SIDE = 8
"""Pixels; shorter sides are enlarged to it, because the blur cannot mirror a border wider than the image."""


class Warp(v2.Transform):
    """A random rotation, affine transformation and optical distortion of an image (3, h, w) uint8, in one resampling.

    degrees, shear: the most that it is turned and sheared, either way. zoom: the largest factor; the smallest is its
    inverse. shift: in both directions. k: of the distortion, see :func:`distorted`. shift and k are for lengths in
    half diagonals of the image, so that its corners are at 1.

    torchvision fills what comes in from outside with one colour and resamples at each step; this mirrors the image at
    its borders, so that a turned tile has no empty corners.
    """

    def __init__(self, degrees: float, shear: float, zoom: float, shift: float, k: float) -> None:
        super().__init__()
        self.degrees, self.shear, self.zoom, self.shift, self.k = degrees, shear, zoom, shift, k

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        turn, shear, zoom, x, y, k = (2 * torch.rand(6) - 1).tolist()
        angle, slope = math.radians(turn * self.degrees), math.tan(math.radians(shear * self.shear))
        rotation = torch.tensor([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
        matrix = rotation @ torch.tensor([[1, slope], [0, 1]]) / self.zoom**zoom
        return {"matrix": matrix, "shift": torch.tensor([x, y]) * self.shift, "k": k * self.k}

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        return warped(inpt, **params)


def warped(pixels: Tensor, matrix: Tensor, shift: Tensor, k: float) -> Tensor:
    """The image (3, h, w) uint8 that shows at point p what ``pixels`` show at ``matrix @ distorted(p) + shift``.

    Points are (x, y) from the centre in half diagonals. matrix: (2, 2), shift: (2,). Bilinear, mirrored at the borders.
    """
    height, width = pixels.shape[-2:]
    diagonal = math.hypot(width, height)
    x, y = ((2 * torch.arange(side, device=pixels.device) + 1 - side) / diagonal for side in (width, height))
    points = torch.stack(torch.meshgrid(x, y, indexing="xy"), dim=-1)
    scale = torch.tensor([diagonal / width, diagonal / height])
    matrix, shift, scale = (values.to(pixels.device, non_blocking=True) for values in (matrix, shift, scale))
    grid = (distorted(points, k) @ matrix.T + shift) * scale
    moved = functional.grid_sample(pixels[None].float(), grid[None], padding_mode="reflection", align_corners=False)
    return moved[0].round().to(torch.uint8)


def distorted(points: Tensor, k: float) -> Tensor:
    """Points (..., 2) at distance r from the centre, moved to r' = r (1 + k r²).

    Looked up there, an image shrinks towards its rim for k > 0 (barrel) and swells for k < 0 (pincushion). As long as
    k > -1/3, r' grows with r up to 1, the corners, so that the image does not fold back on itself.
    """
    return points * (1 + k * points.square().sum(dim=-1, keepdim=True))


class CoarseDropout(v2.Transform):
    """Rectangles of an image (3, h, w) uint8 replaced by its mean colour: up to ``holes`` of them, in random places.

    least, most: the sides of a rectangle as a fraction of the image's, at least one pixel.
    """

    def __init__(self, holes: int, least: float, most: float) -> None:
        super().__init__()
        self.holes, self.least, self.most = holes, least, most

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        image = torch.tensor(flat_inputs[0].shape[-2:])
        share = torch.empty(int(torch.randint(self.holes + 1, ())), 2).uniform_(self.least, self.most)
        sides = (share * image).round().clamp(min=1)
        corners = (torch.rand(sides.shape) * (image - sides + 1)).floor()
        return {"boxes": torch.cat([corners, corners + sides], dim=1).int().tolist()}

    def transform(self, inpt: Tensor, params: dict[str, Any]) -> Tensor:
        out, colour = inpt.clone(), inpt.float().mean(dim=(1, 2)).to(torch.uint8)
        for top, left, bottom, right in params["boxes"]:
            out[:, top:bottom, left:right] = colour[:, None, None]
        return out


def augmentation() -> v2.Transform:
    """The paper's augmentations for an image (3, h, w) uint8, with our strengths.

    A tile has no up, so flips and up to a quarter turn either way make every direction equally likely. Brightness is
    varied little because it moves the features of demo_vit most. The holes cover 4 % of the image on average.
    """
    return v2.Compose(
        [
            v2.RandomHorizontalFlip(),
            v2.RandomVerticalFlip(),
            Warp(degrees=90, shear=8, zoom=1.15, shift=0.05, k=0.3),
            v2.ColorJitter(brightness=0.1, contrast=0.1, saturation=0.2, hue=0.03),
            v2.GaussianBlur(kernel_size=5, sigma=(0.1, 1.0)),
            CoarseDropout(holes=6, least=0.06, most=0.18),
        ]
    )


@dataclass(frozen=True, eq=False)
class Augmented:
    """An encoder that sees every image through one augmented view; itself an encoder.

    view: 1 or more. size: pixels of the shorter side to which larger images are reduced before they are augmented.
    transform: of an image (3, h, w) uint8; it draws from torch's generator alone, and its repr names its strengths.
    """

    encoder: Encoder
    view: int
    seed: int = 0
    size: int = SIZE
    transform: v2.Transform = field(default_factory=augmentation)

    @property
    def name(self) -> str:
        return f"{self.encoder.name} view {self.view}"

    @property
    def dim(self) -> int:
        return self.encoder.dim

    @property
    def batch_size(self) -> int:
        return self.encoder.batch_size

    @property
    def provenance(self) -> dict[str, str]:
        """The encoder's, the view and its seed, and the augmentation with its strengths."""
        steps = " ".join(str(self.transform).split())
        return {
            **self.encoder.provenance,
            "view": str(self.view),
            "view_seed": str(self.seed),
            "augmentation": f"shorter side at most {self.size} pixels by torch: {steps}",
            "torchvision": torchvision.__version__.partition("+")[0],
        }

    def encode(self, images: Sequence[Image.Image | np.ndarray]) -> np.ndarray:
        """Features (n, dim) float32 of the views of images of any size; of Pillow in any mode, or (h, w, 3) uint8."""
        device = getattr(self.encoder, "device", torch.device("cpu"))
        seen = [self._see(image, device) for image in images]
        return self.encoder.encode([x.permute(1, 2, 0).numpy() for x in seen] if device.type == "cpu" else seen)

    def see(self, image: Image.Image) -> Image.Image:
        """The view of an image of any size and mode, as RGB; torch's random state is left as it was."""
        return to_pil_image(self._see(image))

    def _see(self, image: Image.Image | np.ndarray, device: torch.device | None = None) -> Tensor:
        """The view (3, h, w) uint8, made on ``device``; what is random is drawn on the CPU wherever it is."""
        small = _reduced(planes(image), self.size)
        pixels = small.permute(1, 2, 0).contiguous().numpy()
        digest = hashlib.sha256(f"{self.seed} {self.view} ".encode() + pixels.tobytes()).digest()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(int.from_bytes(digest[:7]))
            return self.transform(small.to(device))


def extract(
    table: ImageTable,
    encoder: Encoder,
    target: Path,
    n_views: int,
    seed: int = 0,
    on_broken: str | None = None,
    batch_size: int | None = None,
    transform: v2.Transform | None = None,
) -> tuple[ImageTable, np.ndarray]:
    """Features of ``n_views`` views of every image: the table without skipped images, and values (n_views, n, dim).

    View 0 is the image itself, from the cache file ``target``; the others are augmented under ``seed`` by ``transform``
    (default: :func:`augmentation`), each from its own file in a folder beside it. The files are those of
    :func:`lib.encoders.cache.extract`, which on_broken and batch_size are for, and go on after an interruption.

    Raises InputError for fewer views than 1, and what :func:`lib.encoders.cache.extract` raises.
    """
    files = cache.view_files(target, n_views)
    transform = transform or augmentation()
    seen = [encoder, *(Augmented(encoder, view, seed, transform=transform) for view in range(1, n_views))]
    views = [cache.extract(table, who, file, on_broken, batch_size) for who, file in zip(seen, files, strict=True)]
    table, values = cache.align(table, views)
    return table, np.stack(values)


def _reduced(image: Tensor, size: int) -> Tensor:
    """The image with at most ``size`` pixels on its shorter side, aspect ratio kept."""
    factor = min(1.0, size / min(image.shape[1:]))
    sides = [max(LEAST_SIDE, round(factor * side)) for side in image.shape[1:]]
    return resize(image, sides, v2.InterpolationMode.BICUBIC, antialias=True)
