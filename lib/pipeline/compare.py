"""Is what was built the same as what is committed? Every table, every cell, at stated tolerances."""

import io
import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from lib.paths import REPORTS, ROOT

SPREADS = 2.0
"""A row whose folds differ by a standard deviation of ``spread`` may deviate by so many of them more."""


@dataclass(frozen=True)
class Deviation:
    """The largest deviation in one column of one table and what that cell allows; ``problem``: the row beyond."""

    table: str
    column: str
    deviation: float
    allowed: float
    problem: str = ""

    @property
    def within(self) -> bool:
        """Whether every cell of the column deviates by no more than it may."""
        return not self.problem


def tables(committed: pd.DataFrame, built: pd.DataFrame, tolerances: dict[str, float], name: str) -> list[Deviation]:
    """Compare two versions of one table, column by column.

    Where a table states the spread of its rows over the folds, what is unstable there may also differ more between two
    processors: a column's tolerance grows by :data:`SPREADS` times the committed spread.

    Args:
        committed, built: the two versions.
        tolerances: largest allowed absolute deviation by column; columns without one must be equal, words included,
            and with an infinite one they are not compared.
        name: of the table, for the message.

    >>> one = pd.DataFrame({"k": [1, 20], "ours": [90.0, 88.0]})
    >>> two = one.assign(ours=[90.5, 88.0])
    >>> [(d.column, float(d.deviation), d.within) for d in tables(one, two, {"ours": 1.0}, "table_2")]
    [('k', 0.0, True), ('ours', 0.5, True)]
    """
    if list(committed.columns) != list(built.columns) or len(committed) != len(built):
        shapes = f"{committed.shape[0]} × {committed.shape[1]} committed, {built.shape[0]} × {built.shape[1]} built"
        return [Deviation(name, "", float("inf"), 0.0, f"other rows or columns ({shapes})")]
    spread = committed.get("spread", pd.Series(0.0, committed.index)).fillna(0.0)
    allowed = {c: pd.Series(0.0, committed.index) for c in committed.columns}
    allowed |= {c: tolerances[c] + SPREADS * spread for c in committed.columns if c in tolerances}
    return [_column(committed[c], built[c], allowed[c], name) for c in committed.columns]


def _column(committed: pd.Series, built: pd.Series, allowed: pd.Series, name: str) -> Deviation:
    column = str(committed.name)
    if committed.empty or np.isinf(allowed.iloc[0]):
        return Deviation(name, column, 0.0, 0.0)
    words = not (pd.api.types.is_numeric_dtype(committed) and pd.api.types.is_numeric_dtype(built))
    if words:
        deviation = (committed.astype(str) != built.astype(str)).astype(float)
    else:
        one_empty = committed.isna() != built.isna()
        deviation = (committed.astype(float) - built.astype(float)).abs().fillna(0.0).mask(one_empty, np.inf)
    over = deviation if words else deviation - allowed
    largest, row = deviation.idxmax(), over.idxmax()
    problem = f"row {row}: {committed[row]} committed, {built[row]} built" + ("" if words else f" (± {allowed[row]:g})")
    return Deviation(name, column, deviation[largest], allowed[largest], problem if over[row] > 0 else "")


def with_commit(
    profile: str, tolerances: dict[str, float], datasets: Collection[str] | None = None
) -> tuple[list[Deviation], list[str]]:
    """Compare the tables of ``profile`` (of these ``datasets``, or of all) in ``reports/`` with the last commit's.

    The demo must have exactly the committed tables. Elsewhere the images are yours: a table that is not committed,
    or was made from other images, is not compared but named.

    Returns:
        The deviations, and one line for each table that was not compared.
    """
    listed = _git("ls-tree", "-r", "--name-only", "HEAD", "reports/").splitlines()
    found = [path.relative_to(ROOT).as_posix() for path in REPORTS.rglob("*.csv")]
    committed, built = (
        {name for name in names if name.endswith(".csv") and _belongs(Path(name), profile, datasets)}
        for names in (listed, found)
    )
    deviations = [Deviation(name, "", float("inf"), 0.0, "committed, but not built") for name in committed - built]
    notes = []
    for name in sorted(built):
        if name not in committed and profile == "demo":
            deviations.append(Deviation(name, "", float("inf"), 0.0, "built, but not committed"))
        elif name not in committed:
            notes.append(f"{name}: new")
        elif profile != "demo" and _digest(_show(name)) != _digest((ROOT / name).with_suffix(".json").read_text()):
            notes.append(f"{name}: made from other images than the committed one")
        else:
            old = pd.read_csv(io.StringIO(_git("show", f"HEAD:{name}")))
            deviations += tables(old, pd.read_csv(ROOT / name), tolerances, name)
    return deviations, notes


def _show(name: str) -> str:
    """The committed record of where table ``name`` comes from."""
    return _git("show", f"HEAD:{Path(name).with_suffix('.json').as_posix()}")


def _digest(record: str) -> str:
    return json.loads(record)["digest"]


def _belongs(path: Path, profile: str, datasets: Collection[str] | None) -> bool:
    """Whether ``reports/<paper>/<profile>/<dataset>/<section>/<file>`` is asked for."""
    return len(path.parts) == 6 and path.parts[2] == profile and (datasets is None or path.parts[3] in datasets)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
