"""Tests run with the pins, and train what they test: nothing that was trained before stands in for it.

Real images are there where somebody has them: ``make test DATA=<folder>``.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from lib import paths, pins

pins.pin()  # before anything imports numpy; worker processes and kernels inherit it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser comes first: it takes minutes on one processor, and the other one has all else to do meanwhile."""
    items.sort(key=lambda item: "test_in_browser" not in item.nodeid)


@pytest.fixture(autouse=True)
def _trained_anew(monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", None)


@pytest.fixture(autouse=True)
def _one_thread():
    """No test leaves others with more threads: sums over several have other last bits, and forks wait for them."""
    yield
    if "torch" in sys.modules:
        assert sys.modules["torch"].get_num_threads() == 1


@pytest.fixture
def real() -> Callable[[str], Path]:
    """The folder of the real images with a name; the test is skipped where it is not there."""

    def folder(name: str = ".") -> Path:
        home = os.environ.get("HYPERBOLIC_DATA")
        if not home or not (Path(home) / name).is_dir():
            pytest.skip(f"needs HYPERBOLIC_DATA with {name}" if name != "." else "needs HYPERBOLIC_DATA")
        return Path(home) / name

    return folder
