"""Fingerprints of code: one line per module that something imports, however deep, with the hash of what it computes.

Comments, docstrings and blank lines compute nothing and do not count. Data files beside a module do.
"""

import ast
import functools
import hashlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

from lib.paths import ROOT


@functools.cache  # a module is part of many fingerprints
def bare(source: str) -> str:
    """``source`` without comments, docstrings, blank lines and trailing blanks: equal text computes the same.

    >>> print(bare('def f(x):\\n    "Say it."\\n\\n    return x  # done\\n'))
    def f(x):
        return x
    """
    lines, tree = re.split(r"\r\n|\r|\n", source), ast.parse(source)  # as Python counts lines, unlike str.splitlines
    docs = set(_docstrings(tree, lines))
    inside = {line for first, last in _texts(tree) for line in range(first, last)} - docs
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    kept = [(number, line) for number, line in enumerate(lines, start=1) if number not in docs]
    return "\n".join(
        line if number in inside else line.rstrip() for number, line in kept if number in inside or line.strip()
    )


def _docstrings(tree: ast.Module, lines: list[str]) -> Iterator[int]:
    """The lines of every docstring, but for those that share a line with other code."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first, *rest = node.body
            text = isinstance(first, ast.Expr) and isinstance(getattr(first.value, "value", None), str)
            before = lines[first.lineno - 1].encode()[: first.col_offset].strip()
            after = rest[0].lineno if rest else first.end_lineno + 1
            if text and not before and first.end_lineno < after:
                yield from range(first.lineno, first.end_lineno + 1)


def _texts(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """First and last line of every text, whose blanks count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)):
            yield node.lineno, node.end_lineno


@functools.cache
def imported(source: str) -> frozenset[str]:
    """Names of modules of ``lib`` that ``source`` imports anywhere, with the packages they lie in.

    A text that is nothing but such a name counts as an import: it may be handed to :func:`importlib.import_module`.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Constant) and re.fullmatch(r"lib(\.\w+)+", str(node.value)):
            names.add(node.value)
    parts = [name.split(".") for name in names if name.split(".")[0] == "lib"]
    return frozenset(".".join(words[:n]) for words in parts for n in range(1, len(words) + 1))


def modules(names: Iterable[str]) -> list[Path]:
    """Files of the modules ``names`` and of all that they import, however deep, sorted."""
    files: set[Path] = set()
    waiting = list(filter(None, map(_file, names)))
    while waiting:
        file = waiting.pop()
        if file not in files:
            files.add(file)
            waiting += filter(None, map(_file, imported(file.read_text(encoding="utf-8"))))
    return sorted(files)


def _file(name: str) -> Path | None:
    """The file of a module, None if the name is no module (a function, say)."""
    base = ROOT.joinpath(*name.split("."))
    return next((path for path in (base.with_suffix(".py"), base / "__init__.py") if path.is_file()), None)


def fingerprint(names: Iterable[str]) -> str:
    """One line per module that ``names`` import, and per data file beside one: path and hash."""
    code = modules(names)
    data = {path for folder in {file.parent for file in code} for path in folder.iterdir() if path.is_file()}
    texts = {file: bare(file.read_text(encoding="utf-8")).encode() for file in code}
    texts |= {file: file.read_bytes() for file in data if file.suffix != ".py" and not file.name.startswith(".")}
    rows = sorted((file.relative_to(ROOT).as_posix(), hashlib.sha256(text).hexdigest()) for file, text in texts.items())
    return "".join(f"{name} {digest}\n" for name, digest in rows)
