"""Small pictures in one file: a zip archive of JPEGs, called by the numbers of their images."""

import io
import os
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from PIL import Image

from lib.datasets.images import read_image
from lib.errors import InputError
from lib.progress import track

SIDE, QUALITY = 160, 85
FILE = "thumbnails.zip"


def small(image: Image.Image, side: int = SIDE, quality: int = QUALITY) -> bytes:
    """A JPEG of ``image``, which is made smaller itself: its longer side has at most ``side`` pixels then."""
    image.thumbnail((side, side))
    image.save(file := io.BytesIO(), "JPEG", quality=quality)
    return file.getvalue()


def of_files(files: Sequence[Path], what: str) -> list[bytes]:
    """The :func:`small` picture of every file; BrokenImage names one that cannot be read."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = pool.map(lambda file: small(read_image(file)), files)
        return list(track(made, total=len(files), what=f"thumbnails of {what}", unit="images"))


class Thumbnails:
    """JPEGs by number: those in ``file``, if any, and those that were put in since."""

    def __init__(self, file: Path | None = None, new: Mapping[int, bytes] | None = None) -> None:
        self._new = dict(new or {})
        self._stored: zipfile.ZipFile | None = None
        if file is not None:
            try:
                self._stored = zipfile.ZipFile(file)
            except (OSError, zipfile.BadZipFile) as error:
                raise InputError(f"{file} is missing or damaged ({error}). Build the archive again.") from error

    def __getitem__(self, number: int) -> bytes:
        if number in self._new:
            return self._new[number]
        if self._stored is None:
            raise KeyError(number)
        return self._stored.read(_name(number))

    def put(self, new: Mapping[int, bytes]) -> None:
        """Keep further ones."""
        self._new |= new

    def write(self, file: Path, numbers: Iterable[int]) -> None:
        """Write those of ``numbers`` into ``file``, and no other."""
        with zipfile.ZipFile(file, "w") as target:
            for number in numbers:
                target.writestr(zipfile.ZipInfo(_name(number)), self[number])  # no date: the same bytes every time


def _name(number: int) -> str:
    return f"{number}.jpg"
