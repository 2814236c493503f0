"""The house: a room imports only rooms on lower floors, and there are no circles."""

import ast
import re
from functools import cache
from pathlib import Path

import lib
from lib import paths

ROOMS = [
    "errors checks paths files fingerprints processes progress pins pinned devices",
    "geometry taxonomy",
    "datasets encoders heads losses metrics",
    "search training",
    "study figures widgets",
    "papers",
    "archive",
    "pipeline",
]
"""From the ground floor up."""
FLOORS = {room: floor for floor, rooms in enumerate(ROOMS) for room in rooms.split()}
NEIGHBOURS = {
    ("checks", "errors"),
    ("devices", "errors"),
    ("files", "errors"),
    ("fingerprints", "paths"),
    ("processes", "files"),
    ("pinned", "pins"),
    ("encoders", "datasets"),
    ("study", "figures"),
    ("widgets", "figures"),
}
FILES = sorted((paths.ROOT / "lib").rglob("*.py"))


def module(file: Path) -> str:
    parts = file.relative_to(paths.ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def targets(file: Path) -> set[str]:
    known = {module(other) for other in FILES}
    found = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.add(node.value)  # imported by its name, perhaps; what is no module's name is left out below
    return {name for name in found if name in known and name != "lib"}


def test_every_room_has_a_floor_and_the_package_docstring_names_it():
    rooms = {module(file).split(".")[1] for file in FILES if module(file) != "lib"}
    assert rooms == set(FLOORS) == set(re.findall(r"``(\w+)``", lib.__doc__))


def test_a_room_imports_only_from_below():
    for file in FILES:
        for target in targets(file) if module(file) != "lib" else ():
            here, there = (name.split(".")[1] for name in (module(file), target))
            allowed = FLOORS[there] < FLOORS[here] or there == here or (here, there) in NEIGHBOURS
            assert allowed, f"{module(file)} imports {target}"


def test_a_paper_imports_no_other_paper():
    for file in FILES:
        paper = module(file).split(".")[2:3]
        if module(file).startswith("lib.papers."):
            papers = [name for name in targets(file) if name.startswith("lib.papers.")]
            others = [name for name in papers if name.split(".")[2:3] != paper]
            assert not others, f"{module(file)} imports {', '.join(others)}"


def test_there_are_no_circles():
    graph = {module(file): targets(file) - {module(file)} for file in FILES}

    def reach(start: str) -> set[str]:
        seen, todo = set(), [start]
        while todo:
            for name in graph[todo.pop()] - seen:
                seen.add(name)
                todo.append(name)
        return seen

    assert [name for name in graph if name in reach(name)] == []


def test_modules_are_small_and_finished():
    for file in FILES:
        text = file.read_text(encoding="utf-8")
        assert text.count("\n") <= 350, file
        assert not re.search(r"NotImplementedError|\b(TODO|FIXME|XXX)\b", text), file
