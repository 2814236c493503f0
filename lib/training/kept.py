"""What is trained once is kept once: results in files, each named by a hash of all that it depends on."""

import hashlib
import io
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
import torch

from lib import devices, files, paths, pins
from lib.errors import InputError
from lib.fingerprints import fingerprint
from lib.processes import spread
from lib.progress import track

log = logging.getLogger(__name__)

Result = TypeVar("Result")

Store = Path | str | None
"""A folder for what was trained; "trained" is :data:`lib.paths.TRAINED`, None keeps nothing."""

WORDS = ("lib/datasets/catalogue/",)
"""Modules that say what datasets are called, and train nothing: images count by what they hold."""

SHA256 = 32
"""Bytes of the checksum that a file begins with."""


class Damaged(InputError):
    """A file of :func:`write` that is not what was written."""


def write(file: Path, value: Any) -> None:
    """Write tensors, numbers and texts, in lists, tuples and dicts, behind their checksum; whole or not at all."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    content = buffer.getvalue()
    with files.whole(file) as draft:
        draft.write_bytes(hashlib.sha256(content).digest() + content)


def read(file: Path) -> Any:
    """What :func:`write` wrote, on the CPU.

    torch looks at no checksum of its own and loads other weights where a bit has flipped.

    Raises:
        Damaged: for a file that is not what was written, or holds more than tensors, numbers and texts.
        OSError, MemoryError, torch.OutOfMemoryError: as they come, since they say nothing against the file.
    """
    data = memoryview(file.read_bytes())
    if hashlib.sha256(data[SHA256:]).digest() != data[:SHA256]:
        raise Damaged(f"{file} is damaged: it is not what was written.")
    try:
        return torch.load(io.BytesIO(data[SHA256:]), map_location="cpu", weights_only=True)
    except Exception as error:  # junk can fail with anything
        if _for_want_of_memory(error):
            raise
        raise Damaged(f"{file} is damaged: it is not what was written.") from error


def _for_want_of_memory(error: Exception) -> bool:
    """Whether memory was too small: torch has an error of its own for the GPU, and none for the CPU."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or "can't allocate memory" in str(error)


def folder(store: Store) -> Path | None:
    """The folder that a :data:`Store` means."""
    return paths.TRAINED if store == "trained" else store


def once(store: Store, key: str, compute: Callable[[], Result]) -> Result:
    """What ``compute`` returns, or returned before; a damaged file is reported, set aside and computed anew.

    Args:
        store: where results are kept.
        key: a SHA-256 of all that the result depends on (:func:`key`); names the file.
        compute: returns what :func:`write` takes.
    """
    value = known(store, key)
    return keep(store, key, compute()) if value is None else value


def each(
    store: Store, jobs: Sequence[tuple[str, Callable[[], Result]]], *, workers: int = -1, what: str, unit: str
) -> Iterator[Result]:
    """:func:`once` for the key and the work of every job, each on one thread, spread over ``workers`` processes."""
    given = folder(store)
    spreading = spread((joblib.delayed(_once_on_one_thread)(given, *job) for job in jobs), workers)
    return track(spreading, total=len(jobs), what=what, unit=unit)


def _once_on_one_thread(store: Path | None, key: str, compute: Callable[[], Result]) -> Result:
    with one_thread():
        return once(store, key, compute)


@contextmanager
def one_thread() -> Iterator[None]:
    """torch computes on one thread, so that the result does not depend on how many processors there are."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def known(store: Store, key: str) -> Any:
    """What :func:`keep` has kept as ``key``; None for nothing, and for a damaged file, which is set aside."""
    file = _file(store, key)
    if file and file.exists():
        try:
            return read(file)
        except Damaged as error:
            aside = file.replace(file.with_suffix(".damaged"))
            log.warning("%s It is set aside as %s, and what it held is trained anew.", error, aside.name)
    return None


def keep(store: Store, key: str, value: Result) -> Result:
    """``value`` as it is read again, from the file of ``key``; without a folder as it is."""
    file = _file(store, key)
    if file is None:
        return value
    write(file, value)
    return read(file)


def checkpoint(store: Store, key: str) -> Path | None:
    """The file that a training which will be kept as ``key`` goes on from when it broke off."""
    file = _file(store, key)
    return file and file.with_suffix(".checkpoint")


def _file(store: Store, key: str) -> Path | None:
    place = folder(store)
    return place and place / f"{key}.pt"


def key(*about: Any) -> str:
    """A SHA-256 of all that a result depends on: values (:func:`digest`), and the code behind it (:func:`code`)."""
    return hashlib.sha256(" ".join(map(digest, about)).encode()).hexdigest()


def code(modules: Iterable[str], *packages: str) -> str:
    """The fingerprint of the code of ``modules``, and what else rounds: versions of ``packages``, pins, the device."""
    versions = " ".join(f"{name} {import_module(name).__version__}" for name in packages)
    lines = [line for line in fingerprint(modules).splitlines() if not line.startswith(WORDS)]
    return "\n".join([f"{versions} {pins.settings()} {devices.pick().type}", *lines])


def digest(*values: Any) -> str:
    """A hash of arrays, tensors and whatever holds them, the same in every process.

    joblib hands an array to another process as a map of a file, or as a copy with other strides, which joblib.hash
    tells from the array itself. So arrays count by type, shape and numbers alone.

    >>> x = np.arange(6.0).reshape(2, 3)
    >>> digest(x[:, :2]) == digest(x[:, :2].copy()), digest(x) == digest(x.T)
    (True, False)
    """
    return joblib.hash(_plain(values))


def _plain(value: Any) -> Any:
    """``value`` with every array in it as its type, its shape and a hash of its numbers."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray):
        numbers = value.tolist() if value.dtype.hasobject else _sha256(value)
        return value.dtype.str, value.shape, numbers
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _sha256(array: np.ndarray) -> str:
    """Of the numbers, row by row."""
    return hashlib.sha256(np.ascontiguousarray(array).reshape(-1).view(np.uint8)).hexdigest()
