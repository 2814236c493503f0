"""Runs of DVC, and in one sentence why one did not come to its end."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from dvc.exceptions import DvcException

from lib import files, paths
from lib.errors import InputError

WAITS = "--wait-for-lock"
"""Of stages that run side by side: each other's locks are no other run."""


def dvc(*words: str, **environment: str) -> None:
    """Run DVC in the project's root, in this ``environment`` and what is set already; its messages are the report.

    Raises:
        InputError: if the project is no git repository, another run is under way, or a stage failed; what failed
            stands above.
    """
    _check_git()
    command = [sys.executable, "-m", "dvc", *words]
    with explained(alone=WAITS not in words):
        subprocess.run(command, cwd=paths.ROOT, env=os.environ | environment, check=True)


@contextmanager
def explained(alone: bool = True) -> Iterator[None]:
    """Turn what DVC raises in this block into an InputError; alone: if another run is under way, that is the reason."""
    try:
        yield
    except (DvcException, subprocess.CalledProcessError) as error:
        if alone and (other := holder()):
            raise InputError(
                f"another run is under way (process {other}): wait for it to end, and run again. "
                "If a stage failed, its message stands above"
            ) from error
        raise InputError(
            "a stage failed; its message stands above. What was finished is kept: mend it and run again"
        ) from error


def holder() -> int | None:
    """The process of another run of DVC in this project, which keeps the repository or files of a stage to itself."""
    folder = paths.ROOT / ".dvc" / "tmp"
    held: list[int] = []
    with suppress(OSError, ValueError):
        if files.held(folder / "lock"):
            held.append(int((folder / "lock").read_text()))
    with suppress(OSError, ValueError):
        locks = json.loads((folder / "rwlock").read_text(encoding="utf-8"))
        readers = [reader for holders in locks.get("read", {}).values() for reader in holders]
        held += [process["pid"] for process in (*locks.get("write", {}).values(), *readers)]
    return next((process for process in held if process != os.getpid() and _lives(process)), None)


def _lives(process: int) -> bool:
    """Whether there is such a process; DVC strikes the locks of those that were killed."""
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except ProcessLookupError:
        return False
    return True


def _check_git() -> None:
    """DVC asks git what to ignore, and what is rebuilt is compared with the commit."""
    try:
        subprocess.run(["git", "rev-parse"], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise InputError("git is not installed: install it, since results are compared with the commit") from None
    except subprocess.CalledProcessError as error:
        fault = error.stderr.strip()
        raise InputError(f"{paths.ROOT}: {fault}. Get the project with `git clone`, not as an archive") from error
