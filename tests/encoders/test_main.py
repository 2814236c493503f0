import os
import subprocess
import sys
from pathlib import Path

import huggingface_hub
import numpy as np
import pytest
from PIL import Image

from lib.datasets import images, loaders
from lib.datasets.table import ImageTable
from lib.encoders import __main__ as program
from lib.encoders import cache, registry
from lib.errors import MissingWeights, one_message
from lib.paths import ROOT


@pytest.fixture
def root(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    for name in ("tumour/1.png", "tumour/2.png", "stroma/3.png", "stroma/4.png"):
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (20, 20, 3), dtype=np.uint8)).save(file)
    return tmp_path / "images"


def command(root: Path, target: Path, encoder: str = "texture", *more: str) -> list[str]:
    table = target.with_name("table.csv")
    if not table.exists():
        loaders.load("folder", root).write(table)
    return ["--table", str(table), "--encoder", encoder, "--target", str(target), *more]


@pytest.fixture(scope="module")
def no_torch(tmp_path_factory) -> Path:
    """A folder for PYTHONPATH in which torch cannot be imported."""
    folder = tmp_path_factory.mktemp("stub")
    (folder / "torch.py").write_text("raise SystemExit('torch was imported')")
    return folder


def start(arguments: list[str], python_path: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, "-m", "lib.encoders", *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(python_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_here(arguments: list[str], monkeypatch, capsys) -> tuple[int, str]:
    """The program in this process, which has torch loaded: its exit status and what it says on stderr."""
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    with pytest.raises(SystemExit) as caught:
        one_message(program.main)
    return caught.value.code, capsys.readouterr().err


def test_the_program_ends_with_one_message_and_status_2(root, tmp_path, no_torch):
    (root / "tumour/2.png").write_bytes(b"")
    target = tmp_path / "features.safetensors"
    nowhere = ["--table", str(tmp_path / "no.csv"), "--encoder", "texture", "--target", str(target)]
    programs = {
        "2.png: the file is empty": start(command(root, target), no_torch),
        "There is no table of images": start(nowhere, no_torch),
    }
    for expected, program_run in programs.items():
        out, err = program_run.communicate()
        assert program_run.returncode == 2
        assert err.startswith("error: ")
        assert expected in err.splitlines()[0]
        assert "Traceback" not in err
        assert out == ""
    assert not target.exists()


def test_what_was_said_when_the_table_was_made_is_not_said_by_every_encoder(root, tmp_path, monkeypatch, recwarn):
    """A file of 16 bits that holds 12: ``python -m lib.datasets`` warns, and in Python ``cache.extract``."""
    Image.fromarray(np.arange(0, 4000, 10, dtype=np.uint16).reshape(20, 20)).save(root / "tumour/1.png")
    arguments = command(root, tmp_path / "features.safetensors")
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    program.main()
    assert not [str(warning.message) for warning in recwarn if "16-bit" in str(warning.message)]
    with pytest.warns(UserWarning, match=images.TOLD + images.DARK[:12]):
        cache.extract(ImageTable.read(Path(arguments[1])), registry.make("texture"), tmp_path / "other.safetensors")


def test_extracts_and_reports(root, tmp_path, monkeypatch, capsys):
    target = tmp_path / "features.safetensors"
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *command(root, target)])
    program.main()
    captured = capsys.readouterr()
    assert captured.out == f"{target}: 4 images, {registry.make('texture').dim} numbers each, 0 skipped\n"
    assert captured.err == "texture features of folder: 4 of 4 images\n"
    assert cache.load(target).values.shape == (4, registry.make("texture").dim)


def test_broken_images_are_skipped_on_request(root, tmp_path, monkeypatch, capsys):
    (root / "tumour/2.png").write_bytes(b"")
    arguments = command(root, tmp_path / "features.safetensors", "texture", "--on-broken", "skip")
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    program.main()
    said = capsys.readouterr().out.splitlines()
    assert said[0].endswith(", 1 skipped")
    assert said[1].startswith("skipped: ")
    assert "2.png" in said[1]


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (["dino_vitsl6"], "error: Unknown encoder 'dino_vitsl6': did you mean dino_vits16"),
        (["texture", "--on-broken", "ignore"], "invalid choice: 'ignore'"),
    ],
)
def test_what_cannot_be_used_ends_with_status_2(root, tmp_path, monkeypatch, capsys, more, expected):
    status, said = run_here(command(root, tmp_path / "x", *more), monkeypatch, capsys)
    assert status == 2
    assert expected in said


def test_views_are_a_folder_beside_the_features(root, tmp_path, monkeypatch, capsys):
    arguments = command(root, tmp_path / "features.safetensors", "texture", "--n-views", "3")
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    program.main()
    assert "3 views of 4 images" in capsys.readouterr().out
    assert sorted(file.name for file in (tmp_path / "features.views").iterdir()) == ["1.safetensors", "2.safetensors"]


def test_missing_weights_can_be_noted(root, tmp_path, monkeypatch, capsys):
    def unreachable():
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.utils, "get_session", unreachable)
    target = tmp_path / "x.safetensors"
    arguments = command(root, target, "xception71.tf_in1k", "--on-missing", "note")
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    program.main()
    assert "no features. No weights for xception71.tf_in1k" in capsys.readouterr().out
    with pytest.raises(MissingWeights, match=r"No weights for xception71\.tf_in1k"):
        cache.load(target)


def test_features_outlive_their_weights(root, tmp_path, monkeypatch, capsys):
    target = tmp_path / "features.safetensors"
    arguments = command(root, target, "texture", "--on-missing", "note")
    monkeypatch.setattr(sys, "argv", ["lib.encoders", *arguments])
    program.main()
    before = target.read_bytes()

    def gone(name):
        raise MissingWeights("No weights for texture.")

    monkeypatch.setattr(registry, "make", gone)
    program.main()
    assert target.read_bytes() == before and "stays as it was extracted" in capsys.readouterr().out
    Image.new("RGB", (20, 20)).save(root / "tumour/1.png")  # another image: what was extracted is not of it
    program.main()
    with pytest.raises(MissingWeights):
        cache.load(target)


def test_missing_weights_are_one_line_and_status_2(root, tmp_path, monkeypatch, capsys):
    def unreachable():
        raise ConnectionError("no route to host")

    monkeypatch.setattr(huggingface_hub.utils, "get_session", unreachable)
    status, said = run_here(command(root, tmp_path / "x", "xception71.tf_in1k"), monkeypatch, capsys)
    assert status == 2
    assert said.startswith("error: No weights for xception71.tf_in1k (about 1")
    assert said.count("\n") == 1
