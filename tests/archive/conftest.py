"""A small folder of tiles, and archives of it."""

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import requests
import uvicorn
from PIL import Image

from lib.archive import methods
from lib.archive.app import server
from lib.archive.archive import Archive
from lib.datasets import finding
from lib.datasets.table import ImageTable

MARKUP = "<img src=x onerror=alert(1)>"
CLASSES = ("carcinoma", "normal", MARKUP)
"""The first is dark, the second bright, the third striped."""


def tile(label: str, seed: int, side: int = 40) -> Image.Image:
    """A tile of a class: noise about its own grey, or stripes."""
    noise = np.random.default_rng(seed).integers(0, 60, (side, side, 3))
    base = {"carcinoma": 20, "normal": 180}.get(label, 90)
    stripes = 90 * (np.arange(side) // 4 % 2)[:, None, None] if label == MARKUP else 0
    return Image.fromarray((base + noise + stripes).clip(0, 255).astype(np.uint8))


@pytest.fixture(scope="session")
def tiles(tmp_path_factory) -> Path:
    """Class, patient, tile: 3 classes, 4 patients with two tiles of each class."""
    root = tmp_path_factory.mktemp("data") / "my_tiles"
    for c, label in enumerate(CLASSES):
        for number in range(8):
            file = root / label / f"patient_{number // 2}" / f"tile_{c}{number}.png"
            file.parent.mkdir(parents=True, exist_ok=True)
            tile(label, 100 * c + number).save(file)
    return root


@pytest.fixture(scope="session")
def table(tiles) -> ImageTable:
    return finding.tables(tiles)[0]


@pytest.fixture(scope="session")
def built(table, tmp_path_factory) -> Path:
    """The folder of an archive of plain texture features."""
    folder = tmp_path_factory.mktemp("archive") / "my_tiles"
    Archive.build(table, "texture").save(folder)
    return folder


@pytest.fixture
def archive(built) -> Archive:
    return Archive.load(built)


@pytest.fixture
def quick(monkeypatch) -> None:
    """Heads are trained for a moment."""
    monkeypatch.setattr(methods, "STEPS", 40)


class Page:
    """A page that is served, and how to ask it."""

    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str, **options) -> requests.Response:
        return self._request("GET", path, **options)

    def post(self, path: str, **options) -> requests.Response:
        return self._request("POST", path, **options)

    def _request(self, verb: str, path: str, **options) -> requests.Response:
        with requests.Session() as session:
            session.trust_env = False  # no proxy stands between
            return session.request(verb, f"{self.address}/{path}", timeout=60, **options)


@pytest.fixture(scope="session")
def page(built) -> Iterator[Page]:
    """The page of that archive on a free port, as ``make app`` serves it."""
    taken = server.bound("127.0.0.1", 0)
    running = uvicorn.Server(uvicorn.Config(server.app(built), log_level="warning"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    yield Page(f"http://127.0.0.1:{taken.getsockname()[1]}")
    running.should_exit = True
    thread.join(30)
