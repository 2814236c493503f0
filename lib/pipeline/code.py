"""Fingerprints of code: what an entry (a notebook, a command) imports, so that DVC runs it again when that changes.

``python -m lib.pipeline.code`` writes ``build/source/`` (notebooks without outputs) and ``build/code/<entry>``: one
line per module that the entry imports, however deep, with the hash of its text without comments and docstrings; and
one per data file that lies beside such a module. No list of modules is kept by hand, so none can be wrong.
"""

from lib import errors
from lib.files import whole
from lib.fingerprints import fingerprint, imported
from lib.paths import BUILD, NOTEBOOKS
from lib.pipeline import notebooks

CODE = BUILD / "code"
COMMANDS = ("lib.datasets", "lib.datasets.tissue", "lib.encoders", "lib.training.pretrain")
RUNNER = "lib.pipeline.notebooks"
PINS = imported("import lib.pinned")  # every stage goes through it


def entries() -> dict[str, frozenset[str]]:
    """Every entry and the modules that it names: commands, and notebooks with what runs them."""
    named = {command: PINS | imported(f"import {command}, {command}.__main__") for command in COMMANDS}
    for path in sorted(NOTEBOOKS.glob("[0-9]*.ipynb")):
        cells = notebooks.read(path).cells
        named[path.stem] = imported("\n".join(cell.source for cell in cells if cell.cell_type == "code"))
        named[path.stem] |= PINS | imported(f"import {RUNNER}")
    return named


def write() -> None:
    """Write ``build/source`` and ``build/code`` anew, and nothing but these."""
    notebooks.strip_all()
    with whole(CODE, "set of fingerprints") as draft:
        draft.mkdir()
        for entry, names in entries().items():
            (draft / entry).write_text(fingerprint(names), encoding="utf-8")


if __name__ == "__main__":
    errors.one_message(write)
