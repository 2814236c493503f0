"""Images of a table, decoded once; :mod:`lib.datasets.crops` cuts them in batches on the device of the network.

Files are decoded by several processes. What is decoded stays in memory up to :data:`BUDGET` bytes, and is otherwise
mapped from ``build/decoded``, where the next run finds it and checks that it is what was written. Images keep their own
sizes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from lib import files, paths
from lib.datasets import decoding
from lib.datasets.content import content
from lib.datasets.crops import planes, shapes_of
from lib.datasets.decoding import CHUNK, Part, opened, split, stream
from lib.datasets.images import FORMATS, READING, broken, tell
from lib.datasets.table import ImageTable
from lib.processes import ahead
from lib.progress import track

BUDGET = 4 * 2**30
"""Bytes of decoded images that are kept in memory; more than that are mapped from files."""

_MEMORY: dict[str, Tensor] = {}
"""SHA-256 of a file → its image, as this process decoded it; at most :data:`BUDGET` bytes.

A study trains dozens of networks on parts of one dataset, and each would decode its images again. The memory is of the
process since nothing depends on it: a name is a hash of the file, so that an image that changed has another one.
"""


@dataclass(frozen=True, eq=False)
class Decoded(Part):
    """Decoded images in the order of their files: (3, h, w) uint8 each, of any size; None for one that is broken."""

    images: Sequence[Tensor | None]

    @property
    def bytes(self) -> int:
        """How many bytes the images take."""
        return sum(image.numel() for image in self.images if image is not None)

    @property
    def shapes(self) -> Tensor:
        """(n, 2) heights and widths; 0 for a broken image."""
        return shapes_of(self.images)

    def to(self, device: torch.device) -> "Decoded":
        """The same on ``device``, if they take at most half of the memory that is free there."""
        if device.type != "cuda" or 2 * self.bytes > torch.cuda.mem_get_info(device)[0]:
            return self
        return replace(self, images=[image if image is None else image.to(device) for image in self.images])


def decode(table: ImageTable, *, budget: int = BUDGET, workers: int | None = None, on_broken: str = "error") -> Decoded:
    """All images of the table, decoded once: what this process has decoded before is taken from memory.

    budget: bytes of decoded images that may lie in memory; more are mapped from files under ``build/decoded``. Images
        are known by what their files hold, so that those that changed are decoded anew.
    workers: as for :func:`lib.datasets.decoding.stream`.
    on_broken: "error" raises BrokenImage, which names all images that cannot be read; "skip" has None in their places.
    """
    paths_of = [table.path(row) for row in range(len(table))]
    names = [_sha256(path) for path in paths_of]
    known = {name: _MEMORY[name] for name in names if name in _MEMORY}
    new = [place for place, name in enumerate(names) if name not in known]
    in_memory = sum(image.numel() for image in known.values()) + sum(_bytes(paths_of[place]) for place in new) <= budget
    if in_memory:
        parts = stream([paths_of[place] for place in new], workers=workers)
    else:
        known, new = {}, list(range(len(table)))
        parts = _mapped(content(table), paths_of, workers)
    shown = track(parts, total=len(new), what=f"reading {table.name}", unit="images", size=lambda x: len(x.images))
    read = decoding.joined(shown)
    if read.reasons and on_broken == "error":
        raise broken(list(read.reasons.values()))
    tell(read.notices)
    images = [known.get(name) for name in names]
    for place, image in zip(new, read.images, strict=True):
        images[place] = None if image is None else planes(image)
    if in_memory:
        _remember({name: image for name, image in zip(names, images, strict=True) if image is not None}, budget)
    return Decoded(images, {new[place]: why for place, why in read.reasons.items()}, read.notices)


def _sha256(path: Path) -> str:
    """Of what a file holds; empty for one that cannot be read, which decoding it reports."""
    try:
        return files.sha256(path)
    except OSError:
        return ""


def _bytes(path: Path) -> int:
    """How many bytes an image takes once decoded, by its header; 0 if that cannot be read."""
    try:
        with Image.open(path, formats=FORMATS) as image:
            return 3 * image.width * image.height
    except Exception:  # decoders meet damage with many errors; :func:`decode` names the file
        return 0


def _mapped(key: str, paths_of: Sequence[Path], workers: int | None) -> Iterator[Part]:
    """As ``stream``, from files under ``build/decoded`` named ``key``; what is not there yet is written there."""
    folder = paths.BUILD / "decoded" / f"{key[:32]}-{READING}"
    files.sweep(folder)
    jobs = [(part, folder / f"{CHUNK * n}.safetensors") for n, part in enumerate(split(paths_of, CHUNK))]
    for (part, file), _ in zip(jobs, ahead(decoding.keep, jobs, decoding.processes(paths_of, workers)), strict=True):
        yield opened(file, len(part), "pt")


def _remember(images: Mapping[str, Tensor], budget: int) -> None:
    """Keep images in memory, and those of earlier tables if all take at most ``budget`` bytes."""
    if sum(image.numel() for image in (_MEMORY | images).values()) > budget:
        _MEMORY.clear()
    _MEMORY.update(images)
