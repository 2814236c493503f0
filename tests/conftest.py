"""Tests run with the pins, and train what they test: nothing that was trained before stands in for it.

Real images are there where somebody has them: ``make test DATA=<folder>``.
"""

import os
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


@pytest.fixture
def real() -> Callable[[str], Path]:
    """The folder of the real images with a name; the test is skipped where it is not there."""

    def folder(name: str = ".") -> Path:
        home = os.environ.get("HYPERBOLIC_DATA")
        if not home or not (Path(home) / name).is_dir():
            pytest.skip(f"needs HYPERBOLIC_DATA with {name}" if name != "." else "needs HYPERBOLIC_DATA")
        return Path(home) / name

    return folder
