"""The tracked tree is light: every clone carries it, and every rebuild adds to its history."""

import subprocess
from pathlib import Path

import pytest
from PIL import Image

from lib import paths

MIB = 2**20
TREE = 45 * MIB
NOTEBOOK = 400 * 1024
SIDE = 1400
"""Pixels of a picture's longer side."""


@pytest.fixture(scope="module")
def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no git checkout")
    return [path for name in listed.stdout.split("\0")[:-1] if (path := paths.ROOT / name).is_file()]


def test_the_whole_is_small(tracked):
    assert sum(path.stat().st_size for path in tracked) < TREE


def test_svg_is_drawn_into_build(tracked):
    """``make reproduce FORMAT=svg`` draws them."""
    assert [path for path in tracked if path.suffix == ".svg"] == []


def test_notebooks_are_small(tracked):
    sizes = {path.name: path.stat().st_size for path in tracked if path.suffix == ".ipynb"}
    assert {name: size for name, size in sizes.items() if size > NOTEBOOK} == {}


def test_pictures_have_a_palette_and_the_size_of_a_screen(tracked):
    for path in tracked:
        if path.suffix == ".png":
            with Image.open(path) as picture:
                assert picture.mode == "P" and max(picture.size) <= SIDE, path
