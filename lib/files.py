"""Files and folders appear whole or not at all, and nothing is removed that was not made here.

A file or folder is drafted in a workshop beside its place (``.<name>.<random>.draft``), which holds a lock as long as
its process lives, and is renamed into place. A folder that may be replaced carries :data:`MARKER`: the old one is moved
aside, the new one in, and the old one deleted. Whoever was killed on the way is tidied up after by the next one there
(:func:`sweep`).
"""

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lib.errors import InputError

try:
    import fcntl
except ImportError:  # Windows: no workshop can be locked, so none is taken for abandoned
    fcntl = None

MARKER = ".hyperbolic-retrieval"
"""A file in every folder that may be replaced: its kind, and the SHA-256 of each of its files."""

CLUTTER = {".DS_Store", ".ipynb_checkpoints", "Thumbs.db"}
"""What file managers and Jupyter leave in any folder."""

_LOCK, _OLD, _GONE = f"{MARKER}.lock", ".old", ".gone"
_WORKSHOP = re.compile(r"\.(.+)\.[a-z0-9_]{8}\.draft")
_HASHED = re.compile(r"[0-9a-f]{64}\..+")


@contextmanager
def whole(target: Path, kind: str | None = None, older: Callable[[Path], bool] = lambda _: False) -> Iterator[Path]:
    """Yield a temporary path beside ``target`` to write a file or folder to; rename it into place at the end.

    If the block raises or the process is killed, ``target`` is as it was before. A file that exists is replaced; a
    folder with anything in it only if it is of the same ``kind``.

    Args:
        target: the file or folder.
        kind: what the folder is, for example "search index". It then carries :data:`MARKER`, and a later folder of
            this kind may take its place.
        older: whether a folder without a marker was nevertheless made here, before there were markers.

    Raises:
        InputError: before the block, if ``target`` is a folder that was not made here, is of another kind, or holds
            files that somebody else has put there.
        OSError: as it comes; where it names no file, as on a full disk, it gets the name of ``target``.
    """
    target = Path(target) if kind is None else Path(target).resolve()  # a link to a folder stays one
    with _naming(target), workshop(target) as shop:
        _check_replaceable(target, kind, older)
        draft = shop / target.name
        yield draft
        if draft.is_dir():
            if kind is not None:
                _mark(draft, kind)
            _check_replaceable(target, kind, older)
            if target.exists():
                target.replace(shop / _OLD)
        draft.replace(target)


@contextmanager
def _naming(target: Path) -> Iterator[None]:
    """An OSError without a file's name leaves with that of ``target``: of a full disk, writing does not say it."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(target)
        raise


@contextmanager
def workshop(target: Path) -> Iterator[Path]:
    """Yield an empty folder beside ``target``, gone at the end; a killed process leaves it to :func:`sweep`."""
    target.parent.mkdir(parents=True, exist_ok=True)
    sweep(target.parent)
    shop, lock = _open_workshop(target)
    try:
        yield shop
    finally:
        with suppress(OSError):  # what cannot be deleted now is left to the next sweep
            _clear(shop, target)
        if lock is not None:
            os.close(lock)


def remove(folder: Path, kind: str, older: Callable[[Path], bool] = lambda _: False) -> None:
    """Remove a folder of this ``kind`` that was made here; arguments and refusals as for :func:`whole`."""
    with workshop(folder) as shop:
        _check_replaceable(folder, kind, older)
        folder.replace(shop / folder.name)


def sweep(folder: Path) -> list[int]:
    """Clear the workshops in ``folder`` whose process was killed; the ids of these processes.

    A folder that was moved aside, and whose successor did not come, is put back. Workshops of living processes are
    left alone, and so is whatever is not a workshop.
    """
    ended = []
    for shop in sorted(folder.glob(".*.draft")):
        with suppress(OSError):  # another user's, or swept by another process at this moment
            if (name := _WORKSHOP.fullmatch(shop.name)) and _is_workshop(shop):
                if (lock := _locked(shop / _LOCK)) is None:
                    continue
                try:
                    pid = os.pread(lock, 20, 0)
                    ended += [int(pid)] if pid.isdigit() else []
                    _clear(shop, folder / name[1])
                finally:
                    os.close(lock)
    return ended


def steps(folder: Path, suffix: str = "") -> list[Path]:
    """What work in steps has kept in ``folder``: files named by a SHA-256 and this suffix, or any."""
    return sorted(file for file in folder.glob(f"*{suffix}") if _HASHED.fullmatch(file.name))


def empty(folder: Path) -> None:
    """Remove what work in steps has kept in ``folder``, and ``folder`` itself if nothing else is in it."""
    sweep(folder)
    for file in steps(folder):
        file.unlink(missing_ok=True)
    with suppress(OSError):
        folder.rmdir()


def alike(files: Iterable[Path]) -> list[list[Path]]:
    """Files with the same bytes, in their order; empty ones and those that cannot be read are like no other.

    Only files of the same size that begin alike are read to their end.
    """
    groups = [list(files)]
    for of in (_size, _beginning, sha256):
        keyed: dict[tuple, list[Path]] = {}
        for number, group in enumerate(groups):
            for file in group:
                with suppress(OSError):
                    keyed.setdefault((number, of(file)), []).append(file)
        groups = [group for (_, key), group in keyed.items() if key and len(group) > 1]
    return groups


def _size(file: Path) -> int:
    return file.stat().st_size


def _beginning(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(4096)


def check(folder: Path, kind: str, own: Collection[str] = ()) -> None:
    """Raise InputError, naming the file, unless ``folder`` is of this ``kind`` and its files are what was written.

    own: folders in it that have a marker of their own, and are checked by who reads them; of these only that is read.
    """
    try:
        written = _written(folder, kind)
    except InputError as error:
        raise InputError(f"{error}. Make it again, or copy it together with its hidden files") from error
    for name, digest in written.items():
        if not (folder / name).is_file():
            raise InputError(f"{folder / name} is missing: make the {kind} again, or copy the folder as a whole")
        if name.partition("/")[0] in own and not name.endswith(MARKER):
            continue
        if sha256(folder / name) != digest:
            raise InputError(f"{folder / name} is damaged: it is not what was written. Make the {kind} again")


def _check_replaceable(target: Path, kind: str | None, older: Callable[[Path], bool]) -> None:
    if kind is not None and target.exists() and not target.is_dir():
        raise InputError(f"{target} is a file, but a {kind} is a folder: name another place")
    if not target.is_dir() or not any(target.iterdir()):
        return
    way_out = "Name another folder, or move what is in it elsewhere"
    if kind is None:
        raise InputError(f"{target} is a folder that is not empty, and is not replaced. {way_out}")
    if not (target / MARKER).exists() and older(target):
        return
    try:
        others = sorted(_files(target) - _written(target, kind).keys())
    except InputError as error:
        raise InputError(f"{target} is not replaced: {error}. {way_out}") from error
    if others:
        rest = f" and {len(others) - 1} more" if len(others) > 1 else ""
        raise InputError(f"{target} is not replaced: {others[0]}{rest} is no part of the {kind} there. {way_out}")


def _mark(folder: Path, kind: str) -> None:
    about = "made by hyperbolic-retrieval-companion, which may replace this folder by another of its kind"
    files = {name: sha256(folder / name) for name in sorted(_files(folder))}
    text = json.dumps({"kind": kind, "about": about, "files": files}, indent=1)
    (folder / MARKER).write_text(text + "\n", encoding="utf-8")


def _written(folder: Path, kind: str) -> dict[str, str]:
    """The marker's files and their SHA-256; InputError if there is no marker, or one of another kind."""
    marker = folder / MARKER
    try:
        about = json.loads(marker.read_text(encoding="utf-8"))
        stated, files = about["kind"], dict(about["files"])
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"{folder} is not a {kind} that was made here: it has no {MARKER} in it") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{marker} is damaged, so nobody knows whether this is a {kind} that was made here") from error
    if stated != kind:
        raise InputError(f"{folder} is not a {kind}: its {MARKER} says {stated}")
    return files


def _files(folder: Path) -> set[str]:
    """Every file below ``folder`` but the marker and clutter, as a relative path with slashes."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.as_posix() for path in paths if not CLUTTER & {*path.parts}} - {MARKER}


def sha256(file: Path) -> str:
    """SHA-256 of what a file holds; OSError if it cannot be read."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _open_workshop(target: Path) -> tuple[Path, int | None]:
    """A new workshop, and the descriptor that keeps it locked; None where the file system knows no locks."""
    for tries_left in (2, 1, 0):  # a sweep may take it for abandoned in the instant before it is locked
        shop = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.", suffix=".draft"))
        with suppress(FileNotFoundError):
            if (lock := _locked(shop / _LOCK)) is not None:
                os.pwrite(lock, str(os.getpid()).encode(), 0)
                return shop, lock
        if tries_left:
            shutil.rmtree(shop, ignore_errors=True)
    return shop, None


def _is_workshop(folder: Path) -> bool:
    """Whether it holds a lock, or nothing yet."""
    return folder.is_dir() and not folder.is_symlink() and ((folder / _LOCK).exists() or not any(folder.iterdir()))


def _locked(file: Path) -> int | None:
    """An open descriptor that holds the lock on ``file``; None if another one holds it, or none can be had."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(OSError, AttributeError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(descriptor).st_nlink:  # else it was removed before the lock came
            return descriptor
    os.close(descriptor)
    return None


def held(file: Path) -> bool:
    """Whether another process holds the lock on ``file``, as DVC and the workshops here lock theirs."""
    if not file.exists() or (lock := _locked(file)) is None:
        return file.exists()
    os.close(lock)
    return False


def _clear(shop: Path, target: Path) -> None:
    """Put back what was moved aside if nothing took its place, and delete the rest; the lock goes last."""
    if (old := shop / _OLD).exists():
        old.replace(shop / _GONE if target.exists() else target)  # what is half deleted is not put back
    for path in shop.iterdir():
        if path.name != _LOCK:
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    (shop / _LOCK).unlink(missing_ok=True)
    shop.rmdir()
