"""Results come in order from other processes, and a killed run leaves nothing in shared memory for good."""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import joblib
import numpy as np
import pytest

from lib import paths, processes

SCRIPT = """
    import sys, time
    import joblib, numpy as np
    from lib import processes

    def total(x, seconds):
        time.sleep(seconds)
        return x.sum()

    x = np.ones((1000, 1000))
    print(*processes.spread([joblib.delayed(total)(x, float(sys.argv[1]))] * 3, workers=2))
"""


def start(shared: Path, seconds: float) -> subprocess.Popen:
    """A run of its own, in a process group of its own, that shares an array of 8 MB."""
    command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(seconds)]
    environment = {**os.environ, "JOBLIB_TEMP_FOLDER": str(shared), "OMP_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, cwd=paths.ROOT, env=environment, start_new_session=True, **pipes)


def children(pid: int) -> list[int]:
    """The processes that this one started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def lives(pid: int) -> bool:
    """Whether a process runs, and is not only waiting to be buried."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


def eventually(true: Callable[[], object], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not (done := true()) and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(done)


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="Linux names the children of a process there")
def test_workers_of_a_killed_run_end_with_it(tmp_path, request):
    """Working or waiting for work, and so do the trackers that they keep alive."""
    run = start(tmp_path, seconds=60)
    request.addfinalizer(lambda: run.poll() is None and run.kill())
    assert eventually(lambda: sum(file.stat().st_size for file in tmp_path.rglob("*.pkl")) >= 8e6, 60)
    assert eventually(lambda: len(children(run.pid)) >= 3, 60)  # two workers, and who tracks their resources
    time.sleep(1)
    started = children(run.pid)
    os.kill(run.pid, signal.SIGKILL)
    run.wait()
    run.stdout.close(), run.stderr.close()
    gone = eventually(lambda: not any(map(lives, started)), 20)
    for pid in filter(lives, started):
        os.kill(pid, signal.SIGKILL)
    assert gone


def semaphores(pid: int) -> list[Path]:
    return list(processes.SHARED.glob(f"sem.loky-{pid}-*"))


@pytest.mark.slow
def test_a_killed_run_is_tidied_up_after_by_the_next_and_a_living_one_is_left_alone(tmp_path, request):
    killed = start(tmp_path, seconds=60)
    request.addfinalizer(lambda: killed.poll() is None and os.killpg(killed.pid, signal.SIGKILL))
    assert eventually(lambda: sum(file.stat().st_size for file in tmp_path.rglob("*.pkl")) >= 8e6, 60)
    assert semaphores(killed.pid)
    theirs = [path for path in tmp_path.iterdir()]
    (tmp_path / "thesis.txt").write_text("all of it")

    alive = start(tmp_path, seconds=0)
    assert alive.communicate(timeout=120) == ("1000000.0 1000000.0 1000000.0\n", "")
    assert sorted(tmp_path.iterdir()) == sorted([*theirs, tmp_path / "thesis.txt"])

    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert theirs[0].exists()
    after = start(tmp_path, seconds=0)
    assert after.communicate(timeout=120) == ("1000000.0 1000000.0 1000000.0\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    for run in (killed, alive, after):
        assert semaphores(run.pid) == []


def entered(folder: Path, number: int) -> tuple[int, int]:
    (folder / str(number)).touch()
    return number, os.getpid()


def test_work_is_done_a_little_ahead_in_order_and_ends_when_nobody_wants_more(tmp_path):
    jobs = [(tmp_path, number) for number in range(40)]
    results = processes.ahead(entered, jobs, workers=2)
    number, worker = next(results)
    time.sleep(1)
    assert number == 0 and worker != os.getpid() and len(list(tmp_path.iterdir())) <= 6
    assert [number for number, _ in islice(results, 20)] == list(range(1, 21))
    results.close()
    assert eventually(lambda: not lives(worker), 20) and len(list(tmp_path.iterdir())) < 40
    assert list(processes.ahead(entered, jobs, workers=1)) == [(number, os.getpid()) for number in range(40)]


def test_shared_memory_is_used_where_there_is_enough(tmp_path, monkeypatch):
    monkeypatch.delenv("JOBLIB_TEMP_FOLDER", raising=False)
    usage = {"free": 3e9}
    monkeypatch.setattr(processes, "SHARED", tmp_path)
    monkeypatch.setattr(processes.shutil, "disk_usage", lambda _: type("Usage", (), usage))
    assert processes._place() == tmp_path
    usage["free"] = 1e9
    monkeypatch.setattr(processes.tempfile, "gettempdir", lambda: "/elsewhere")
    assert processes._place() == Path("/elsewhere")
    monkeypatch.setattr(processes, "SHARED", tmp_path / "nothing")
    assert processes._place() == Path("/elsewhere")
    monkeypatch.setenv("JOBLIB_TEMP_FOLDER", "/chosen")
    assert processes._place() == Path("/chosen")


def test_one_worker_is_this_process_and_several_share_large_arrays():
    """A worker sees a map of a file, and it lies in our workshop."""
    jobs = [joblib.delayed(lambda i: (i, os.getpid()))(i) for i in range(5)]
    assert list(processes.spread(jobs, workers=1)) == [(i, os.getpid()) for i in range(5)]
    x = np.ones((1000, 1000))
    look = joblib.delayed(lambda shared: (type(shared).__name__, shared.filename))
    ((kind, file),) = processes.spread([look(x)], workers=2)
    assert kind == "memmap" and file.startswith(f"{processes.shared()}/")
