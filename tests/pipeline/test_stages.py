"""One text for all profiles; a stage runs again when the code that it imports changes, and for nothing else."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import nbformat
import pytest
import yaml

from lib import paths
from lib.pipeline import notebooks, profiles
from lib.study.saved import place

PAPERS = sorted(path.name for path in (paths.ROOT / "lib/papers").iterdir() if path.is_dir())
TEXTS = [paths.PIPELINES / profile / "dvc.yaml" for profile in ("demo", "sample", "gpu", "paper")]


def test_every_profile_runs_the_same_text():
    assert len({text.read_bytes() for text in TEXTS}) == 1


@pytest.mark.parametrize("profile", ["demo", "sample", "gpu", "paper"])
def test_a_profile_says_of_every_stage_what_it_runs(profile):
    assert set(profiles.runs(profile)) == set(profiles.notebooks())


@pytest.mark.parametrize(("stage", "notebook"), profiles.notebooks().items())
def test_a_notebook_stage_depends_on_its_source_and_its_code(stage, notebook):
    entry = profiles.stages()[stage]["do"]
    assert entry["deps"][:2] == [f"build/source/{notebook}.ipynb", f"build/code/{notebook}"]
    assert not any(dep.startswith(("lib", "notebooks")) for dep in entry["deps"])


@pytest.mark.parametrize(("stage", "notebook"), profiles.notebooks().items())
def test_a_stage_depends_on_all_that_its_notebook_reads(stage, notebook):
    cells = notebooks.read(paths.NOTEBOOKS / f"{notebook}.ipynb").cells
    code = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
    deps = profiles.stages()[stage]["do"]["deps"]
    paper = next(name for name in PAPERS if stage.startswith(name))
    section = paths.ROOT / "lib" / "papers" / paper / stage.removeprefix(f"{paper}_")
    texts = [file.read_text() for file in (section.with_suffix(".py"), *section.glob("*.py")) if file.is_file()]
    code += "\npublished." * any(re.search(r"import.*\bpublished|published import", text) for text in texts)
    imported = " ".join(re.findall(r"published import (.+)", code))
    reads = any(name.islower() for name in re.findall(r"\w+", imported)) or "reference" in code or "published." in code
    assert ("reports/published" in deps) == reads
    assert (f"build/real/${{profile}}/{notebook}" in deps) == ("real." in code)
    for end in ("csv", "json"):
        assert (f"build/tables/${{profile}}/${{key}}.{end}" in deps) == ("inputs.load(" in code)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory) -> Path:
    """A copy of what git tracks, and of the stripped notebooks: enough for DVC to say what would run."""
    root = tmp_path_factory.mktemp("checkout")
    tracked = subprocess.run(["git", "ls-files"], cwd=paths.ROOT, check=True, capture_output=True, text=True).stdout
    for name in tracked.splitlines():
        if (paths.ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(paths.ROOT / name, root / name)
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def dvc(root: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "dvc", *words]
    done = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def status(root: Path) -> dict:
    return json.loads(dvc(root, "status", "--json"))


def after(root: Path) -> dict:
    """The status once the fingerprints of the code are up to date."""
    dvc(root, "repro", "--quiet", "source", "real")
    return status(root)


@pytest.fixture(scope="module")
def before(checkout) -> dict:
    """The status of the copy as it was made."""
    return after(checkout)


def changed_stages(root: Path, before: dict) -> set[str]:
    """Stages of the demo that are reported otherwise than ``before``."""
    now = after(root)
    names = {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}
    shared = {name for name in names if ":" not in name}
    demo = {name.rpartition(":")[2] for name in names if name.startswith("pipelines/demo/")}
    return {name.partition("@")[0] for name in shared | demo}


BEYOND = {"beyond_factors", "beyond_storage"}
TRAINED = BEYOND | {f"hyper_dino_{name}" for name in ("mapper", "retrieval", "queries", "beyond")}
HYPER_DINO = TRAINED | {"hyper_dino_embeddings"}
PROTOTYPES = {f"linear_prototypes_{name}" for name in ("plane", "retrieval", "significance", "space")}
LOSS = HYPER_DINO | {"linear_prototypes_retrieval", "hyper_dino_pretraining", "your_archive"}
"""The one has the mapper as a rival; in the other the mapper's settings fill a place of methods without a head."""


@pytest.mark.parametrize(
    ("file", "old", "new", "stages"),
    [
        ("params.yaml", "m0: 0.5", "m0: 0.7", TRAINED),
        ("params.yaml", "n_patients: 24", "n_patients: 12", {"drawn"}),
        (
            "pipelines/demo/params.yaml",
            "folds_used: 3, epochs: 5, n_folds: 3}",
            "folds_used: 2, epochs: 5, n_folds: 3}",
            {"linear_prototypes_space"},
        ),
        ("lib/losses/hyper_dino.py", "m0: float | Tensor = 0.5", "m0: float | Tensor = 0.6", LOSS),
        ("lib/losses/hyper_dino.py", "| Tensor = 0.5\n", "| Tensor = 0.5  # as printed\n", set()),
        ("lib/encoders/texture.py", "SIZE = 96", "SIZE = 64", {"features", "features_few", "views", "start_here"}),
        ("README.md", "companion", "company", set()),
    ],
    ids=["a margin", "the tiles", "one notebook's epochs", "a loss", "a comment", "an encoder", "the README"],
)
def test_what_runs_again_after_a_change(checkout, before, file, old, new, stages):
    with changed(checkout / file, old, new):
        assert changed_stages(checkout, before) == stages


def test_plain_repro_builds_the_demo_of_every_paper():
    """``start_here``, the last stage, rests on the reports of each paper that has a run in the demo."""
    start = yaml.safe_load((paths.ROOT / "dvc.yaml").read_text())["stages"]["start_here"]
    papers = {place(f"00_{stage}")[0] for stage, runs in profiles.runs("demo").items() if runs}
    assert {dep for dep in start["deps"] if dep.startswith("reports/")} == {f"reports/{paper}/demo" for paper in papers}
    assert len(papers) == 7


def test_saving_a_notebook_with_new_outputs_makes_nothing_run_again(checkout, before):
    """Only the stage that strips outputs looks at it, and finds the same source."""
    after(checkout)  # of what an earlier test put back
    path = checkout / "notebooks/13_hyper_dino_retrieval.ipynb"
    notebook = notebooks.read(path)
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text="something else\n")]
    notebook.metadata["language_info"] = {"name": "python", "version": "3.99"}
    nbformat.write(notebook, path)
    assert set(status(checkout)) - set(before) == {"source"}
    assert changed_stages(checkout, before) == set()


@contextmanager
def changed(file: Path, old: str, new: str):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    try:
        yield
    finally:
        file.write_text(text)


def directory_hash(folder: Path) -> str:
    """The MD5 of a folder as DVC has it: of the list of its files and their hashes."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    listed = [
        {"md5": hashlib.md5(path.read_bytes()).hexdigest(), "relpath": path.relative_to(folder).as_posix()}
        for path in files
    ]
    listed.sort(key=lambda entry: entry["relpath"].split("/"))
    return hashlib.md5(json.dumps(listed, sort_keys=True).encode()).hexdigest() + ".dir"


def test_committed_reports_are_what_the_pipelines_wrote():
    """A cell of a committed table that was changed by hand does not have the hash that DVC recorded."""
    locks = [text.with_suffix(".lock") for text in TEXTS]
    stages = [stage for lock in locks if lock.exists() for stage in yaml.safe_load(lock.read_text())["stages"].values()]
    outs = [out for stage in stages for out in stage["outs"] if out["path"].startswith("reports/")]
    assert outs
    assert [out["path"] for out in outs if directory_hash(paths.ROOT / out["path"]) != out["md5"]] == []


def test_every_report_belongs_to_a_run():
    """Nothing lies in reports/ that no run of any profile writes."""
    runs = {
        (f"{stage.rpartition('_')[0]}", profile, dataset, stage.rpartition("_")[2])
        for profile in ("demo", "sample", "gpu", "paper")
        for stage, datasets in profiles.runs(profile).items()
        for dataset in datasets
    }
    tracked = subprocess.run(["git", "ls-files", "reports"], cwd=paths.ROOT, capture_output=True, text=True, check=True)
    folders = {Path(line).parts[1:-1] for line in tracked.stdout.splitlines()}
    assert {folder for folder in folders if len(folder) == 4} - runs == set()
