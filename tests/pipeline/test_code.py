"""A fingerprint names all code that an entry runs: what Python itself imports is the judge."""

import json
import subprocess
import sys

import pytest

from lib import fingerprints, paths
from lib.pipeline import code, notebooks

SOURCE = '''"""What it is."""

import math  # for pi


class Disk:
    """A disk."""

    def area(self, r):
        """pi r^2, on

        several lines."""
        text = "# not a comment"
        """neither is this"""
        return math.pi * r**2, text


def one_line(): "said"; return 1
'''


def test_only_what_computes_is_left():
    assert fingerprints.bare(SOURCE).splitlines() == [
        "import math",
        "class Disk:",
        "    def area(self, r):",
        '        text = "# not a comment"',
        '        """neither is this"""',
        "        return math.pi * r**2, text",
        'def one_line(): "said"; return 1',
    ]


def test_blanks_inside_a_text_count():
    assert fingerprints.bare('T = """a\n\nb"""\n') != fingerprints.bare('T = """a\nb"""\n')
    assert fingerprints.bare('T = """a  \nb"""\n') != fingerprints.bare('T = """a\nb"""\n')


def test_a_docstring_beside_code_hides_nothing_and_a_form_feed_is_no_line():
    assert "b=1" in fingerprints.bare('def f(a,\n      b=1): "doc"\n')
    assert fingerprints.bare('x = "\x0c"\ny = 1  # one\nz = 2\n').endswith("y = 1\nz = 2")


HEAVY = ["faiss", "geoopt", "pandas", "scipy.stats", "seaborn", "skimage", "sklearn", "statsmodels.api", "timm", "umap"]
"""Packages that take seconds to import: the process from which all entries branch off has them already."""

BRANCHES = """
import importlib, json, os, sys
from pathlib import Path

heavy, statements, folder = json.loads(sys.stdin.read())
for name in heavy:
    importlib.import_module(name)
for entry, lines in statements.items():
    if os.fork() == 0:
        exec(lines, {})
        files = [m.__file__ for name, m in sys.modules.items() if name.split(".")[0] == "lib"]
        Path(folder, entry).write_text("\\n".join(sorted(files)))
        os._exit(0)
    os.wait()
"""


def imports(entry: str) -> str:
    """The lines of an entry that import from lib."""
    if entry in code.COMMANDS:
        return f"import {entry}"
    cells = notebooks.read(paths.NOTEBOOKS / f"{entry}.ipynb").cells
    lines = [line for cell in cells if cell.cell_type == "code" for line in cell.source.splitlines()]
    return "\n".join(line for line in lines if line.startswith(("from lib", "import lib")))


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Entry → the files of lib that Python has loaded once its imports are done, each in a process of its own."""
    folder = tmp_path_factory.mktemp("loaded")
    message = json.dumps([HEAVY, {entry: imports(entry) for entry in code.entries()}, str(folder)])
    subprocess.run([sys.executable, "-c", BRANCHES], cwd=paths.ROOT, check=True, input=message, text=True)
    return {
        file.name: {name.removeprefix(f"{paths.ROOT}/") for name in file.read_text().split()}
        for file in folder.iterdir()
    }


def test_every_module_that_an_entry_imports_is_in_its_fingerprint(loaded):
    """Imports that happen when the modules load, found by running them."""
    entries = code.entries()
    assert loaded.keys() == entries.keys() and all(loaded.values())
    for entry, modules in entries.items():
        listed = {line.split()[0] for line in fingerprints.fingerprint(modules).splitlines()}
        assert loaded[entry] - listed == set(), entry


def test_a_module_imported_by_its_name_counts_and_words_about_it_do_not():
    assert fingerprints.imported('HOMES = {"Reduction": "lib.heads.reduction"}') == {
        "lib",
        "lib.heads",
        "lib.heads.reduction",
    }
    assert fingerprints.imported('print("see lib.heads.reduction")\nNAME = "library.heads"') == set()


def test_what_is_imported_late_is_part_of_what_may_need_it():
    """A notebook names its encoder, and a head, only when it runs."""
    print_ = fingerprints.fingerprint(["lib.encoders.registry", "lib.heads"])
    late = ["encoders/texture", "encoders/backbones", "encoders/small_vit", "encoders/zoo", "heads/reduction"]
    assert [name for name in late if f"lib/{name}.py " not in print_] == []


def test_weights_that_lie_beside_the_code_are_part_of_it():
    assert "lib/encoders/demo_vit.safetensors " in fingerprints.fingerprint(code.entries()["lib.encoders"])
    assert "demo_vit.safetensors" not in fingerprints.fingerprint(code.entries()["lib.datasets.tissue"])


def test_a_new_loader_or_encoder_runs_no_notebook_again():
    """They read tables and features, with these exceptions.

    00 lists all encoders, 33 asks with images of any other set, 15, 16, 22, 23, 52 and 53 train an
    encoder, and those of ACIR make its maps.
    """
    entries = {name: fingerprints.fingerprint(modules) for name, modules in code.entries().items()}
    notebooks = {name: text for name, text in entries.items() if name[:2].isdigit()}
    loaders = [name for name, text in notebooks.items() if "lib/datasets/loaders.py " in text]
    assert loaders == ["33_acir_novelty"]
    encoding = [name[:2] for name, text in notebooks.items() if "lib/encoders/backbones.py " in text]
    assert encoding == ["00", "15", "16", "22", "23", "30", "31", "32", "33", "34", "35", "52", "53"]
