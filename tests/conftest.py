"""Tests run with the pins, and train what they test: nothing that was trained before stands in for it."""

import pytest

from lib import paths, pins

pins.pin()  # before anything imports numpy; worker processes and kernels inherit it


@pytest.fixture(autouse=True)
def _trained_anew(monkeypatch):
    monkeypatch.setattr(paths, "TRAINED", None)
