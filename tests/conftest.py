"""Tests train what they test: nothing that was trained before stands in for it."""

import pytest

from lib import paths


@pytest.fixture(autouse=True)
def _trained_anew(monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", None)
