"""Tests run with the pins, and train what they test: nothing that was trained before stands in for it.

Real images are there where somebody has them: ``make test DATA=<folder>``.
"""

import importlib
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lib import paths, pins

pins.pin()  # before anything imports numpy; worker processes and kernels inherit it
os.environ["DEVICE"] = "cpu"  # also where there is a GPU; tests of one name it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The browser comes first: it takes minutes, and the other processor does all else. What needs a GPU is skipped."""
    items.sort(key=lambda item: "test_in_browser" not in item.nodeid)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and not importlib.import_module("torch").cuda.is_available():
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU: `make gpu` runs it on a machine with one"))


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


def absent(what: str) -> None:
    """Skip where somebody works without it; fail where everything must be checked."""
    (pytest.fail if os.environ.get("CI") else pytest.skip)(what)


@pytest.fixture(scope="module")
def browser() -> Iterator:
    sync_api = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        absent("no Chromium on this machine; on Debian: apt-get install chromium")
    quiet = ("gpu", "quic", "background-networking", "component-update", "sync", "dev-shm-usage")
    flags = ["--no-sandbox", "--no-first-run", *(f"--disable-{name}" for name in quiet)]
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, headless=True, args=flags)
        yield running
        running.close()
