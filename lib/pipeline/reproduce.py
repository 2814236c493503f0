"""Rebuild all results of a profile and compare them with the committed ones; say what it would run; only its features.

``python -m lib.pipeline.reproduce run demo|sample|gpu|paper [--data FOLDER] [--name NAME] [--notebooks all] [--force]``
``python -m lib.pipeline.reproduce plan demo|sample|gpu|paper``
``python -m lib.pipeline.reproduce features demo|sample|gpu|paper``
"""

import argparse
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import joblib

from lib import errors, files, paths
from lib.datasets import finding
from lib.datasets.catalogue import DATASETS
from lib.errors import InputError
from lib.pipeline import compare, notebooks, own, pages, plan, profiles
from lib.pipeline.running import WAITS, dvc

AT_ONCE = 2
"""Stages of the demo that run side by side."""


def targets(profile: str, linked: Collection[str] = ()) -> tuple[list[str], list[str]]:
    """The stages of ``profile`` whose images are ``linked`` (or, if none is named, here), and the datasets not here."""
    runs = profiles.runs(profile)
    wanted = {dataset for datasets in runs.values() for dataset in datasets}
    here = {dataset for dataset in wanted if paths.images(dataset).exists()}
    used = wanted & set(linked) if linked else here
    stages = [
        f"pipelines/{profile}/dvc.yaml:{stage}@{dataset}"
        for stage, datasets in runs.items()
        for dataset in datasets
        if dataset in used
    ]
    return stages, sorted(wanted - here - used)


def build_demo(*forced: str) -> None:
    """Build the demo, stages two at a time: a process has one thread, and no stage needs another of its layer.

    A stage has its share of the processors. On two it then starts no process of its own, each of which would import
    torch first.

    Raises:
        InputError: if a stage failed; those that were running are finished, and no other is begun.
    """
    dvc("repro", *forced, "source", "real")
    share = str(max(1, joblib.cpu_count() // AT_ONCE))
    build = partial(dvc, WAITS, "repro", "--single-item", *forced, LOKY_MAX_CPU_COUNT=share)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for layer in layers("demo"):
            for _ in pool.map(build, layer):
                pass
    dvc("repro", "--single-item", *forced, "start_here")
    dvc("repro")  # whatever no profile names


def layers(profile: str) -> list[list[str]]:
    """All stages of ``profile`` but the shared ones, in layers of which each needs only those before it.

    The longest notebooks of a layer come first, so that none is left to run alone at the end.
    """
    runs, settings = profiles.profile(profile), profiles.settings()
    longest = sorted(runs["runs"], key=lambda stage: -plan.demo_seconds(stage, settings))
    stages = [f"{stage}@{dataset}" for stage in longest for dataset in runs["runs"][stage]]
    late = [stage for stage in stages if stage.partition("@")[0] in profiles.needing_others()]
    named = [
        [f"tables@{dataset}" for dataset in runs["datasets"]],
        [stage for stage, _, _ in profiles.features(runs)],
        [f"views@{dataset}" for dataset in runs["views"]],
        [stage for stage in stages if stage not in late],
        late,
    ]
    drawn = [f"drawn@{dataset}" for dataset in runs["datasets"] if dataset in paths.DRAWN]
    return [drawn, *([f"pipelines/{profile}/dvc.yaml:{stage}" for stage in layer] for layer in named)]


def run(profile: str, data: Path | None, name: str | None, force: bool, every: bool = False) -> None:
    """Build what is not built yet of ``profile``, on a fresh clone everything, and compare it with the commit.

    data: a folder that holds known datasets, or your own class folders; name: which of them it is, or how your own
    images are to be called; force: build everything, and train everything anew; every: of your own images also what
    the papers' notebooks say, not only which method serves them.

    Raises:
        InputError: if the profile asks for what cannot be run, nothing can be built, a stage fails, or a table
            deviates more than it may.
    """
    profiles.check(paths.PIPELINES / profile / "params.yaml")
    profiles.settings()
    notebooks.check_writable(paths.REPORTS)
    if data is not None and profile == "demo":
        raise InputError(f"the demo draws its own tiles, and would leave out DATA={data}: add PROFILE=sample")
    if data is None and name is not None:
        raise InputError(f"NAME={name} says what DATA holds: add DATA=<folder> and PROFILE=sample")
    forced = ["--force"] if force else []
    if profile == "demo":
        _forget(force)
        build_demo(*forced)
        finish(profile, None)
        return
    linked = finding.link(data, name) if data is not None else {}
    for dataset, folder in linked.items():
        print(f"found {dataset}: {folder}")
    yours = [dataset for dataset in linked if dataset not in DATASETS]
    if yours:
        _forget(force)
        for dataset in yours:
            own.run(dataset, force, every)
            print(f"which method serves {dataset}: {pages.write_own(dataset).relative_to(paths.ROOT)}")
        return
    stages, missing = targets(profile, linked)
    if missing:
        print("not here, left out:", ", ".join(missing), f"(see `make plan PROFILE={profile}`)")
    if not stages and linked:
        raise InputError(f"profile {profile} has no run on {', '.join(linked)}; `make plan PROFILE=paper` lists others")
    if not stages:
        raise InputError(f"no dataset of profile {profile} is here; say where: DATA=<folder>")
    for dataset in sorted({stage.rpartition("@")[2] for stage in stages} - {*linked, *paths.DRAWN}):
        finding.check_files(paths.images(dataset))
    _forget(force)
    dvc("repro", "--quiet", "source", "real")
    dvc("repro", "--keep-going", *forced, *stages)
    finish(profile, {stage.rpartition("@")[2] for stage in stages})


def _forget(force: bool) -> None:
    """Remove all trained heads and networks where everything is to be trained anew: once it is known what is run."""
    if force:
        files.empty(paths.TRAINED)


def finish(profile: str, datasets: Collection[str] | None) -> None:
    """Bring the index and the README up to date and compare with the committed tables."""
    pages.update()
    print("every table and figure: reports/index.md")
    report(profile, *compare.with_commit(profile, datasets))


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
    parser = argparse.ArgumentParser(prog="python -m lib.pipeline.reproduce", description=__doc__.splitlines()[0])
    parser.add_argument("verb", choices=["run", "plan", "features"])
    parser.add_argument("profile", choices=["demo", "sample", "gpu", "paper"])
    parser.add_argument("--data", type=Path, help="a folder that holds datasets, or your own class folders")
    parser.add_argument("--name", help="which dataset DATA is; or the name of your own images, else the folder's")
    parser.add_argument("--force", action="store_true", help="rebuild everything, also what did not change")
    parser.add_argument("--notebooks", choices=["archive", "all"], default="archive", help="of your own images")
    arguments = parser.parse_args()
    if arguments.verb == "plan":
        print(plan.text(arguments.profile))
    elif arguments.verb == "features":
        dvc("repro", "--quiet", *(f"pipelines/{arguments.profile}/dvc.yaml:{stage}" for stage in ("features", "views")))
    else:
        run(arguments.profile, arguments.data, arguments.name, arguments.force, arguments.notebooks == "all")


if __name__ == "__main__":
    errors.one_message(main)
