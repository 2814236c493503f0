"""Tables that are declared: a row of a frame becomes a line, a :class:`Column` says what stands in its cells.

Published rows stand first in the frame. Chance has columns of its own there and becomes the last line.
"""

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.study.markdown import markdown_table

Form = str | Callable[[Any], str]
"""How a value prints: decimals and unit ("2", "1 %", "+2"), a format with braces, or a function. Text is left alone."""


@dataclass(frozen=True)
class Column:
    """A column of a table.

    title: its head. value: the frame's column, by default ``title``. form: how its numbers print. pm: the column of the
    spread behind ±. brackets: a column that follows in brackets. over: one column for each value of this column of the
    frame, which replaces "{}" in the title. at: (column, value) of the rows that a cell is read from, of those that
    become one line; the first of all if not given. chance: the frame's column that the last line has here. optional:
    left out where no row has a value.
    """

    title: str
    value: str = ""
    form: Form = "2"
    pm: str = ""
    brackets: str = ""
    over: str = ""
    at: tuple[str, Any] | None = None
    chance: str = ""
    optional: bool = False

    @property
    def key(self) -> str:
        """The column of the frame that it shows."""
        return self.value or self.title

    def spread(self, rows: pd.DataFrame) -> list["Column"]:
        """One column for each value of ``over``; numbers in their order, names as they come."""
        if not self.over:
            return [self]
        values = rows[self.over].dropna().unique()
        ordered = sorted(values) if pd.api.types.is_numeric_dtype(rows[self.over]) else values
        return [replace(self, title=self.title.format(_plain(v)), over="", at=(self.over, v)) for v in ordered]

    def cell(self, rows: pd.DataFrame) -> str:
        """The cell of ``rows``, all of which become one line."""
        row = self._row(rows)
        value, spread, more = (printed(row.get(key), self.form) for key in (self.key, self.pm, self.brackets))
        return value + f" ± {spread}" * (spread != "–" and bool(self.pm)) + f" ({more})" * (more != "–")

    def by_chance(self, lines: Sequence[pd.DataFrame]) -> str:
        """The cell of the line of chance below ``lines``, each the rows of one line.

        Raises InputError if chance is not the same for all lines that have one: a single line cannot say it.
        """
        if not self.chance:
            return "–"
        texts = dict.fromkeys(printed(self._row(rows).get(self.chance), self.form) for rows in lines)
        values = [text for text in texts if text != "–"]
        if len(values) > 1:
            raise InputError(
                f"column {self.title!r}: {self.chance} is {' and '.join(values)} in rows above one line of chance; "
                "name in Layout(block=...) the column that tells these rows apart"
            )
        return values[0] if values else "–"

    def _row(self, rows: pd.DataFrame) -> pd.Series:
        there = rows if self.at is None else rows[rows[self.at[0]] == self.at[1]]
        return there.iloc[0] if len(there) else pd.Series(dtype=object)


def _plain(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def printed(value: Any, form: Form = "2") -> str:
    """A value as a cell: a dash where there is none, text as it is, numbers by their form.

    Numbers are rounded as their csv has them, to four decimals first: who reads the csv gets the same table.

    >>> printed(94.614), printed(0.25, "3"), printed(62.14, "1 %"), printed(1.5, "+2"), printed(3e-5, "{:g}")
    ('94.61', '0.250', '62.1 %', '+1.50', '3e-05')
    >>> printed(float("nan")), printed(None), printed("ball"), printed(114.0, "0")
    ('–', '–', 'ball', '114')
    """
    if value is None or (not isinstance(value, str) and pd.isna(value)):
        return "–"
    if callable(form):
        return form(value)
    if isinstance(value, str):
        return value
    if "{" in form:
        return form.format(value)
    digits, _, unit = form.partition(" ")
    number = Decimal(f"{value:.4f}").quantize(Decimal(1).scaleb(-int(digits.lstrip("+"))), ROUND_HALF_UP)
    return f"{number:{'+z' if digits.startswith('+') else 'z'}f}" + f" {unit}" * bool(unit)


def steps(value: float) -> str:
    """Steps of a training; a dash where nothing was trained."""
    return f"{value:.0f}" if value else "–"


HEALTH = (Column("last loss", "loss", "3"), Column("at the rim", "rim", "1 %"), Column("steps", "steps", steps))
"""How the trainings behind a row ended: the mean of the last losses, the largest share at the rim, the steps."""


def over_trainings(rows: pd.DataFrame, by: Sequence[str], repeats: str = "repeat") -> pd.DataFrame:
    """The mean over trainings of every number, its standard deviation as "_spread", and n_seeds; text as it stands.

    Numbers are taken as their csv has them, to four decimals: who reads the csv gets the same means.

    >>> over_trainings(pd.DataFrame({"method": "a", "repeat": [0, 1], "mAP": [50.0, 52.0]}), ["method"]).round(2).values
    array([['a', 51.0, 1.41, 2]], dtype=object)
    """
    rows = rows.round(4)
    grouped = rows.groupby(list(by), sort=False, dropna=False)
    numbers = [column for column in rows.select_dtypes("number") if column not in (*by, repeats)]
    text = [column for column in rows if column not in (*by, *numbers, repeats)]
    parts = [grouped[numbers].mean(), grouped[numbers].std().add_suffix("_spread"), grouped.size().rename("n_seeds")]
    return pd.concat([*parts, *([grouped[text].first()] if text else [])], axis=1).reset_index()


@dataclass(frozen=True)
class Layout:
    """How a csv becomes a table: called with its rows, it gives Markdown; chance is the last line.

    columns: what is shown. by: the columns of the rows that tell lines apart; several rows become one line where a
    column is spread ``over`` something, as K. block: a column of the rows whose every value ends with a line of chance
    of its own. repeats: the column that counts trainings, where the csv has a row for each: lines are their means, and
    every number has a "_spread" (:func:`over_trainings`). prepare: what is made of the rows first, as texts of several
    numbers, or published rows above. Without ``by`` every row is a line.

    Raises InputError where chance differs within a block: its one line of chance would be wrong for some rows.

    >>> rows = {"method": ["ball", "ball"], "k": [1, 8], "ours": [50.0, 80.5], "spread": [1.0, None], "chance": [5, 40]}
    >>> recall = Column("Recall@{}", "ours", over="k", pm="spread", chance="chance")
    >>> print(Layout([Column("method"), recall])(pd.DataFrame(rows)))
    | method | Recall@1 | Recall@8 |
    | --- | --- | --- |
    | ball | 50.00 ± 1.00 | 80.50 |
    | chance | 5.00 | 40.00 |
    """

    columns: Sequence[Column]
    by: Sequence[str] = ("method",)
    block: str = ""
    repeats: str = ""
    prepare: Callable[[pd.DataFrame], pd.DataFrame] | None = None

    def __call__(self, rows: pd.DataFrame) -> str:
        rows = self.prepare(rows) if self.prepare else rows
        if self.repeats:
            of_cells = [column.over or (column.at or ("",))[0] for column in self.columns]
            keys = dict.fromkeys([self.block, *self.by, *of_cells])
            rows = over_trainings(rows, [key for key in keys if key], self.repeats)
        spread = [narrow for column in self.columns for narrow in column.spread(rows)]
        shown = [c for c in spread if not c.optional or (c.key in rows and rows[c.key].notna().any())]
        keys = [self.block, *self.by] if self.block else list(self.by)
        lines = []
        for name, part in rows.groupby(self.block, sort=False, dropna=False) if self.block else [("", rows)]:
            grouped = part.groupby(keys if self.by else np.arange(len(part)), sort=False, dropna=False)
            of_lines = [line for _, line in grouped]
            lines += [{column.title: column.cell(line) for column in shown} for line in of_lines]
            if any(column.chance for column in shown):
                lines.append({column.title: column.by_chance(of_lines) for column in shown} | self._named(shown, name))
        return markdown_table(pd.DataFrame(lines, columns=[column.title for column in shown]))

    def _named(self, shown: Sequence[Column], block: str) -> dict[str, str]:
        """The first cells of a line of chance."""
        return dict(zip([c.title for c in shown], [block, "chance"] if self.block else ["chance"], strict=False))


def declared(paper: str, section: str) -> dict[str, Callable[[pd.DataFrame], str]]:
    """Table → its layout, as the section's module, or a module of its package, has it in ``LAYOUTS``.

    The name of a section leads to its module, as it does to its notebook and its reports: nothing else is looked up.
    """
    first = importlib.import_module(f"lib.papers.{paper}.{section}")
    names = [module.name for module in pkgutil.iter_modules(getattr(first, "__path__", ()), f"{first.__name__}.")]
    modules = [first, *map(importlib.import_module, names)]
    return {table: layout for module in modules for table, layout in getattr(module, "LAYOUTS", {}).items()}
