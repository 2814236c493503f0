"""Image files decoded by other processes, without torch: it takes seconds to import, in each of them."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from lib import files
from lib.datasets.images import Notices, read_image
from lib.errors import BrokenImage
from lib.processes import ahead, shared

CHUNK = 16
"""Images that one process decodes at a time."""

FEW = 512
"""Fewer images than this are decoded by this process, since others take a while to start."""


@dataclass(frozen=True, eq=False)
class Part:
    """Decoded images in the order of their files: (h, w, 3) uint8 each, of any size; None for one that is broken.

    ``reasons``: place of a broken image → why it cannot be read. ``notices``: of :func:`lib.datasets.images.tell`.
    """

    images: Sequence[Any]
    reasons: dict[int, str] = field(default_factory=dict)
    notices: Notices = field(default_factory=dict)


def stream(paths_of: Sequence[Path], *, chunk: int = CHUNK, workers: int | None = None) -> Iterator[Part]:
    """The images of files, ``chunk`` at a time and in their order, decoded ahead by other processes.

    No more than two times :data:`CHUNK` images for each process wait in memory. They come through files there: a pipe
    would take four times as long.

    workers: processes; -1 takes all processors, 1 decodes here; None: 1 for fewer than :data:`FEW` images, else -1.
    """
    parts = split(paths_of, chunk)
    workers = processes(paths_of, workers)
    if workers == 1:
        yield from map(read, parts)
        return
    with TemporaryDirectory(dir=shared()) as folder:
        numbers = count()
        jobs = [[(some, Path(folder) / str(next(numbers))) for some in split(part, CHUNK)] for part in parts]
        done = ahead(_hand_over, chain.from_iterable(jobs), workers)
        for pieces in jobs:
            yield joined(_taken(file, len(some)) for (some, file), _ in zip(pieces, done, strict=False))


def read(paths_of: Sequence[Path]) -> Part:
    """The images of files."""
    images, reasons, notices = [], {}, {}
    for place, path in enumerate(paths_of):
        try:
            images.append(np.asarray(read_image(path, notices)))
        except BrokenImage as error:
            images.append(None)
            reasons[place] = str(error)
    return Part(images, reasons, notices)


def keep(paths_of: Sequence[Path], file: Path) -> None:
    """Decode images into ``file``, unless it is there already as it was written; a damaged file is written anew."""
    if not _undamaged(file):
        part = read(paths_of)
        _write(part, file, _checksum(*_content(part)))


def _hand_over(paths_of: Sequence[Path], file: Path) -> None:
    """Decode images into ``file``, which is read once, and soon."""
    _write(read(paths_of), file)


def _content(part: Part) -> tuple[str, dict[str, np.ndarray]]:
    """What a file says about its images, and the images that could be read by their places."""
    arrays = {str(place): image for place, image in enumerate(part.images) if image is not None}
    return json.dumps({"reasons": part.reasons, "notices": part.notices}), arrays


def _write(part: Part, file: Path, checksum: str = "") -> None:
    about, arrays = _content(part)
    with files.whole(file) as draft:
        save_file(arrays, draft, metadata={"about": about, "checksum": checksum})


def _checksum(about: str, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 over all that a file holds: the places, shapes and pixels of its images, and what it says about them."""
    digest = hashlib.sha256(about.encode())
    for place, image in sorted(arrays.items()):
        digest.update(f"{place} {image.shape}".encode())
        digest.update(np.ascontiguousarray(image).data)
    return digest.hexdigest()


def _undamaged(file: Path) -> bool:
    """Whether ``file`` holds what was written."""
    try:
        with safe_open(file, framework="numpy") as opened:
            record, places = opened.metadata(), opened.keys()
            return record["checksum"] == _checksum(record["about"], {at: opened.get_tensor(at) for at in places})
    except (FileNotFoundError, SafetensorError, KeyError, TypeError):
        return False


def opened(file: Path, n: int, framework: str = "numpy") -> Part:
    """The ``n`` images that are in ``file``. framework: "pt" for tensors (3, h, w) mapped from the file."""
    with safe_open(file, framework=framework) as opened:
        about, held = json.loads(opened.metadata()["about"]), set(opened.keys())
        images = [opened.get_tensor(place) if place in held else None for place in map(str, range(n))]
    if framework == "pt":
        images = [image if image is None else image.permute(2, 0, 1) for image in images]
    return Part(images, {int(place): why for place, why in about["reasons"].items()}, about["notices"])


def joined(parts: Iterable[Part]) -> Part:
    """Parts in their order as one."""
    images: list[Any] = []
    reasons: dict[int, str] = {}
    notices: Notices = {}
    for part in parts:
        reasons |= {len(images) + place: why for place, why in part.reasons.items()}
        images += part.images
        for what, named in part.notices.items():
            notices.setdefault(what, []).extend(named)
    return Part(images, reasons, notices)


def split(paths_of: Sequence[Path], n: int) -> list[Sequence[Path]]:
    """The files, ``n`` at a time."""
    return [paths_of[start : start + n] for start in range(0, len(paths_of), n)]


def processes(paths_of: Sequence[Path], workers: int | None) -> int:
    """How many processes decode these files, as for :func:`stream`."""
    return (1 if len(paths_of) < FEW else -1) if workers is None else workers


def _taken(file: Path, n: int) -> Part:
    """What is in ``file``, which is there no more afterwards."""
    part = opened(file, n)
    file.unlink()
    return part
