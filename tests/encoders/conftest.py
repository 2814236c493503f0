"""A hub that cannot be reached, and one that can; an encoder that counts."""

import huggingface_hub
import numpy as np
import pytest

from lib import paths


class Counting:
    """An encoder with ``numbers`` of the pixels of an image; counts what it is asked and can fail on request."""

    def __init__(self, version: str = "1", fail_at: int | None = None):
        self.provenance = {"encoder": self.name, "version": version}
        self.batches: list[int] = []
        self.fail_at = fail_at

    def encode(self, images):
        if len(self.batches) == self.fail_at:
            raise RuntimeError("power cut")
        self.batches.append(len(images))
        return np.array([self.numbers(np.asarray(image)) for image in images], dtype=np.float32)


@pytest.fixture
def nothing_on_this_machine(tmp_path, monkeypatch):
    """Empty weights folder, empty hub cache, a hub that cannot be reached."""

    def unreachable():
        raise ConnectionError("no route to host")

    monkeypatch.setattr(paths, "WEIGHTS", tmp_path / "weights")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.utils, "get_session", unreachable)
    paths.WEIGHTS.mkdir()


@pytest.fixture
def online(monkeypatch):
    """A hub that answers at once."""

    class Session:
        def head(self, url, timeout):
            assert 0 < timeout <= 10

    monkeypatch.setattr(huggingface_hub.utils, "get_session", Session)
