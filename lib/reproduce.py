"""Rebuild all results of a profile, compare them with the committed ones, or say what a profile would run.

``python -m lib.reproduce run demo|sample|paper [--data FOLDER] [--force]``
``python -m lib.reproduce plan demo|sample|paper``
"""

import argparse
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any

from lib import errors, paths
from lib.datasets import finding
from lib.errors import InputError
from lib.results import compare, index, plan, readme


def dvc(*words: str) -> None:
    """Run DVC in the project's root; its own messages are the report.

    Raises:
        InputError: if a stage failed; what failed stands above.
    """
    done = subprocess.run([sys.executable, "-m", "dvc", *words], cwd=paths.ROOT, check=False)
    if done.returncode:
        raise InputError("a stage failed; its message stands above. What was finished is kept: mend it and run again")


def targets(profile: str, settings: dict[str, Any], found: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The stages of ``profile`` whose images are ``found`` (or, if none is named, here), and the datasets missing."""
    runs = {stage: settings[profile].get(stage, {}) for stage in settings["artefacts"]}
    wanted = {dataset for datasets in runs.values() for dataset in datasets}
    here = wanted & set(found) if found else {dataset for dataset in wanted if paths.images(dataset).exists()}
    stages = [
        f"pipelines/{profile}/dvc.yaml:{stage}@{dataset}"
        for stage, datasets in runs.items()
        for dataset in datasets
        if dataset in here
    ]
    return stages, sorted(wanted - here - {"folder"})


def run(profile: str, data: Path | None, force: bool) -> None:
    """Build what is not built yet of ``profile``, on a fresh clone everything, and compare it with the commit.

    Raises:
        InputError: if nothing can be built, a stage fails, or a table deviates more than it may.
    """
    settings = index.params()
    forced = ["--force"] if force else []
    datasets = None
    if profile == "demo":
        dvc("repro", *forced)
    else:
        found = finding.link(data) if data is not None else {}
        for name, folder in found.items():
            print(f"found {name}: {folder}")
        stages, missing = targets(profile, settings, found)
        if missing and "folder" not in found:
            print("not here, left out:", ", ".join(missing), "(see `make plan`)")
        if not stages:
            raise InputError(f"no dataset of profile {profile} is here; say where: DATA=<folder>")
        datasets = {stage.rpartition("@")[2] for stage in stages}
        dvc("repro", "--keep-going", *forced, *stages)
        dvc("repro", "--single-item", "start_here")
    readme.update()
    print("every table and figure: reports/index.md")
    report(profile, *compare.with_commit(profile, settings["compare"], datasets))


def report(profile: str, deviations: list[compare.Deviation], notes: list[str]) -> None:
    """Print the largest deviation from the committed tables, and what was not compared.

    Raises:
        InputError: naming every column beyond its tolerance.
    """
    for note in notes:
        print(f"not compared: {note}")
    beyond = [d for d in deviations if not d.within]
    if beyond:
        lines = "\n".join(f"  {d.table} {d.column}: {d.problem}" for d in beyond)
        raise InputError(f"{len(beyond)} columns deviate from the committed reports more than allowed:\n{lines}")
    if deviations:
        tables = len({d.table for d in deviations})
        worst = max(deviations, key=lambda d: d.deviation)
        print(
            f"{tables} tables of profile {profile} agree with the committed ones; largest deviation "
            f"{worst.deviation:g} (allowed {worst.allowed:g}) in {worst.table}, column {worst.column}"
        )


def main() -> None:
    """Command line, see the top of this module."""
    parser = argparse.ArgumentParser(prog="python -m lib.reproduce", description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["run", "plan"])
    parser.add_argument("profile", choices=list(index.DONE))
    parser.add_argument("--data", type=Path, help="a folder that holds datasets, or your own class folders")
    parser.add_argument("--force", action="store_true", help="rebuild everything, also what did not change")
    arguments = parser.parse_args()
    if arguments.verb == "plan":
        print(plan.text(arguments.profile))
    else:
        run(arguments.profile, arguments.data, arguments.force)


if __name__ == "__main__":
    errors.one_message(main)
