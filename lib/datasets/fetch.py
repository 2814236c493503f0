"""Download a dataset, check it, and unpack it whole or not at all.

``python -m lib.datasets.fetch kather|breakhis|ham10000`` (``make data NAME=...``)
"""

import argparse
import bz2
import gzip
import lzma
import shutil
import stat
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pooch
import requests

from lib import files, paths
from lib.datasets import finding
from lib.datasets.catalogue import DATASETS, Archive, Facts, missing
from lib.errors import InputError, one_message
from lib.files import whole
from lib.progress import watched

TIMEOUT = 60  # seconds without a byte
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError)
RATIO, SLACK = 20, 10_000_000
"""Bytes that may come out of each byte of an archive, and those that any may hold: images shrink to a half at most, but
2.5 MB of zeros can become a gigabyte."""


def names() -> list[str]:
    """Datasets that can be downloaded; one magnification of BreakHis comes with all others."""
    return [name for name, facts in DATASETS.items() if facts.files and not name.startswith("bh")]


def fetch(name: str) -> dict[str, Path]:
    """Download dataset ``name`` into ``data/originals/<name>`` and link what it holds into ``data/``.

    A file that was downloaded whole is kept until all is unpacked, so that a call that broke off goes on with the
    next file. If nobody states a checksum, the SHA-256 of the first download that held the dataset is kept with the
    data, printed, and checked at the next. Nothing is downloaded that is there already.

    Returns:
        The datasets that the project now finds: name → folder.

    Raises:
        MissingDataset: for a dataset that has to be downloaded by hand, saying where.
        InputError: for an unknown name, too little free space, a download that fails, has another checksum or is no
            archive (such as a login page), an archive that is damaged, does not hold the dataset, or would write
            outside its folder or much more than images can. Nothing half is left in place.
    """
    if name in DATASETS and DATASETS[name].page:
        raise missing(name, paths.DATA / name, "cannot be filled by a download from here")
    if name not in names():
        raise InputError(f"{name!r} cannot be downloaded; choose one of {', '.join(names())}")
    facts = DATASETS[name]
    target = paths.DATA / "originals" / name
    downloads = target.parent / f".{name}.download"
    files.sweep(target.parent)
    if target.exists():
        _discard(downloads, facts)
        print(f"{target} is there already; remove it to download it again")
        return finding.link(target, name)
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_space(target.parent, facts)
    print(f"downloading {facts.summary()}")
    with whole(target) as draft:
        draft.mkdir()
        archives = {file: _download(file, downloads) for file in facts.files}
        for archive in archives.values():
            unpack(archive, draft)
        _check_holds(draft, name, downloads)
        for file, archive in archives.items():
            _remember(file, archive)
    _discard(downloads, facts)
    datasets = finding.link(target, name)
    for dataset in datasets:
        print(f"{paths.DATA / dataset} is ready")
    return datasets


def unpack(file: Path, target: Path) -> None:
    """Unpack a .zip or .tar.gz into ``target``, or copy any other file there.

    Raises:
        InputError: if the archive is damaged, encrypted or packed by an unknown method, has a link or a path that
            leads out of ``target``, or would become more than ``RATIO`` times as large.
    """
    limit = RATIO * file.stat().st_size + SLACK
    by_hand = f"Remove {file} and run again, or download it by hand from its publisher"
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                members = archive.infolist()
                for member in members:
                    _check_member(member)
                _check_size(sum(member.file_size for member in members), limit)
                named = [member for member in members if PurePosixPath(member.filename).parts]
                archive.extractall(target, named)  # without "./", which zipfile of Python 3.12 refuses
        elif ".tar" in file.suffixes:
            with tarfile.open(file) as archive:
                archive.extractall(target, _within(archive, limit), filter="data")
            _read_to_end(file)
        else:
            shutil.copy2(file, target / file.name)
    except (_Refused, tarfile.FilterError) as error:
        raise InputError(f"{file} is not unpacked: {error}. {by_hand}") from error
    except RuntimeError as error:  # encrypted, or a compression that zipfile does not know
        raise InputError(
            f"{file} cannot be unpacked here ({error}). Unpack it with another program and say where: DATA=<folder>"
        ) from error
    except (*DAMAGED, ValueError) as error:  # ValueError: names that are no text
        raise InputError(f"{file} cannot be unpacked ({error}). {by_hand}") from error


def _read_to_end(file: Path) -> None:
    """Read a compressed archive to its end, where its checksum is: tarfile stops at the last member."""
    opened = {".gz": gzip.open, ".tgz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}.get(file.suffix)
    if opened is not None:
        with opened(file) as stream:
            while stream.read(2**20):
                pass


class _Refused(ValueError):
    """An archive that would do harm."""


def _check_member(member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    if stat.S_ISLNK(member.external_attr >> 16):
        raise _Refused(f"{member.filename} is a link")
    if path.is_absolute() or ".." in path.parts or any(":" in part for part in path.parts[:1]):
        raise _Refused(f"{member.filename} leads out of the folder")


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise _Refused(f"it would become {size / 1e6:,.0f} MB or more, and {limit / 1e6:,.0f} MB is much for its size")


def _within(archive: tarfile.TarFile, limit: int) -> Iterator[tarfile.TarInfo]:
    """The members of an archive, as long as all of them together stay below ``limit`` bytes."""
    size = 0
    for member in archive:
        size += member.size
        _check_size(size, limit)
        yield member


def _download(file: Archive, folder: Path) -> Path:
    """Download one file into ``folder``, or take the one that is there if its checksum is right."""
    record = _record(file)
    expected = file.checksum or (f"sha256:{record.read_text().strip()}" if record.exists() else None)
    downloader = pooch.HTTPDownloader(progressbar=watched(), timeout=TIMEOUT)
    by_hand = f"Run again, or download {file.url} by hand and put what it holds below a folder: DATA=<folder>"
    try:
        archive = Path(pooch.retrieve(file.url, expected, file.name, folder, downloader=downloader))
    except ValueError as error:
        changed = f" If the publisher has changed the file, remove {record} first." if file.checksum is None else ""
        raise InputError(
            f"{file.name}: what was downloaded has another checksum ({error}). {by_hand}.{changed}"
        ) from error
    except (requests.RequestException, OSError) as error:
        raise InputError(f"{file.name}: the download broke off ({error}). {by_hand}") from error
    if file.checksum is None and not _is_archive(archive):
        with archive.open("rb") as stream:
            start = stream.read(40).decode(errors="replace").strip()
        archive.unlink()
        raise InputError(
            f"{file.name}: {file.url} answered with something that is no archive, perhaps a page to log in; it begins "
            f"with {start!r} and was removed. Look at the address in a browser. {by_hand}"
        )
    return archive


def _discard(downloads: Path, facts: Facts) -> None:
    """Remove the downloads, what a killed download left of one, and their folder if nothing else is in it."""
    for file in [*(downloads / file.name for file in facts.files), *downloads.glob("tmp????????")]:
        file.unlink(missing_ok=True)
    with suppress(OSError):
        downloads.rmdir()


def _is_archive(file: Path) -> bool:
    """Whether a file is what its name says, as far as that can be seen without unpacking."""
    if file.suffix == ".zip":
        return zipfile.is_zipfile(file)
    return ".tar" not in file.suffixes or tarfile.is_tarfile(file)


def _check_holds(draft: Path, name: str, downloads: Path) -> None:
    try:
        finding.find(draft, name)
    except InputError as error:
        raise InputError(
            f"what was downloaded does not hold {DATASETS[name].title}. Look into {downloads}, remove it and run again"
        ) from error


def _remember(file: Archive, archive: Path) -> None:
    """Keep the checksum of a file that turned out to be right, if nobody states one."""
    if file.checksum is None:
        digest = files.sha256(archive)
        print(f"{file.name}: no published checksum; its SHA-256 is {digest}")
        with whole(_record(file)) as draft:
            draft.write_text(digest + "\n", encoding="utf-8")


def _record(file: Archive) -> Path:
    return paths.DATA / "originals" / f"{file.name}.sha256"


def _check_space(folder: Path, facts: Facts) -> None:
    """The archive and what it holds lie on the disk side by side for a while."""
    free, needed = shutil.disk_usage(folder).free / 1e9, 2.2 * facts.gigabytes
    if free < needed:
        raise InputError(f"{folder} has {free:.1f} GB free; {facts.title} needs {needed:.1f} GB while it is unpacked")


def main() -> None:
    """Parse the command line and download."""
    parser = argparse.ArgumentParser(prog="make data", description=__doc__.splitlines()[0])
    parser.add_argument("name", nargs="?", default="", help=", ".join(names()))
    fetch(parser.parse_args().name)


if __name__ == "__main__":
    one_message(main)
