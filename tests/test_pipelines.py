"""Every stage depends on exactly the code that it runs, and nothing else makes it run again."""

import ast
import re
from pathlib import Path

import pytest
import yaml

from lib import notebooks, paths

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
