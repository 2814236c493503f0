"""Every stage depends on exactly the code that it runs, and nothing else makes it run again."""

import ast
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

from lib import notebooks, paths
from lib.results import index

PIPELINES = [Path("dvc.yaml"), Path("pipelines/sample/dvc.yaml"), Path("pipelines/paper/dvc.yaml")]


def module_file(name: str) -> Path | None:
    """The file of module ``name`` relative to the root, None if there is no such module (an attribute, say)."""
    base = Path(*name.split("."))
    return next((f for f in (base.with_suffix(".py"), base / "__init__.py") if (paths.ROOT / f).is_file()), None)


def imported(source: str) -> set[str]:
    """Names of lib modules that ``source`` imports, parents included."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    ours = [name.split(".") for name in names if name and name.split(".")[0] == "lib"]
    return {".".join(parts[:n]) for parts in ours for n in range(1, len(parts) + 1)}


def closure(names: set[str]) -> set[Path]:
    """Files of the modules ``names`` and of all that they import, however deep."""
    found: set[Path] = set()
    todo = [f for f in map(module_file, names) if f]
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += [f for f in map(module_file, imported((paths.ROOT / file).read_text())) if f]
    return found


def code_of(command: str) -> set[Path]:
    """Files of the code that a stage's command runs."""
    module = re.match(r"python -m (lib[\w.]*)", command)[1]
    main = {module, f"{module}.__main__"} | {".".join(module.split(".")[:n]) for n in range(1, module.count(".") + 1)}
    files = closure(main)
    if notebook := re.search(r"lib\.notebooks run (\w+)", command):
        cells = notebooks.read(paths.NOTEBOOKS / f"{notebook[1]}.ipynb").cells
        files |= closure(imported("\n".join(cell.source for cell in cells if cell.cell_type == "code")))
    return files


def stages(pipeline: Path):
    for name, stage in yaml.safe_load((paths.ROOT / pipeline).read_text())["stages"].items():
        body = stage.get("do", stage)
        yield name, body["cmd"], body.get("deps", []), stage


ALL = [pytest.param(p, *s[:3], id=f"{p.parent.name or 'demo'}-{s[0]}") for p in PIPELINES for s in stages(p)]


@pytest.mark.parametrize(("pipeline", "name", "command", "deps"), ALL)
def test_a_stage_depends_on_exactly_the_code_it_runs(pipeline, name, command, deps):
    listed = {Path(dep) for dep in deps if dep.startswith("lib/")}
    assert sorted(map(str, listed)) == sorted(map(str, code_of(" ".join(command.split()))))


@pytest.mark.parametrize(("pipeline", "name", "command", "deps"), ALL)
def test_a_notebook_stage_depends_on_the_stripped_source_alone(pipeline, name, command, deps):
    wanted = re.search(r"lib\.notebooks run (\w+)", command)
    listed = [dep for dep in deps if dep.endswith(".ipynb")]
    assert listed == ([f"build/source/{wanted[1]}.ipynb"] if wanted else [])
    assert not any(dep.startswith("build/executed") for dep in deps)


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
    dvc(root, "repro", "--quiet", "source")
    return root


def dvc(root: Path, *words: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(root), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    command = [sys.executable, "-m", "dvc", *words]
    done = subprocess.run(command, cwd=root, env=environment, check=True, capture_output=True, text=True)
    return done.stdout


def status(root: Path) -> dict:
    return json.loads(dvc(root, "status", "--json"))


def newly_changed(root: Path, before: dict) -> set[str]:
    """Stages of the demo that are reported otherwise than ``before``."""
    after = status(root)
    names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    return {name for name in names if not name.startswith("pipelines/")}


def on_tissue(*names: str) -> set[str]:
    return {f"hyper_dino_{name}@tissue" for name in names}


STORAGE = {"storage_and_search@tissue"}
PROTOTYPES = {f"linear_prototypes_{name}@tissue" for name in ("plane", "retrieval", "space")}
SIGNIFICANCE = {"linear_prototypes_significance@tissue"}


@pytest.mark.parametrize(
    ("file", "old", "new", "stages"),
    [
        ("params.yaml", "m0: 0.5", "m0: 0.7", on_tissue("mapper", "retrieval", "queries", "beyond") | STORAGE),
        ("params.yaml", "n_patients: 24", "n_patients: 12", {"tissue", "start_here"}),
        (
            "lib/losses/hyper_dino.py",
            "m0: float = 0.5",
            "m0: float = 0.6",
            on_tissue("embeddings", "mapper", "retrieval", "queries", "beyond") | STORAGE | PROTOTYPES | SIGNIFICANCE,
        ),
        (
            "lib/encoders/texture.py",
            "SIZE = 96",
            "SIZE = 64",
            {"features@tissue-texture", "features@tissue-demo_vit"}
            | on_tissue("embeddings", "mapper", "retrieval", "queries", "pretraining", "beyond")
            | STORAGE
            | PROTOTYPES
            | {"start_here"},
        ),
        ("README.md", "companion", "company", set()),
    ],
    ids=["a margin", "the tiles", "a loss", "an encoder", "the README"],
)
def test_what_runs_again_after_a_change(checkout, file, old, new, stages):
    before = status(checkout)
    with changed(checkout / file, old, new):
        assert newly_changed(checkout, before) == stages


def test_saving_a_notebook_with_new_outputs_makes_nothing_run_again(checkout):
    """Only the stage that strips outputs looks at it, and finds the same source."""
    before = status(checkout)
    path = checkout / "notebooks/13_hyper_dino_retrieval.ipynb"
    notebook = notebooks.read(path)
    notebook.cells[-1].outputs = [nbformat.v4.new_output("stream", text="something else\n")]
    notebook.metadata["language_info"] = {"name": "python", "version": "3.99"}
    nbformat.write(notebook, path)
    assert newly_changed(checkout, before) == {"source"}
    dvc(checkout, "repro", "--quiet", "source")
    assert newly_changed(checkout, before) == set()


@contextmanager
def changed(file: Path, old: str, new: str):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    try:
        yield
    finally:
        file.write_text(text)


def test_committed_reports_are_what_the_pipelines_wrote():
    """A cell of a committed table that was changed by hand does not have the hash that DVC recorded."""
    wrong = []
    for pipeline in PIPELINES:
        lock = yaml.safe_load((paths.ROOT / pipeline).with_suffix(".lock").read_text())
        for stage in lock["stages"].values():
            for out in stage["outs"]:
                file = paths.ROOT / out["path"]
                if out["path"].startswith("reports/") and hashlib.md5(file.read_bytes()).hexdigest() != out["md5"]:
                    wrong.append(out["path"])
    assert wrong == []


def test_every_report_belongs_to_a_run(tmp_path):
    """Nothing lies in reports/ that no run of params.yaml writes."""
    expected = {
        (item["paper"], item["profile"], item["dataset"], item["name"]) for item in index.expected(index.params())
    }
    found = {path.relative_to(paths.ROOT / "reports") for path in (paths.ROOT / "reports").rglob("*.*")}
    found = {(*path.parts[:3], path.stem) for path in found if len(path.parts) == 4}
    assert found - expected == set()
