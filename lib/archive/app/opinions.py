"""Yes and no to answers, in a csv beside the archive: a line for each, gone only with its image."""

import csv
import io
import os
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from lib import files

try:
    import fcntl
except ImportError:  # Windows: one server at a time
    fcntl = None

COLUMNS = ("time", "query", "query_sha256", "answer", "answer_sha256", "label", "rank", "distance", "left_out", "said")
SAID = ("yes", "no")

_alone = threading.Lock()


def beside(folder: Path) -> Path:
    """The file that belongs to the archive in ``folder``: beside it, as the folder itself is replaced at each save."""
    return folder.with_name(f"{folder.name}-yes-and-no.csv")


def keep(file: Path, **said: object) -> None:
    """Append one line of :data:`COLUMNS` without ``time``; of several clients at once none is lost.

    Whoever changes their mind appends another line: the last one of a query and an answer counts.
    """
    line = _line({"time": datetime.now(UTC).isoformat(timespec="seconds")} | said)
    with _held(file, os.O_CREAT) as place:
        size = os.fstat(place).st_size
        if not size:
            line = _line(dict(zip(COLUMNS, COLUMNS, strict=True))) + line
        elif os.pread(place, 1, size - 1) != b"\n":  # the process before was killed in the middle of a line
            line = b"\n" + line
        while line:
            line = line[os.write(place, line) :]
        os.fsync(place)


def forget(file: Path, gone: Collection[str]) -> None:
    """Drop the lines of images with these SHA-256, as query or as answer; what others append meanwhile is kept."""
    if not gone or not file.is_file():
        return
    with _held(file), file.open(encoding="utf-8", newline="") as stream:
        lines = list(csv.reader(stream))
        kept = [line for line in lines if not any(sha256 in cell for sha256 in gone for cell in line)]
        if len(kept) == len(lines):
            return
        with files.whole(file) as draft, draft.open("w", encoding="utf-8", newline="") as target:
            csv.writer(target, lineterminator="\n").writerows(kept)


@contextmanager
def _held(file: Path, flags: int = 0) -> Iterator[int]:
    """The file, opened for this process and thread alone."""
    with _alone:
        while True:
            place = os.open(file, os.O_RDWR | os.O_APPEND | flags, 0o644)
            try:
                if fcntl:
                    fcntl.flock(place, fcntl.LOCK_EX)
                    if not _still(place, file):
                        continue  # replaced by somebody while this waited
                yield place
                return
            finally:
                os.close(place)


def _still(place: int, file: Path) -> bool:
    """Whether the opened file is the one that has the name."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(place), file.stat())
    return False


def latest(file: Path, sha256: str) -> dict[str, str]:
    """What was said last of the answers to the query with this SHA-256: SHA-256 of the answer → yes or no."""
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8", newline="") as stream:
        lines = [line for line in csv.DictReader(stream) if line.get("query_sha256") == sha256]
    return {line["answer_sha256"]: line["said"] for line in lines if line.get("said") in SAID}


def _line(values: dict[str, object]) -> bytes:
    text = io.StringIO()
    csv.DictWriter(text, COLUMNS, lineterminator="\n").writerow(values)
    return text.getvalue().encode()
