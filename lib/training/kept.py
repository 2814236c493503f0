"""What is trained once is kept once: results in files, each named by a hash of all that it depends on."""

import hashlib
import io
import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import joblib
import numpy as np
import torch

from lib import devices, files, pins
from lib.errors import InputError
from lib.fingerprints import fingerprint

log = logging.getLogger(__name__)

Result = TypeVar("Result")

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


def once(folder: Path | None, key: str, compute: Callable[[], Result]) -> Result:
    """What ``compute`` returns, or returned before; a damaged file is reported, set aside and computed anew.

    Args:
        folder: where results are kept; None keeps nothing.
        key: a SHA-256 of all that the result depends on (:func:`digest` for values, :func:`code` for the code behind
            it); names the file.
        compute: returns what :func:`write` takes.
    """
    found = known(folder, key)
    return keep(folder, key, compute()) if found is None else found


def known(folder: Path | None, key: str) -> Any:
    """What :func:`keep` has kept as ``key``; None for nothing, and for a damaged file, which is set aside."""
    file = folder and folder / f"{key}.pt"
    if file and file.exists():
        try:
            return read(file)
        except Damaged as error:
            aside = file.replace(file.with_suffix(".damaged"))
            log.warning("%s It is set aside as %s, and what it held is trained anew.", error, aside.name)
    return None


def keep(folder: Path | None, key: str, value: Result) -> Result:
    """``value`` as it is read again, from the file of ``key``; without a folder as it is."""
    if folder is None:
        return value
    write(folder / f"{key}.pt", value)
    return read(folder / f"{key}.pt")


def code(modules: Iterable[str], *packages: str) -> str:
    """The fingerprint of the code of ``modules``, and what else rounds: versions of ``packages``, pins, the device."""
    versions = " ".join(f"{name} {import_module(name).__version__}" for name in packages)
    return f"{versions} {pins.settings()} {devices.pick().type}\n{fingerprint(modules)}"


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
