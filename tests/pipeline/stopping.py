"""Ctrl-C, as a terminal sends it: to a command and all its processes."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from lib.paths import ROOT


def stop(script: str, home: Path, begun: str) -> None:
    """Stop a script, called with ``home``, once a file like ``begun`` is there: it ends in one sentence."""
    command = [sys.executable, "-c", script, str(home)]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True, **pipes)
    try:
        deadline = time.monotonic() + 120
        while not list(home.glob(begun)) and time.monotonic() < deadline:
            time.sleep(0.2)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 130 and "Traceback" not in said
    assert said.splitlines()[-1] == "stopped; what was finished is kept, run the same command again to go on"
