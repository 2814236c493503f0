import sys
from pathlib import Path

import pytest

from lib.datasets import __main__ as program
from lib.datasets import loaders
from lib.datasets.table import ImageTable
from lib.errors import one_message
from tests.images import pictures


@pytest.fixture
def root(tmp_path) -> Path:
    root = pictures(tmp_path / "images", "tumour/1.png", "tumour/2.png", "stroma/3.png")
    (root / "stroma/notes.txt").write_text("none")
    return root


def run(monkeypatch, *arguments: object) -> None:
    monkeypatch.setattr(sys, "argv", ["lib.datasets", *map(str, arguments)])
    one_message(program.main)


def test_what_is_read_is_what_the_loader_found(root, tmp_path, monkeypatch, capsys):
    target = tmp_path / "tables" / "folder.csv"
    run(monkeypatch, "--dataset", "folder", "--root", root, "--target", target)
    expected, found = loaders.load("folder", root), ImageTable.read(target)
    assert found.rows.equals(expected.rows.astype(str))
    assert (found.name, found.root, found.group_kind) == (expected.name, expected.root, expected.group_kind)
    assert found.skipped == tuple(map(tuple, expected.skipped))
    assert capsys.readouterr().out.startswith(f"{target}: your own images, 3 images, 2 classes")


def test_a_table_that_is_not_there_says_how_to_write_it(tmp_path):
    with pytest.raises(ValueError, match=r"python -m lib\.datasets"):
        ImageTable.read(tmp_path / "folder.csv")


def test_images_that_cannot_be_read_are_named_before_any_encoder_runs(root, tmp_path, monkeypatch, capsys):
    for name in ("tumour/2.png", "stroma/3.png"):
        (root / name).write_bytes(b"")
    target = tmp_path / "folder.csv"
    arguments = ["--dataset", "folder", "--root", root, "--target", target]
    with pytest.raises(SystemExit):
        run(monkeypatch, *arguments)
    said = capsys.readouterr().err
    assert "error: 2 images cannot be read:" in said and "stroma/3.png: the file is empty" in said
    assert not target.exists()
    run(monkeypatch, *arguments, "--on-broken", "skip")
    assert len(ImageTable.read(target)) == 3  # the encoders leave them out, and count them
