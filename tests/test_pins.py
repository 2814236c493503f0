"""Every way to a committed number goes through the pins, and they do what they say."""

import os
import re
import subprocess
import sys
from pathlib import Path

import joblib
import pytest
import torch
import yaml

from lib import paths, pins
from lib.fingerprints import modules
from lib.pipeline import code
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


def test_pinning_too_late_is_refused_and_your_own_code_is_left_alone():
    late = python("-c", "import numpy; from lib import geometry, pins; print(*pins.settings().values()); pins.pin()")
    assert {*late.stdout.split()} == {"None"} and "RuntimeError: numpy" in late.stderr


def test_the_tests_are_pinned_and_so_are_their_processes():
    assert pins.settings() == pins.PINS
    asked = [torch.backends.cpu.get_cpu_capability, torch.get_num_threads]
    assert [*spread([joblib.delayed(ask)() for ask in asked], workers=2)] == [ask() for ask in asked] == ["AVX2", 1]


def test_optimisers_are_fused_as_others_take_a_square_root_that_no_pin_reaches():
    texts = [
        file.read_text("utf-8") for file in [*(paths.ROOT / "lib").rglob("*.py"), *paths.NOTEBOOKS.glob("*.ipynb")]
    ]
    calls = [call for text in texts for call in re.findall(r"optim\.Adam\w*\((?:[^()]|\([^()]*\))*\)", text)]
    assert len(calls) > 10 and [call for call in calls if "fused=True" not in call] == []


def test_decompositions_survive_the_pins():
    """NumPy 2.5's OpenBLAS crashes in a singular value decomposition on one thread with the kernels of the pins."""
    statement = (
        "import numpy, numpy.linalg, scipy.linalg\n"
        "for linalg in (numpy.linalg, scipy.linalg):\n"
        "    for kind in 'fd':\n"
        "        x = numpy.random.default_rng(0).normal(size=(320, 384)).astype(kind)\n"
        "        linalg.svd(x, full_matrices=False), linalg.eigh(x @ x.T), linalg.qr(x)\n"
    )
    done = python("-c", statement, **pins.PINS)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("version", "free"), [("2.4.4", False), ("2.5.0", True)])
def test_the_blas_of_a_later_numpy_is_not_pinned(monkeypatch, version, free):
    """It would crash: see above. A machine of somebody else's may have one."""
    monkeypatch.setattr(pins, "version", lambda name: version)
    monkeypatch.setattr(pins.sys, "modules", {})
    monkeypatch.setattr(pins.os, "environ", {"OPENBLAS_CORETYPE": "Zen"})
    pins.pin()
    assert (pins.settings()["OPENBLAS_CORETYPE"] is None) == free
    assert pins.settings()["MKL_CBWR"] == "COMPATIBLE"


def stages() -> dict[str, str]:
    """Stage → its command, of every pipeline."""
    found = {}
    for text in [paths.ROOT / "dvc.yaml", *paths.PIPELINES.glob("*/dvc.yaml")]:
        for name, stage in yaml.safe_load(text.read_text())["stages"].items():
            found[f"{text.parent.name}:{name}"] = stage.get("do", stage)["cmd"]
    return found


def test_every_stage_is_pinned_and_a_changed_pin_builds_everything_anew():
    started = {name: re.findall(r"python -m (\S+)", command) for name, command in stages().items()}
    assert {name: modules for name, modules in started.items() if modules != ["lib.pinned"]} == {}
    assert all(Path(pins.__file__) in modules(names) for names in code.entries().values())
