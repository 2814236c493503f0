"""Images decoded once, then cut, resized and mirrored in batches on the device of the network.

Files are decoded by several processes. What is decoded stays in memory up to :data:`BUDGET` bytes, and is otherwise
mapped from ``build/decoded``, where the next run finds it. Images keep their own sizes. Crops are cut and resized by
torchvision, bicubic and antialiased; on the CPU that is integer arithmetic, with the same bits on every processor.
"""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import joblib
import numpy as np
import torch
from PIL import Image
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save
from torch import Generator, Tensor
from torchvision.transforms.v2 import InterpolationMode
from torchvision.transforms.v2.functional import resize

from lib import files, paths
from lib.datasets.content import content
from lib.datasets.images import FORMATS, READING, Notices, broken, read_image, tell
from lib.datasets.table import ImageTable
from lib.errors import BrokenImage
from lib.processes import spread
from lib.progress import track

BUDGET = 4 * 2**30
"""Bytes of decoded images that are kept in memory; more than that are mapped from files."""

CHUNK = 64
"""Images that one process decodes at a time."""

FEW = 512
"""Fewer images than this are decoded by this process, since others take seconds to start."""

ASPECT = (3 / 4, 4 / 3)
"""Width by height of a random crop, least and most, as torchvision has it."""

TRIES = 10
"""Random crops are drawn so many times at most until one lies within the image, as torchvision does."""


@dataclass(frozen=True, eq=False)
class Decoded:
    """Decoded images in the order of their files: (3, h, w) uint8 each, of any size; None for one that is broken.

    ``reasons``: place of a broken image → why it cannot be read. ``notices``: of :func:`lib.datasets.images.tell`.
    """

    images: Sequence[Tensor | None]
    reasons: dict[int, str] = field(default_factory=dict)
    notices: Notices = field(default_factory=dict)

    @property
    def bytes(self) -> int:
        """How many bytes the images take."""
        return sum(image.numel() for image in self.images if image is not None)

    @property
    def shapes(self) -> Tensor:
        """(n, 2) heights and widths; 0 for a broken image."""
        return torch.tensor([(0, 0) if image is None else image.shape[1:] for image in self.images]).reshape(-1, 2)

    def to(self, device: torch.device) -> "Decoded":
        """The same on ``device``, if they take at most half of the memory that is free there."""
        if device.type != "cuda" or 2 * self.bytes > torch.cuda.mem_get_info(device)[0]:
            return self
        return replace(self, images=[image if image is None else image.to(device) for image in self.images])


def stream(paths_of: Sequence[Path], *, chunk: int = CHUNK, workers: int | None = None) -> Iterator[Decoded]:
    """The images of files, ``chunk`` at a time and in their order, decoded ahead by other processes.

    workers: processes; -1 takes all processors, 1 decodes here; None: 1 for fewer than :data:`FEW` images, else -1.
    """
    workers = (1 if len(paths_of) < FEW else -1) if workers is None else workers
    parts = (paths_of[start : start + chunk] for start in range(0, len(paths_of), chunk))
    for images, reasons, notices in spread((joblib.delayed(_read)(part) for part in parts), workers):
        yield Decoded([None if image is None else _planes(image) for image in images], reasons, notices)


def decode(table: ImageTable, *, budget: int = BUDGET, workers: int | None = None, on_broken: str = "error") -> Decoded:
    """All images of the table, decoded once.

    budget: bytes of decoded images that may lie in memory; more are mapped from files under ``build/decoded``, named by
        what the image files hold, so that images that changed are decoded anew.
    workers: as for :func:`stream`.
    on_broken: "error" raises BrokenImage, which names all images that cannot be read; "skip" has None in their places.
    """
    paths_of = [table.path(row) for row in range(len(table))]
    large = sum(map(_bytes, paths_of)) > budget
    parts = _mapped(content(table), paths_of, workers) if large else stream(paths_of, workers=workers)
    shown = track(parts, total=len(table), what=f"reading {table.name}", unit="images", size=lambda x: len(x.images))
    whole = _joined(shown)
    if whole.reasons and on_broken == "error":
        raise broken(list(whole.reasons.values()))
    tell(whole.notices)
    return whole


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

    images: (3, h, w) uint8 each; boxes: (n, 4) top, left, height, width. Crops of one size are resized at once.
    """
    corners = boxes.tolist()
    crops = [x.to(device)[:, t : t + h, left : left + w] for x, (t, left, h, w) in zip(images, corners, strict=True)]
    if len({crop.shape for crop in crops}) == 1:
        return resize(torch.stack(crops), list(size), interpolation, antialias=True)
    return torch.stack([resize(crop, list(size), interpolation, antialias=True) for crop in crops])


def mirrored(x: Tensor, flipped: Tensor) -> Tensor:
    """``x: (n, 3, h, w)`` with those images turned left for right that ``flipped: (n,)`` names."""
    return torch.where(flipped.to(x.device)[:, None, None, None], x.flip(3), x)


def normalised(x: Tensor, mean: Iterable[float], std: Iterable[float]) -> Tensor:
    """``x: (n, 3, h, w)`` uint8 as float32, (x / 255 - mean) / std."""
    mean, std = (torch.tensor(tuple(values), device=x.device)[:, None, None] for values in (mean, std))
    return (x.float() / 255 - mean) / std


def _read(paths_of: Sequence[Path]) -> tuple[list[np.ndarray | None], dict[int, str], Notices]:
    """Images (h, w, 3) uint8 of files, None for a broken one; why, by place; and notices."""
    images, reasons, notices = [], {}, {}
    for place, path in enumerate(paths_of):
        try:
            images.append(np.asarray(read_image(path, notices)))
        except BrokenImage as error:
            images.append(None)
            reasons[place] = str(error)
    return images, reasons, notices


def _planes(image: np.ndarray) -> Tensor:
    """(h, w, 3) as (3, h, w), which stay in memory as they are: torch resizes such bytes fastest."""
    return torch.from_numpy(image if image.flags.writeable else image.copy()).permute(2, 0, 1)


def _bytes(path: Path) -> int:
    """How many bytes an image takes once decoded, by its header; 0 if that cannot be read."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            return 3 * image.width * image.height
    except Exception:  # decoders meet damage with many errors; :func:`decode` names the file
        return 0


def _mapped(key: str, paths_of: Sequence[Path], workers: int | None) -> Iterator[Decoded]:
    """As :func:`stream`, from files under ``build/decoded`` named ``key``; what is not there yet is written there."""
    folder = paths.BUILD / "decoded" / f"{key[:32]}-{READING}"
    files.sweep(folder)
    starts = range(0, len(paths_of), CHUNK)
    jobs = [(paths_of[start : start + CHUNK], folder / f"{start}.safetensors") for start in starts]
    workers = (1 if len(paths_of) < FEW else -1) if workers is None else workers
    for (part, file), _ in zip(jobs, spread((joblib.delayed(_keep)(*job) for job in jobs), workers), strict=True):
        images = load_file(file)
        with safe_open(file, framework="pt") as opened:
            about = json.loads(opened.metadata()["about"])
        reasons = {int(place): why for place, why in about["reasons"].items()}
        places = map(str, range(len(part)))
        yield Decoded([images[x].permute(2, 0, 1) if x in images else None for x in places], reasons, about["notices"])


def _keep(part: Sequence[Path], file: Path) -> None:
    """Decode images into ``file``, unless they are there already; a damaged file is written anew."""
    try:
        with safe_open(file, framework="pt"):
            return
    except (FileNotFoundError, SafetensorError):
        pass
    images, reasons, notices = _read(part)
    tensors = {str(place): torch.tensor(image) for place, image in enumerate(images) if image is not None}
    with files.whole(file) as draft:
        draft.write_bytes(save(tensors, metadata={"about": json.dumps({"reasons": reasons, "notices": notices})}))


def _joined(parts: Iterable[Decoded]) -> Decoded:
    """Parts of one table as one."""
    images: list[Tensor | None] = []
    reasons: dict[int, str] = {}
    notices: Notices = {}
    for part in parts:
        reasons |= {len(images) + place: why for place, why in part.reasons.items()}
        images += part.images
        for what, named in part.notices.items():
            notices.setdefault(what, []).extend(named)
    return Decoded(images, reasons, notices)
