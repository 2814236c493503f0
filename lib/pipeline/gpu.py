"""One lease of a GPU: its tests, its bench, then the stages of a profile in order of value, until the time is up.

``python -m lib.pipeline.gpu --minutes 9 --out FOLDER [--data FOLDER] [--profile gpu]``, or ``make gpu``

All results go to the folder as they come, laid out as in the project: copying it over the project brings them home. The
next lease goes on from the same folder. Nothing is asked of a registry or the network, and git may be missing.
"""

import argparse
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from lib import errors, paths
from lib.datasets.catalogue import DATASETS
from lib.errors import InputError
from lib.files import whole

LEAST = 60.0
"""Seconds that have to be left for a step to be started."""
GRACE, RESERVE = 10.0, 20.0
"""Seconds that a stage has to end once it is asked to, and those at the end for this and for the last copies."""
RESULTS = (
    "build/trained/**/*",
    "build/done/{profile}/**/*",
    "build/executed/{profile}/**/*",
    "build/failed/{profile}/**/*",
    "build/features/{profile}/**/*",
    "build/tables/{profile}/*",
    "pipelines/{profile}/dvc.lock",
    "reports/*/{profile}/**/*",
)
"""Files that a lease brings home, and that the next one begins with."""
LONGEST = 500
"""Characters of a message of a step that are repeated in the summary."""
DONE, ENDED = "done", "ended"
STATE = "summary.json"
NO_GPU = " No GPU is taken: its tests are skipped, and trainings take hours."


@dataclass(frozen=True)
class Step:
    """A command, and the ``most`` seconds that it may take."""

    name: str
    command: Sequence[str]
    most: float = math.inf
    lacks: str = ""
    """What is not here, without which it cannot run, and the way out."""


def lacking() -> list[str]:
    """The packages of pyproject.toml that are not on this machine, or in another version than it allows."""
    missing = []
    for wanted in tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]:
        name, least, below = re.split(">=|,<", wanted)
        try:
            here = version(name)
        except PackageNotFoundError:
            missing.append(f"{wanted}: not here")
        else:
            missing += [] if _number(least) <= _number(here) < _number(below) else [f"{wanted}: {here} is here"]
    return missing


def _number(text: str) -> tuple[int, ...]:
    """A version to compare: 2.11.0+cu130 as (2, 11, 0)."""
    return tuple(map(int, re.match(r"[\d.]*\d", text)[0].split(".")))


def steps(profile: str, out: Path, device: str) -> Iterator[Step]:
    """The tests that need a GPU, the bench, and the stages in the ``order`` of the profile's params.yaml, or all.

    Tests and bench are a ``device``'s own: another one takes them anew.
    """
    tests = sorted((paths.ROOT / "tests").rglob("test_*.py"))
    files = [str(file) for file in tests if "mark.gpu" in file.read_text(encoding="utf-8")]
    words = ["-m", "gpu", "-rs", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    yield Step(f"tests on {device}", [sys.executable, "-m", "lib.pinned", "pytest", *words, *files], most=90)
    bench = [sys.executable, "-m", "bench", "--resume", "--out", str(out / "reports/bench")]
    yield Step(f"bench on {device}", bench, most=120)
    from lib.pipeline import profiles

    content = profiles.profile(profile)
    order = content.get("order") or [f"{stage}@{run}" for stage, runs in content["runs"].items() for run in runs]
    for stage in order:
        command = [sys.executable, "-m", "dvc", "repro", f"pipelines/{profile}/dvc.yaml:{stage}"]
        dataset = stage.rpartition("@")[2]
        lacks = f"{dataset} is not here, give DATA=<folder that holds it> (see make plan PROFILE={profile})"
        here = dataset not in DATASETS or paths.images(dataset).exists()
        yield Step(stage, command, lacks="" if here else lacks)


def lease(todo: Sequence[Step], seconds: float, out: Path, profile: str, about: str) -> dict[str, str]:
    """Take the steps one after another for so many ``seconds``; returns what became of each, by its name.

    A step that an earlier lease finished is not taken again. One whose images are not here, or for which less than a
    minute is left, is not started. One that takes too long is ended; every training that it finished is kept, and the
    next lease goes on from there.

    Args:
        out: folder of all results; ``summary.md`` in it says what ran, what failed, and what is left.
        profile: whose results are brought home. about: said in the summary.
    """
    ends = time.monotonic() + seconds - RESERVE
    copy_results(out, paths.ROOT, profile)
    earlier = json.loads((out / STATE).read_text(encoding="utf-8")) if (out / STATE).exists() else {}
    states = {step.name: earlier.get(step.name, "left") for step in todo}
    for step in todo:
        left = ends - time.monotonic()
        if states[step.name].startswith(DONE):
            continue
        begun = f"{ENDED} earlier, " * states[step.name].startswith(ENDED)  # it keeps what it has trained
        if why := step.lacks or f"needs {LEAST:.0f} s, {max(left, 0):.0f} s were left" * (left < LEAST):
            states[step.name] = f"{begun}not started: {why}"
        else:
            try:
                states[step.name] = _take(step, min(left, step.most), out / "logs" / f"{step.name}.log")
            except KeyboardInterrupt:
                states[step.name] = f"{ENDED} because it was stopped, the next lease goes on from what it kept"
                raise
            finally:  # also where somebody stops this
                copy_results(paths.ROOT, out, profile)
                _write(states, about, out)
        print(f"{step.name}: {states[step.name]}", flush=True)
        _write(states, about, out)
    return states


def _write(states: dict[str, str], about: str, out: Path) -> None:
    with whole(out / STATE) as draft:
        draft.write_text(json.dumps(states, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with whole(out / "summary.md") as draft:
        draft.write_text(_summary(states, about), encoding="utf-8")


def _take(step: Step, seconds: float, log: Path) -> str:
    """Run a step for so many ``seconds`` at most, and say what became of it."""
    print(f"{step.name}: at most {seconds:.0f} s, log in {log}", flush=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with log.open("ab") as file:
        process = subprocess.Popen(
            step.command, cwd=paths.ROOT, env=environment(), stdout=file, stderr=file, start_new_session=True
        )
        try:
            code: int | None = process.wait(seconds)
        except subprocess.TimeoutExpired:
            code = None
        finally:
            _end(process)
    took = f"{time.monotonic() - start:.0f} s"
    if code is None:
        return f"{ENDED} after {took}, the next lease goes on from what it kept"
    return f"{DONE} in {took}" if code == 0 else f"failed after {took} (exit status {code}): {_last_line(log)}"


def _end(process: subprocess.Popen) -> None:
    """End a step with all processes of its group: as Ctrl-C does, and if that takes too long, at once."""
    for way in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, way)
        with suppress(subprocess.TimeoutExpired):
            process.wait(GRACE)


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n")
    errors_of = [line for line in lines if re.match(r"error: |\w*Error\b", line)]
    last = (errors_of or [line for line in lines if line.strip()] or ["it said nothing"])[-1]
    return last if len(last) <= LONGEST else f"{last[:LONGEST]} … (all of it: logs/{log.name})"


def _summary(states: dict[str, str], about: str) -> str:
    left = [name for name, state in states.items() if not state.startswith(DONE)]
    rows = "\n".join(f"| {name} | {state.replace('|', '/')} |" for name, state in states.items())
    then = f"Left: {', '.join(left)}. Run again with the same folder." if left else "Nothing is left."
    then += "\n\nTo bring the results home, copy build, pipelines and reports from here over those of the project."
    return f"# One lease of a GPU\n\n{about}\n\n| step | what became of it |\n| --- | --- |\n{rows}\n\n{then}\n"


def environment() -> dict[str, str]:
    """For the steps: this Python first, our code without an installation, no network, plain progress."""
    places = {"PATH": str(Path(sys.executable).parent), "PYTHONPATH": str(paths.ROOT)}
    before = {name: os.pathsep.join(filter(None, [place, os.environ.get(name)])) for name, place in places.items()}
    return os.environ | before | {"DVC_NO_ANALYTICS": "1", "HF_HUB_OFFLINE": "1", "HEADLESS": "1"}


def copy_results(source: Path, target: Path, profile: str) -> None:
    """Copy the :data:`RESULTS` of a profile that ``target`` has not, or has older."""
    for pattern in RESULTS:
        for file in source.glob(pattern.format(profile=profile)):
            there = target / file.relative_to(source)
            newer = not there.exists() or there.stat().st_mtime < file.stat().st_mtime
            if file.is_file() and newer and ".draft/" not in file.as_posix():
                there.parent.mkdir(parents=True, exist_ok=True)
                with whole(there) as draft:
                    shutil.copy2(file, draft)


def minutes(text: str) -> float:
    """The minutes of a lease, as the user gave them.

    Raises:
        InputError: for what is no number above 0.
    """
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise InputError(f"MINUTES={text} is no number of minutes above 0; write, for example, MINUTES=9")
    return given


def main() -> None:
    """Command line, see the top of this module."""
    parser = argparse.ArgumentParser(prog="python -m lib.pipeline.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", required=True, help="after which everything has ended, as 9")
    parser.add_argument("--out", type=Path, required=True, help="folder that all results go to")
    parser.add_argument("--data", type=Path, help="a folder that holds datasets")
    parser.add_argument("--profile", default="gpu", choices=["demo", "sample", "gpu", "paper"])
    arguments = parser.parse_args()
    start, out, given = time.monotonic(), arguments.out.resolve(), minutes(arguments.minutes)
    if (file := next((place for place in (out, *out.parents) if place.is_file()), None)) is not None:
        raise InputError(f"OUT={arguments.out}: {file} is a file; name a folder, new or of an earlier lease")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # how others end a lease: as Ctrl-C does
    about = [f"{given:g} minutes, profile {arguments.profile}."]
    if missing := lacking():
        about.append(f"Some steps will fail for want of packages: {'; '.join(missing)}. `make env` installs them.")
    device = "this machine"
    try:
        from lib import devices

        device = devices.name()
        about.append(f"On {device}.{NO_GPU if device == devices.CPU else ''}")
    except ImportError as error:
        about.append(f"torch cannot be imported: {error}.")
    if arguments.data is not None:
        from lib.datasets import finding

        about += [f"{dataset}: {folder}." for dataset, folder in finding.link(arguments.data).items()]
    print("\n".join(about), flush=True)
    if not (paths.ROOT / ".git").exists():  # which DVC asks for otherwise
        (paths.ROOT / ".dvc" / "config.local").write_text("[core]\n    no_scm = true\n", encoding="utf-8")
    todo = [*steps(arguments.profile, out, device)]
    left = 60 * given - (time.monotonic() - start)
    lease(todo, left, out, arguments.profile, "\n\n".join(about))


if __name__ == "__main__":
    errors.one_message(main)
