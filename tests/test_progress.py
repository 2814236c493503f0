"""Without a terminal there is a plain line per tenth; items pass through unchanged."""

import pytest

from lib import progress


@pytest.fixture(autouse=True)
def nobody_watches(monkeypatch):
    monkeypatch.setenv("HEADLESS", "1")


def test_a_line_per_tenth(capsys):
    assert list(progress.track(range(25), total=25, what="heads", unit="heads")) == list(range(25))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 10
    assert (lines[0], lines[-1]) == ("heads: 3 of 25 heads", "heads: 25 of 25 heads")


def test_batches_count_what_they_hold(capsys):
    batches = [[1, 2, 3, 4], [5, 6]]
    assert list(progress.track(batches, total=6, what="features", unit="images", size=len)) == batches
    assert capsys.readouterr().err.splitlines() == ["features: 4 of 6 images", "features: 6 of 6 images"]


def test_nothing_to_do_says_nothing(capsys):
    assert list(progress.track([], total=0, what="x", unit="y")) == []
    assert capsys.readouterr().err == ""


def test_a_terminal_gets_a_bar(monkeypatch, capsys):
    monkeypatch.setattr(progress, "watched", lambda: True)
    assert list(progress.track([1, 2], total=2, what="heads", unit="heads")) == [1, 2]
    assert "100%" in capsys.readouterr().err
