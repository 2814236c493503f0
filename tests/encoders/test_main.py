import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from lib.datasets import images, loaders
from lib.datasets.table import ImageTable
from lib.encoders import __main__ as program
from lib.encoders import cache, registry
from lib.errors import MissingWeights, one_message
from tests.images import pictures


@pytest.fixture
def root(tmp_path) -> Path:
    return pictures(tmp_path / "images", "tumour/1.png", "tumour/2.png", "stroma/3.png", "stroma/4.png", side=20)


@pytest.fixture
def run(root, tmp_path, monkeypatch, capsys):
    """The program on the images of ``root``: its exit status, and what it prints on standard output and error."""

    def run(encoder: str, *more: str) -> tuple[int, str, str]:
        table = tmp_path / "table.csv"
        if not table.exists():
            loaders.load("folder", root).write(table)
        given = ["--table", str(table), "--encoder", encoder, "--target", str(tmp_path / "x.safetensors"), *more]
        monkeypatch.setattr(sys, "argv", ["lib.encoders", *given])
        try:
            one_message(program.main)
            status = 0
        except SystemExit as end:
            status = end.code
        return status, *capsys.readouterr()

    return run


def test_features_are_extracted_and_broken_images_skipped_on_request(run, root, tmp_path):
    target, dim = tmp_path / "x.safetensors", registry.make("texture").dim
    status, out, err = run("texture")
    assert (status, out) == (0, f"{target}: 4 images, {dim} numbers each, 0 skipped\n")
    assert err == "texture features of folder: 4 of 4 images\n"
    assert cache.load(target).values.shape == (4, dim)
    (root / "tumour/2.png").write_bytes(b"")
    status, out, err = run("texture")
    assert (status, out) == (2, "") and err.startswith("error: ") and "2.png: the file is empty" in err
    status, out, _ = run("texture", "--on-broken", "skip")
    assert status == 0 and ", 1 skipped\nskipped: " in out and "2.png" in out
    (root / "tumour/2.png").unlink()
    run("texture", "--n-views", "3", "--on-broken", "skip")
    assert sorted(file.name for file in (tmp_path / "x.views").iterdir()) == ["1.safetensors", "2.safetensors"]


def test_what_cannot_be_used_ends_with_one_message_and_status_2(run):
    for given, expected in {
        ("dino_vitsl6",): "error: Unknown encoder 'dino_vitsl6': did you mean dino_vits16",
        ("texture", "--on-broken", "ignore"): "invalid choice: 'ignore'",
        ("texture", "--table", "no.csv"): "error: There is no table of images",
    }.items():
        status, out, err = run(*given)
        assert (status, out) == (2, "") and expected in err and "Traceback" not in err


def test_what_was_said_when_the_table_was_made_is_not_said_by_every_encoder(run, root, tmp_path, recwarn):
    """A file of 16 bits that holds 12: ``python -m lib.datasets`` warns, and in Python ``cache.extract``."""
    Image.fromarray(np.arange(0, 4000, 10, dtype=np.uint16).reshape(20, 20)).save(root / "tumour/1.png")
    run("texture")
    assert not [str(warning.message) for warning in recwarn if "16-bit" in str(warning.message)]
    table = ImageTable.read(tmp_path / "table.csv")
    with pytest.warns(UserWarning, match=images.TOLD + images.DARK[:12]):
        cache.extract(table, registry.make("texture"), tmp_path / "other.safetensors")


def test_missing_weights_end_the_program_or_are_noted(run, tmp_path, nothing_on_this_machine):
    status, _, err = run("xception71.tf_in1k")
    assert status == 2 and err.count("\n") == 1
    assert err.startswith("error: No weights for xception71.tf_in1k (about 1")
    assert "no features. No weights for xception71.tf_in1k" in run("xception71.tf_in1k", "--on-missing", "note")[1]
    with pytest.raises(MissingWeights, match=r"No weights for xception71\.tf_in1k"):
        cache.load(tmp_path / "x.safetensors")


def test_features_outlive_their_weights(run, root, tmp_path, monkeypatch):
    target = tmp_path / "x.safetensors"
    run("texture")
    before = target.read_bytes()

    def gone(name):
        raise MissingWeights("No weights for texture.")

    monkeypatch.setattr(registry, "make", gone)
    assert "stays as it was extracted" in run("texture", "--on-missing", "note")[1]
    assert target.read_bytes() == before
    Image.new("RGB", (20, 20)).save(root / "tumour/1.png")  # another image: what was extracted is not of it
    run("texture", "--on-missing", "note")
    with pytest.raises(MissingWeights):
        cache.load(target)
