"""What was computed is not computed again, and nothing but that: not what is damaged, nor by other code."""

import hashlib
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
import torch

from lib import devices, paths, pins
from lib.training import kept

KEY, OTHER = "0" * 64, "1" * 64


class Work:
    """Counts its calls; each gives other numbers."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self) -> dict:
        self.calls += 1
        return {"weights": torch.arange(500.0) / self.calls, "history": [{"step": 0, "loss": 0.1 * self.calls}]}


def equal(one: dict, two: dict) -> bool:
    return torch.equal(one["weights"], two["weights"]) and one["history"] == two["history"]


def test_a_second_call_computes_nothing(tmp_path):
    work = Work()
    first, second = (kept.once(tmp_path / "kept", KEY, work) for _ in range(2))
    assert work.calls == 1 and equal(first, second) and equal(first, Work()())
    other = kept.once(tmp_path / "kept", OTHER, work)
    assert work.calls == 2 and not equal(first, other)


def test_the_order_of_the_numbers_in_memory_is_kept(tmp_path):
    """A transposed matrix is multiplied by another kernel, which may round otherwise."""
    for _ in range(2):
        assert kept.once(tmp_path, KEY, lambda: torch.ones(3, 5).T).stride() == (1, 5)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:500])


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-1000] ^= 1
    file.write_bytes(data)


def swap(file: Path) -> None:
    torch.save([1, 2, 3], file)


def plant(file: Path) -> None:
    """A pickle of something else than tensors, which could run a command, behind a right checksum."""
    content = pickle.dumps(Path("thesis.txt"), protocol=2)
    file.write_bytes(hashlib.sha256(content).digest() + content)


@pytest.mark.parametrize("damage", [cut, flip, swap, plant, Path.touch, lambda file: file.write_bytes(b"")])
def test_what_is_damaged_is_named_set_aside_and_computed_anew(tmp_path, caplog, damage):
    """All but ``touch`` damage it."""
    kept.once(tmp_path, KEY, Work())
    kept.once(tmp_path, OTHER, Work())
    file, beside = (tmp_path / f"{key}.pt" for key in (KEY, OTHER))
    damage(file)
    work = Work()
    assert equal(kept.once(tmp_path, KEY, work), Work()())
    if damage is Path.touch:
        assert not work.calls and not caplog.text and sorted(tmp_path.iterdir()) == [file, beside]
        return
    assert work.calls == 1
    assert f"{file} is damaged: it is not what was written. It is set aside as {KEY}.damaged" in caplog.text
    assert sorted(tmp_path.iterdir()) == [file.with_suffix(".damaged"), file, beside]


X = np.random.default_rng(0).normal(size=(6, 4)).astype(np.float32)
ARRAYS = [X, X.T, X[:, :2], X[:, :1].T, X[::2], X[:0], np.array(["a", "b"]), np.array(["a", 1], object)]


@pytest.mark.parametrize("x", ARRAYS)
def test_an_array_has_one_digest_wherever_it_lies(tmp_path, x):
    """joblib hands it to other processes as a map of a file, or copied."""
    same = [x, x.copy("C"), x.copy("F"), pickle.loads(pickle.dumps(x))]
    if x.dtype == np.float32:
        np.save(tmp_path / "x.npy", x)
        same += [np.load(tmp_path / "x.npy", mmap_mode="r" if x.size else None), torch.from_numpy(x)]
    assert len({kept.digest([{"x": one}], 1) for one in same}) == 1


def test_another_array_has_another_digest():
    others = [X, X + 1, X.T, X.reshape(4, 6), X.astype(np.float64), X.view(np.int32), X[:3], [X, X], {"x": X}]
    assert len({kept.digest(one) for one in others}) == len(others)


def test_the_code_is_its_text_the_versions_the_pins_and_the_device(monkeypatch):
    before = kept.code({"lib.checks"}, "torch", "numpy")
    assert f"torch {torch.__version__} numpy" in before
    assert re.search(r"^lib/checks\.py [0-9a-f]{64}$", before, re.MULTILINE)
    assert kept.code({"lib.training.kept"}, "torch", "numpy") != before
    assert paths.ROOT.as_posix() not in before
    known = kept.code({"lib.datasets.loaders"})
    assert "lib/datasets/table.py" in known and "lib/datasets/catalogue" not in known  # what a dataset is called
    monkeypatch.setitem(pins.PINS, "OMP_NUM_THREADS", "1")
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert kept.code({"lib.checks"}, "torch", "numpy") != before
    monkeypatch.undo()
    monkeypatch.setattr(devices, "pick", lambda: torch.device("cuda"))
    assert kept.code({"lib.checks"}, "torch", "numpy") != before
    monkeypatch.undo()
    monkeypatch.setattr(torch, "__version__", "0.1")
    assert kept.code({"lib.checks"}, "torch", "numpy") == before.replace(before.split()[1], "0.1", 1)
