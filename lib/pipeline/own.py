"""Your own images: a pipeline of their own in ``build/own-<name>/``, with its own results in ``reports/*/own/<name>/``.

Its text is the one that all profiles share; ``pipelines/own.yaml`` says what runs.
"""

import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import yaml
from dvc.repo import Repo
from dvc.stage import Stage

from lib import files, paths
from lib.files import whole
from lib.pipeline import notebooks, profiles
from lib.pipeline.running import explained


def pipeline(name: str, every: bool = False) -> Path:
    """Write the pipeline of the own dataset ``name``; returns its dvc.yaml. What it recorded of earlier runs stays.

    every: the papers' notebooks too, not only the one that says which method serves these images.
    """
    folder, content = paths.BUILD / f"own-{name}", profiles.own(name)
    papers = content.pop("papers", {})
    if every:
        content |= papers | {"runs": content["runs"] | papers.get("runs", {})}
    texts = {
        "dvc.yaml": (paths.PIPELINES / "sample" / "dvc.yaml").read_text(encoding="utf-8"),
        "params.yaml": yaml.safe_dump(content, sort_keys=False, allow_unicode=True),
    }
    for file, text in texts.items():
        with whole(folder / file) as draft:
            draft.write_text(text, encoding="utf-8")
    return folder / "dvc.yaml"


def run(name: str, force: bool = False, every: bool = False) -> None:
    """Build what is not built yet for the own dataset ``name``; results of stages that will run are cleared first.

    every: as for :func:`pipeline`.

    Raises:
        InputError: if another run is under way, or a stage failed; what failed stands above. All stages that do not
            need it are finished.
    """
    for other in paths.BUILD.glob("own-*"):
        pipeline(other.name.removeprefix("own-"))  # DVC reads them all, those of an earlier version too
    file = pipeline(name, every)
    profiles.check(file.with_name("params.yaml"), own=name)
    target = str(file.relative_to(paths.ROOT))
    os.chdir(paths.ROOT)
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    repo = Repo(config={"core": {"no_scm": True}})  # build/ is ignored by git, and DVC refuses pipelines that are
    with explained():
        repo.reproduce(["dvc.yaml:source", "dvc.yaml:real"])
        for folder in _stale(repo, target, name, force):
            files.remove(folder, notebooks.SECTION, older=notebooks.holds_reports)
        _stoppable(partial(repo.reproduce, [target], force=force, on_error="keep-going"))


def _stoppable(work: Callable[[], object]) -> None:
    """Do ``work`` in a thread: in the main one DVC ignores Ctrl-C while a stage runs, and goes on with the next."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            work()
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]


def _stale(repo: Repo, target: str, name: str, force: bool) -> list[Path]:
    """Folders of results of the stages that will run: none of them is to stand beside new ones."""
    stages, changed = repo.stage.collect(target), set(repo.status([target]))
    stale = [stage for stage in stages if force or stage.addressing in changed]
    made: set[str] = set()
    while new := {out.fs_path for stage in stale for out in stage.outs} - made:  # and whatever rests on them
        made |= new
        stale += [stage for stage in stages if stage not in stale and _reads(stage, made)]
    reports = [Path(path) for path in sorted(made) if Path(path).is_relative_to(paths.REPORTS)]
    return [folder for folder in reports if f"/own/{name}/" in str(folder) and folder.is_dir()]


def _reads(stage: Stage, made: set[str]) -> bool:
    """Whether a stage rests on one of the files or folders ``made``, or on a folder that one of them is in."""
    return any(Path(path).is_relative_to(dep.fs_path) for dep in stage.deps for path in made)
