"""Download a dataset, check it, and unpack it whole or not at all.

``python -m lib.datasets.fetch kather|breakhis|ham10000`` (``make data NAME=...``)
"""

import argparse
import shutil
import stat
import tarfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path, PurePosixPath

import pooch
import requests

from lib import paths
from lib.datasets import finding
from lib.datasets.catalogue import DATASETS, Archive, Facts, missing
from lib.errors import InputError, one_message
from lib.paths import whole
from lib.progress import watched

TIMEOUT = 60  # seconds without a byte
DAMAGED = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError)


def names() -> list[str]:
    """Datasets that can be downloaded; one magnification of BreakHis comes with all others."""
    return [name for name, facts in DATASETS.items() if facts.files and not name.startswith("bh")]


def fetch(name: str) -> dict[str, Path]:
    """Download dataset ``name`` into ``data/originals/<name>`` and link what it holds into ``data/``.

    A file that was downloaded whole is kept until all is unpacked, so that a call that broke off goes on with the
    next file. Where nobody states a checksum, the SHA-256 of the first download is kept beside the data, printed, and
    checked at the next. Nothing is downloaded that is there already.

    Returns:
        The datasets that the project now finds: name → folder.

    Raises:
        MissingDataset: for a dataset that has to be downloaded by hand, saying where.
        InputError: for an unknown name, too little free space, a download that fails or has another checksum, an
            archive that is damaged or would write outside its folder. Nothing half is left in place.
    """
    if name in DATASETS and DATASETS[name].page:
        raise missing(name, paths.DATA / name, "cannot be filled by a download from here")
    if name not in names():
        raise InputError(f"{name!r} cannot be downloaded; choose one of {', '.join(names())}")
    facts = DATASETS[name]
    target = paths.DATA / "originals" / name
    downloads = target.parent / f".{name}.download"
    paths.sweep(target.parent)
    if target.exists():
        _discard(downloads, facts)
        print(f"{target} is there already; remove it to download it again")
        return finding.link(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    _check_space(target.parent, facts)
    print(f"downloading {facts.summary()}")
    with whole(target) as draft:
        draft.mkdir()
        for file in facts.files:
            unpack(_download(file, downloads), draft)
    _discard(downloads, facts)
    found = finding.link(target)
    for dataset in found:
        print(f"{paths.DATA / dataset} is ready")
    return found


def unpack(file: Path, target: Path) -> None:
    """Unpack a .zip or .tar.gz into ``target``, or copy any other file there.

    Raises:
        InputError: if the archive is damaged, or has a link or a path that leads out of ``target``.
    """
    try:
        if file.suffix == ".zip":
            with zipfile.ZipFile(file) as archive:
                for member in archive.infolist():
                    _check_member(file, member)
                archive.extractall(target)
        elif ".tar" in file.suffixes:
            with tarfile.open(file) as archive:
                archive.extractall(target, filter="data")
        else:
            shutil.copy2(file, target / file.name)
    except tarfile.FilterError as error:
        raise InputError(f"{file} is not unpacked: {error}. Get it from the original publisher.") from error
    except DAMAGED as error:
        raise InputError(
            f"{file} cannot be unpacked ({error}). Remove it and run again, or download it by hand."
        ) from error


def _check_member(file: Path, member: zipfile.ZipInfo) -> None:
    path = PurePosixPath(member.filename.replace("\\", "/"))
    link = stat.S_ISLNK(member.external_attr >> 16)
    if link or path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        kind = "is a link" if link else "leads out of the folder"
        raise InputError(f"{file} is not unpacked: {member.filename} {kind}. Get it from the original publisher.")


def _download(file: Archive, folder: Path) -> Path:
    """Download one file into ``folder``, or take the one that is there if its checksum is right."""
    record = folder.parent / f"{file.name}.sha256"
    expected = file.checksum or (f"sha256:{record.read_text().strip()}" if record.exists() else None)
    downloader = pooch.HTTPDownloader(progressbar=watched(), timeout=TIMEOUT)
    by_hand = f"Run again, or download {file.url} by hand and put what it holds below a folder: DATA=<folder>"
    try:
        found = Path(pooch.retrieve(file.url, expected, file.name, folder, downloader=downloader))
    except ValueError as error:
        raise InputError(f"{file.name}: what was downloaded has another checksum ({error}). {by_hand}") from error
    except (requests.RequestException, OSError) as error:
        raise InputError(f"{file.name}: the download broke off ({error}). {by_hand}") from error
    if file.checksum is None:
        digest = pooch.file_hash(str(found), alg="sha256")
        print(f"{file.name}: no published checksum; its SHA-256 is {digest}")
        with whole(record) as draft:
            draft.write_text(digest + "\n", encoding="utf-8")
    return found


def _discard(downloads: Path, facts: Facts) -> None:
    """Remove the downloads, what a killed download left of one, and their folder if nothing else is in it."""
    for file in [*(downloads / file.name for file in facts.files), *downloads.glob("tmp????????")]:
        file.unlink(missing_ok=True)
    with suppress(OSError):
        downloads.rmdir()


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
