"""Tables and figures that show themselves in a notebook; :meth:`lib.study.store.Run.save` writes them."""

from collections.abc import Collection
from dataclasses import dataclass

import pandas as pd
from IPython.display import Markdown, display
from matplotlib import figure as mpl

from lib.study.markdown import literal


@dataclass(frozen=True, eq=False)
class _Shown:
    """What tables and figures have in common.

    Attributes:
        title: without paper and dataset, which the run knows.
        rows: every number.
        caption: what the numbers are, and why they differ from the published ones.
        free: columns that a rebuild need not agree in, because the slightest change of a number turns them over: single
            answers, coordinates, which candidate won; p-values are always free.
        stamp: profile, images, encoder and notebook, once it is saved.
    """

    title: str
    rows: pd.DataFrame
    caption: str
    free: Collection[str] = ()
    stamp: str = ""

    @property
    def _below(self) -> str:
        """What stands below it: caption and stamp."""
        return f"*{literal(self.caption)}*" + f"\n\n{literal(self.stamp)}" * bool(self.stamp)

    def __post_init__(self) -> None:
        if unknown := [column for column in self.free if column not in self.rows.columns]:
            raise ValueError(f"{self.title}: no column {', '.join(unknown)} that could be free")


@dataclass(frozen=True, eq=False, kw_only=True)
class Table(_Shown):
    """A table; ``markdown`` is how a page shows it, by default as its section declares it (:attr:`Run.layouts`)."""

    markdown: str | None = None

    def _ipython_display_(self) -> None:
        display(Markdown(f"{self.markdown}\n\n{self._below}"))


@dataclass(frozen=True, eq=False, kw_only=True)
class Figure(_Shown):
    """A figure; ``figure`` is drawn, its ``rows`` are what it draws."""

    figure: mpl.Figure

    def _ipython_display_(self) -> None:
        display(self.figure, Markdown(self._below))
