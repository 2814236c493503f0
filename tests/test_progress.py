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
    batches = [[1, 2, 3, 4], [5, 6]]
    assert list(progress.track(batches, total=6, what="features", unit="images", size=len)) == batches
    assert capsys.readouterr().err.splitlines() == ["features: 4 of 6 images", "features: 6 of 6 images"]
    assert list(progress.track([], total=0, what="x", unit="y")) == []
    assert capsys.readouterr().err == ""


def test_a_note_follows_what_is_done(capsys):
    """The last item of each tenth is described; an empty note leaves no trace."""

    def note(loss: float) -> str:
        return f"loss {loss:.1f}" if loss else ""

    losses = [9.0, 4.0, 0.0, 1.0]
    assert list(progress.track(losses, total=4, what="heads", unit="heads", note=note)) == losses
    assert capsys.readouterr().err.splitlines() == [
        "heads: 1 of 4 heads, loss 9.0",
        "heads: 2 of 4 heads, loss 4.0",
        "heads: 3 of 4 heads",
        "heads: 4 of 4 heads, loss 1.0",
    ]


def test_the_bar_ends_with_the_last_note(monkeypatch, capsys):
    """It is not drawn anew for every item: many short items would then only draw."""
    monkeypatch.setattr(progress, "watched", lambda: True)
    list(progress.track(range(5000), total=5000, what="heads", unit="heads", note=lambda i: f"item {i}"))
    bar = capsys.readouterr().err
    assert "item 4999" in bar.split("\r")[-1]
    assert bar.count("\r") < 500
