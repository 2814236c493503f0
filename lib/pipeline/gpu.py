"""One lease of a GPU: its tests, its bench, then the stages of a profile in order of value, until the time is up.

``python -m lib.pipeline.gpu --minutes 9 --out FOLDER [--data FOLDER] [--profile gpu]``, or ``make gpu``

All results go to the folder as they come, laid out as in the project: copying it over the project brings them home. The
same folder in the next lease is gone on from. Nothing is asked of a registry or the network, and git may be missing.
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
from lib.files import whole

LEAST = 60.0
"""Seconds that have to be left for a step to be started of which nobody knows how long it takes."""
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
DONE, ENDED = "done", "ended"
STATE = "summary.json"


@dataclass(frozen=True)
class Step:
    """A command; ``seconds`` that it is expected to take, and the most that it may take."""

    name: str
    command: Sequence[str]
    seconds: float = LEAST
    most: float = math.inf


def lacking() -> list[str]:
    """The packages of pyproject.toml that are not on this machine, or in another version than it allows."""
    found = []
    for wanted in tomllib.loads((paths.ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]:
        name, least, below = re.split(">=|,<", wanted)
        try:
            here = version(name)
        except PackageNotFoundError:
            found.append(f"{wanted}: not here")
        else:
            found += [] if _number(least) <= _number(here) < _number(below) else [f"{wanted}: {here} is here"]
    return found


def _number(text: str) -> tuple[int, ...]:
    """A version to compare: 2.11.0+cu130 as (2, 11, 0)."""
    return tuple(map(int, re.match(r"[\d.]*\d", text)[0].split(".")))


def steps(profile: str, out: Path) -> Iterator[Step]:
    """The tests that need a GPU, the bench, and the stages in the ``order`` of the profile's params.yaml, or all.

    A stage takes as long as ``make plan`` says.
    """
    tests = sorted((paths.ROOT / "tests").rglob("test_*.py"))
    files = [str(file) for file in tests if "mark.gpu" in file.read_text(encoding="utf-8")]
    words = ["-m", "gpu", "-rs", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    yield Step("tests", [sys.executable, "-m", "lib.pinned", "pytest", *words, *files], most=150)
    yield Step("bench", [sys.executable, "-m", "lib.bench", "--out", str(out / "reports/bench")], most=180)
    from lib.pipeline import plan, profiles

    content = profiles.profile(profile)
    order = content.get("order") or [f"{stage}@{run}" for stage, runs in content["runs"].items() for run in runs]
    hours = plan.table(profile, profiles.settings()).set_index("stage")["hours"]
    for stage in order:
        target = f"pipelines/{profile}/dvc.yaml:{stage}"
        yield Step(stage, [sys.executable, "-m", "dvc", "repro", target], 3600 * hours[stage])


def lease(todo: Sequence[Step], seconds: float, out: Path, profile: str, about: str) -> dict[str, str]:
    """Take the steps one after another for so many ``seconds``; returns what became of each, by its name.

    A step that an earlier lease finished is not taken again, one that is expected to take longer than what is left is
    not started, and one that takes too long is ended; what it kept is gone on from next time.

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
        begun = states[step.name].startswith(ENDED)  # a part of it is done
        needed = min(step.seconds, LEAST) if begun else step.seconds
        if left < needed:
            states[step.name] = f"not started: needs about {needed:.0f} s, {max(left, 0):.0f} s were left"
        else:
            try:
                states[step.name] = _take(step, min(left, step.most), out / "logs" / f"{step.name}.log")
            finally:  # also where somebody stops this
                copy_results(paths.ROOT, out, profile)
        print(f"{step.name}: {states[step.name]}", flush=True)
        with whole(out / STATE) as draft:
            draft.write_text(json.dumps(states, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        with whole(out / "summary.md") as draft:
            draft.write_text(_summary(states, about), encoding="utf-8")
    return states


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
        return f"{ENDED} after {took}, gone on from next time"
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
    return (errors_of or [line for line in lines if line.strip()] or ["it said nothing"])[-1][:200]


def _summary(states: dict[str, str], about: str) -> str:
    left = [name for name, state in states.items() if not state.startswith(DONE)]
    rows = "\n".join(f"| {name} | {state.replace('|', '/')} |" for name, state in states.items())
    then = f"Left: {', '.join(left)}. Run again with the same folder." if left else "Nothing is left."
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
                    shutil.copyfile(file, draft)
                    os.utime(draft, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))


def main() -> None:
    """Command line, see the top of this module."""
    parser = argparse.ArgumentParser(prog="python -m lib.pipeline.gpu", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, required=True, help="after which everything has ended")
    parser.add_argument("--out", type=Path, required=True, help="folder that all results go to")
    parser.add_argument("--data", type=Path, help="a folder that holds datasets")
    parser.add_argument("--profile", default="gpu", help="default: %(default)s")
    arguments = parser.parse_args()
    start, out = time.monotonic(), arguments.out.resolve()
    about = [f"{arguments.minutes:g} minutes, profile {arguments.profile}."]
    if missing := lacking():
        about.append("Packages, without which some steps fail: " + "; ".join(missing) + ".")
    try:
        from lib import devices

        about.append(f"On {devices.name()}.")
    except ImportError as error:
        about.append(f"torch cannot be imported: {error}.")
    if arguments.data is not None:
        from lib.datasets import finding

        about += [f"{dataset}: {folder}." for dataset, folder in finding.link(arguments.data).items()]
    print("\n".join(about), flush=True)
    if not (paths.ROOT / ".git").exists():  # which DVC asks for otherwise
        (paths.ROOT / ".dvc" / "config.local").write_text("[core]\n    no_scm = true\n", encoding="utf-8")
    todo = [*steps(arguments.profile, out)]
    left = 60 * arguments.minutes - (time.monotonic() - start)
    lease(todo, left, out, arguments.profile, "\n\n".join(about))


if __name__ == "__main__":
    errors.one_message(main)
