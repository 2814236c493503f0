"""What is trained once is kept once: results in files, each named by a hash of all that it depends on."""

import hashlib
import io
import logging
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import TypeVar

import torch

from lib import files, pins
from lib.fingerprints import fingerprint

log = logging.getLogger(__name__)

Result = TypeVar("Result")


def once(folder: Path | None, key: str, compute: Callable[[], Result]) -> Result:
    """What ``compute`` returns, or returned before; a damaged file is reported, set aside and computed anew.

    Args:
        folder: where results are kept; None keeps nothing.
        key: a SHA-256 of all that the result depends on (:func:`code` for the code behind it); names the file.
        compute: returns tensors, numbers and texts, in lists, tuples and dicts.
    """
    if folder is None:
        return compute()
    file = folder / f"{key}.pt"
    if (content := _content(file)) is None:
        buffer = io.BytesIO()
        torch.save(compute(), buffer)
        content = buffer.getvalue()
        with files.whole(file) as draft:
            draft.write_bytes(hashlib.sha256(content).digest() + content)
    return torch.load(io.BytesIO(content), weights_only=True)


def code(modules: Iterable[str], *packages: str) -> str:
    """The fingerprint of the code of ``modules``, and what else rounds: the versions of ``packages``, the pins."""
    versions = " ".join(f"{name} {import_module(name).__version__}" for name in packages)
    return f"{versions} {pins.settings()}\n{fingerprint(modules)}"


def _content(file: Path) -> bytes | None:
    """What follows the checksum that a file begins with; None if there is none, or it is damaged."""
    if not file.exists():
        return None
    data = file.read_bytes()
    if hashlib.sha256(data[32:]).digest() == data[:32]:
        return data[32:]
    aside = file.replace(file.with_suffix(".damaged"))
    log.warning(
        "%s is damaged: it is not what was written. It is set aside as %s, and what it held is trained anew.",
        file,
        aside.name,
    )
    return None
