import huggingface_hub
import pytest

from lib import paths


@pytest.fixture
def nothing_on_this_machine(tmp_path, monkeypatch):
    """Empty weights folder, empty hub cache, a hub that cannot be reached."""

    def unreachable():
        raise ConnectionError("no route to host")

    monkeypatch.setattr(paths, "WEIGHTS", tmp_path / "weights")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(huggingface_hub.utils, "get_session", unreachable)
    paths.WEIGHTS.mkdir()
