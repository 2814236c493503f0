"""Every way to a committed number goes through the pins, and they do what they say."""

import os
import re
import subprocess
import sys

import joblib
import pytest
import torch
import yaml

from lib import paths, pins
from lib.fingerprints import fingerprint
from lib.pipeline import code, lab
from lib.processes import spread

SHOW = "import torch; print(torch.backends.cpu.get_cpu_capability(), torch.get_num_threads())"
PINNED = "AVX2 1"


def environment(**other: str) -> dict[str, str]:
    """Ours without the pins, plus ``other``."""
    return {name: value for name, value in os.environ.items() if name not in pins.PINS} | other


def python(*words: str, **other: str) -> subprocess.CompletedProcess:
    command = [sys.executable, *words]
    return subprocess.run(command, cwd=paths.ROOT, env=environment(**other), capture_output=True, text=True)


@pytest.fixture
def show(tmp_path):
    """A module that prints what torch took, its arguments and its name."""
    (tmp_path / "show.py").write_text(f"import sys\n{SHOW}\nprint(__name__, *sys.argv[1:])\n")
    return {"PYTHONPATH": str(tmp_path)}


def test_the_runner_pins_before_the_first_import_and_passes_arguments_on(show):
    done = python("-m", "lib.pinned", "show", "--lr", "1", OMP_NUM_THREADS="2", ATEN_CPU_CAPABILITY="default", **show)
    assert done.stdout.splitlines() == [PINNED, "__main__ --lr 1"], done.stderr


def test_the_tests_are_pinned_and_so_are_their_processes():
    assert pins.settings() == pins.PINS
    asked = [torch.backends.cpu.get_cpu_capability, torch.get_num_threads]
    assert [*spread([joblib.delayed(ask)() for ask in asked], workers=2)] == [ask() for ask in asked] == ["AVX2", 1]


def test_numpy_knows_every_feature_that_is_switched_off():
    """It says so in a warning that Python does not show."""
    statement = "import numpy; from numpy._core._multiarray_umath import __cpu_features__ as f; print(f['AVX512_SKX'])"
    done = python("-W", "always", "-c", statement, **pins.PINS)
    assert done.stdout == "False\n" and "not part of the dispatched" not in done.stderr


@pytest.mark.parametrize("library", ["numpy.linalg", "scipy.linalg"])
def test_decompositions_survive_the_pins(library):
    """NumPy 2.5's OpenBLAS crashes in a singular value decomposition on one thread with the kernels of the pins."""
    statement = (
        f"import numpy, {library} as linalg\n"
        "for shape in ((320, 384), (600, 200)):\n"
        "    for kind in 'fd':\n"
        "        x = numpy.random.default_rng(0).normal(size=shape).astype(kind)\n"
        "        linalg.svd(x, full_matrices=False), linalg.eigh(x @ x.T), linalg.qr(x)\n"
    )
    done = python("-c", statement, **pins.PINS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("version", "free"), [("2.4.4", False), ("2.5.0", True), ("3.0.0rc1", True)])
def test_the_blas_of_a_later_numpy_is_not_pinned(monkeypatch, version, free):
    """It would crash: see above. A machine of somebody else's may have one."""
    monkeypatch.setattr(pins, "version", lambda name: version)
    monkeypatch.setattr(pins.sys, "modules", {})
    monkeypatch.setattr(pins.os, "environ", {"OPENBLAS_CORETYPE": "Zen"})
    pins.pin()
    assert (pins.settings()["OPENBLAS_CORETYPE"] is None) == free
    assert pins.settings()["MKL_CBWR"] == "COMPATIBLE"


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_pinning_too_late_is_refused(library):
    late = python("-c", f"import {library}; from lib import pins; pins.pin()")
    assert f"RuntimeError: {library}" in late.stderr.replace("numpy and torch", library)
    assert python("-c", f"import {library}; from lib import pins; pins.pin()", **pins.PINS).returncode == 0


def test_the_library_in_your_own_code_sets_nothing():
    statement = "import lib.training.sweep, os; from lib import pins; print({*pins.settings().values()})"
    assert python("-c", statement).stdout == "{None}\n"


def stages() -> dict[str, str]:
    """Stage → its command, of every pipeline."""
    found = {}
    for text in [paths.ROOT / "dvc.yaml", *paths.PIPELINES.glob("*/dvc.yaml")]:
        for name, stage in yaml.safe_load(text.read_text())["stages"].items():
            found[f"{text.parent.name}:{name}"] = stage.get("do", stage)["cmd"]
    return found


@pytest.mark.parametrize("command", stages().values(), ids=stages())
def test_every_stage_is_pinned(command):
    assert re.findall(r"python -m (\S+)", command) == ["lib.pinned"]


def test_a_changed_pin_builds_everything_anew():
    assert all("lib/pins.py " in fingerprint(names) for names in code.entries().values())


def test_own_settings_win_in_the_lab_alone(monkeypatch, tmp_path):
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.delenv("MKL_CBWR")
    found = lab.environment(tmp_path)
    assert found["OMP_NUM_THREADS"] == "8" and found["MKL_CBWR"] == pins.PINS["MKL_CBWR"]


def test_every_optimiser_takes_the_square_root_of_the_processor():
    """Adam is fused everywhere: its loop over weights calls MKL's root, whose last bit differs between processors."""
    texts = [file.read_text(encoding="utf-8") for file in (paths.ROOT / "lib").rglob("*.py")]
    made = [call for text in texts for call in re.findall(r"torch\.optim\.Adam\w*\(.*", text)]
    assert made and [call for call in made if "fused=True" not in call] == []
