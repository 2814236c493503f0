"""Titles and captions that a section declares, with the run's parameters in braces: its tables and figures by name."""

from collections.abc import Collection, Mapping

import pandas as pd
from matplotlib import figure as mpl

from lib.study.shown import Figure, Table
from lib.study.store import Run

Words = Mapping[str, tuple[str, str]]
"""Table or figure → its title and its caption."""


def table(run: Run, words: Words, name: str, rows: pd.DataFrame, free: Collection[str] = (), **more: str) -> Table:
    """The table of this name; ``more``: what the caption has in braces beside the parameters of the run."""
    return Table(*_filled(run, words[name], rows, more), free)


def figure(run: Run, words: Words, name: str, rows: pd.DataFrame, drawn: mpl.Figure, **more: str) -> Figure:
    """The figure of this name."""
    return Figure(*_filled(run, words[name], rows, more), figure=drawn)


def _filled(
    run: Run, words: tuple[str, str], rows: pd.DataFrame, more: Mapping[str, str]
) -> tuple[str, pd.DataFrame, str]:
    title, text = (part.format(**run.parameters, **more) for part in words)
    return title, rows, text
