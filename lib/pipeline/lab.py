"""JupyterLab on working copies: ``python -m lib.pipeline.lab [options of jupyter lab]``.

``build/lab`` holds copies of ``notebooks/`` and ``reports/``, side by side as in the project, so that links work. What
a person runs, changes and saves there is theirs; the committed files are out of JupyterLab's reach.
"""

import hashlib
import json
import os
import shutil
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import nbformat

from lib import errors, pins
from lib.files import whole
from lib.paths import BUILD, NOTEBOOKS, ROOT
from lib.pipeline.notebooks import read, stripped

LAB = BUILD / "lab"
COPIED = ".copied.json"  # file → what it was when it was copied


def offered() -> dict[str, Path]:
    """What the project has to copy, by its name in the lab."""
    files = [*NOTEBOOKS.glob("[0-9]*.ipynb"), *(path for path in (ROOT / "reports").rglob("*") if path.is_file())]
    names = {path.relative_to(ROOT).as_posix(): path for path in files}
    return {name: path for name, path in names.items() if ".draft/" not in name}  # what a run is writing, or left


def described(path: Path) -> dict[str, str]:
    """Hashes of a file as it is, and of what its author wrote: running a notebook does not change that."""
    content = written = path.read_bytes()
    if path.suffix == ".ipynb":
        with suppress(Exception):  # whatever is wrong with somebody's notebook, it is theirs, and counts as it is
            written = nbformat.writes(stripped(read(path))).encode()
    return {"file": hashlib.sha256(content).hexdigest(), "written": hashlib.sha256(written).hexdigest()}


def refresh(lab: Path) -> list[str]:
    """Bring the working copies up to date, but for those that somebody changed.

    A copy that was run but not changed keeps its outputs until the project's file is another one.

    Args:
        lab: folder of the working copies; made if it is not there.

    Returns:
        Names of the files that were changed here while the project's became newer: they stay as they are.
    """
    log = lab / COPIED
    known, new, kept = _known(log), offered(), []
    for name in sorted(known.keys() | new.keys()):
        copy, now = lab / name, described(new[name]) if name in new else None
        was = known.get(name, now)
        if copy.exists() and described(copy)["written"] != was["written"] and described(copy) != now:
            kept += [name] if now not in (was, None) else []
        elif now is None:
            copy.unlink(missing_ok=True)
            del known[name]
        else:
            if now != was or not copy.exists():
                with whole(copy) as draft:
                    shutil.copyfile(new[name], draft)
            known[name] = now
    with whole(log) as draft:
        draft.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
    return kept


def _known(log: Path) -> dict[str, dict[str, str]]:
    """What was copied and as what; if the list of it is damaged, all that differs counts as changed by somebody."""
    try:
        known = json.loads(log.read_text(encoding="utf-8"))
        return {name: {"file": was["file"], "written": was["written"]} for name, was in known.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        warnings.warn(f"{log} is damaged, and made anew: copies that differ from the project's are kept.", stacklevel=3)
        return {}


def message(lab: Path, kept: Sequence[str]) -> str:
    """What a person should know before JupyterLab opens."""
    lines = [
        f"You work on copies in {lab}: run, change and save what you like, the project's own files stay as they are."
    ]
    notebooks = [name for name in kept if name.endswith(".ipynb")]
    if notebooks:
        lines.append(
            "Newer in the project, but changed by you and left as they are; to get the new ones, rename or remove "
            f"yours and run `make lab` again: {', '.join(notebooks)}"
        )
    if len(kept) > len(notebooks):
        lines.append(f"Written by your runs, and left as they are: {len(kept) - len(notebooks)} files in reports/")
    return "\n".join(lines)


def command(lab: Path, options: Sequence[str]) -> list[str]:
    """How to start JupyterLab on the working copies; in a container, where everybody is root, it has to be allowed."""
    root = ["--allow-root"] if os.geteuid() == 0 else []
    place = [f"--ServerApp.root_dir={lab}", "--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb"]
    return [sys.executable, "-m", "jupyterlab", *place, *root, *options]


def environment(lab: Path) -> dict[str, str]:
    """The environment of JupyterLab and its kernels: reports go to the lab; a person's own settings beat the pins."""
    return pins.wanted() | os.environ | {"REPORTS_DIR": str(lab / "reports")}


def main() -> None:
    """Bring the copies up to date, say so, and become JupyterLab."""
    print(message(LAB, refresh(LAB)), flush=True)
    os.execve(sys.executable, command(LAB, sys.argv[1:]), environment(LAB))


if __name__ == "__main__":
    errors.one_message(main)
