"""The command trains a network and writes weights that load, but none that collapsed."""

import sys

import pytest

from lib import paths
from lib.datasets import tissue
from lib.encoders import small_vit
from lib.errors import InputError
from lib.training import dino, pretrain


def command(monkeypatch, *words: object) -> None:
    monkeypatch.setattr(sys, "argv", ["python -m lib.training.pretrain", *map(str, words)])
    pretrain.main()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "BUILD", tmp_path / "build")
    return tissue.write(tmp_path / "tiles", n_tiles=70, n_patients=3, n_duplicates=0)


def test_the_command_writes_weights_that_load(root, tmp_path, monkeypatch, capsys):
    target = tmp_path / "out" / "mine.safetensors"
    command(monkeypatch, "--dataset", "tissue", "--root", root, "--target", target, "--steps", 1, "--device", "cpu")
    encoder = small_vit.load(target, "mine", device="cpu")
    assert encoder.provenance["weights"].startswith("DINO, 1 steps of 64, seed 0, on procedural H&E-like tiles, 70")
    assert f"{target}: DINO, 1 steps" in capsys.readouterr().out


def test_the_command_writes_no_collapsed_weights(root, tmp_path, monkeypatch):
    monkeypatch.setattr(dino, "LEAST_SPREAD", 10.0)
    target = tmp_path / "mine.safetensors"
    with pytest.raises(InputError, match=r"mine\.safetensors is not written: collapsed"):
        command(monkeypatch, "--dataset", "tissue", "--root", root, "--target", target, "--steps", 1)
    assert not target.exists()
