"""Work on several processes, and nothing of it left in memory when a run was killed.

joblib hands large arrays to other processes through files in shared memory. Whoever kills a run together with its
processes leaves them there, gigabytes that count as used memory until the machine restarts. So they lie in a workshop
of our own (:func:`lib.files.workshop`), which the next run sweeps away, together with the semaphores of the ended run.
Where the run alone is killed, its workers notice that, and end.
"""

import atexit
import functools
import os
import shutil
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import ProcessPoolExecutor

from lib import files

SHARED = Path("/dev/shm")


def spread(jobs: Iterable[Any], workers: int = -1) -> Iterator[Any]:
    """The results of ``jobs``, made by ``joblib.delayed``, in their order.

    workers: processes; -1 takes all processors, 1 computes in this process.
    """
    folder = None if workers == 1 else str(shared())
    ending = {"initializer": end_with, "initargs": (os.getpid(),)}
    return joblib.Parallel(n_jobs=workers, return_as="generator", temp_folder=folder, **ending)(jobs)


def ahead(work: Callable[..., Any], jobs: Iterable[tuple], workers: int = -1) -> Iterator[Any]:
    """The results of ``work(*job)`` in the order of ``jobs``, a few of which are done before they are asked for.

    So results that take much memory do not pile up when they are made faster than used. workers: as for :func:`spread`,
    but of processes for this work alone, which know only what ``work`` imports.
    """
    if workers == 1:
        yield from (work(*job) for job in jobs)
        return
    n = joblib.effective_n_jobs(workers)
    waiting = deque()
    with ProcessPoolExecutor(n, initializer=end_with, initargs=(os.getpid(),)) as pool:
        try:
            for job in jobs:
                waiting.append(pool.submit(work, *job))
                if len(waiting) > 2 * n:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


def end_with(parent: int) -> None:
    """End this process soon after its ``parent``: of one that was killed nobody tells it, and it waits for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, name="parent watch", daemon=True).start()


@functools.cache
def shared() -> Path:
    """Where this process puts what others shall read, as long as it lives; ended runs are tidied up after."""
    folder = _place()
    for pid in files.sweep(folder):
        _forget(pid)
    stack = ExitStack()
    mine = stack.enter_context(files.workshop(folder / "hyperbolic-retrieval"))
    atexit.register(stack.close)
    return mine


def _place() -> Path:
    """Shared memory where there is enough of it, as joblib chooses, otherwise the folder for temporary files."""
    roomy = os.access(SHARED, os.W_OK) and shutil.disk_usage(SHARED).free > 2e9
    return Path(os.environ.get("JOBLIB_TEMP_FOLDER") or (SHARED if roomy else tempfile.gettempdir()))


def _forget(pid: int) -> None:
    """Remove the semaphores of an ended process, unless another one has its number by now."""
    with suppress(PermissionError):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            for semaphore in SHARED.glob(f"sem.loky-{pid}-*"):
                semaphore.unlink(missing_ok=True)
