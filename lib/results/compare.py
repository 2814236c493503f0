"""Is what was built the same as what is committed? Every table, every cell, at stated tolerances."""

import io
import json
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from lib.paths import REPORTS, ROOT


@dataclass(frozen=True)
class Deviation:
    """The largest deviation in one column of one table; ``allowed`` is None where the cells must be equal."""

    table: str
    column: str
    deviation: float
    allowed: float
    problem: str = ""

    @property
    def within(self) -> bool:
        """Whether the deviation is allowed."""
        return not self.problem and self.deviation <= self.allowed


def tables(committed: pd.DataFrame, built: pd.DataFrame, tolerances: dict[str, float], name: str) -> list[Deviation]:
    """Compare two versions of one table, column by column.

    Args:
        committed, built: the two versions.
        tolerances: largest allowed absolute deviation by column; columns without one must be equal.
        name: of the table, for the message.

    >>> one = pd.DataFrame({"k": [1, 20], "ours": [90.0, 88.0]})
    >>> two = one.assign(ours=[90.5, 88.0])
    >>> [(d.column, d.deviation, d.within) for d in tables(one, two, {"ours": 1.0}, "table_2")]
    [('k', 0.0, True), ('ours', 0.5, True)]
    """
    if list(committed.columns) != list(built.columns) or len(committed) != len(built):
        shapes = f"{committed.shape[0]} × {committed.shape[1]} committed, {built.shape[0]} × {built.shape[1]} built"
        return [Deviation(name, "", float("inf"), 0.0, f"other rows or columns ({shapes})")]
    return [_column(committed[c], built[c], tolerances.get(c, 0.0), name) for c in committed.columns]


def _column(committed: pd.Series, built: pd.Series, allowed: float, name: str) -> Deviation:
    column = str(committed.name)
    if not (pd.api.types.is_numeric_dtype(committed) and pd.api.types.is_numeric_dtype(built)):
        unequal = committed.astype(str) != built.astype(str)
        if not unequal.any():
            return Deviation(name, column, 0.0, 0.0)
        row = unequal.idxmax()
        return Deviation(name, column, 1.0, 0.0, f"row {row}: {committed[row]!r} committed, {built[row]!r} built")
    if (committed.isna() != built.isna()).any():
        return Deviation(name, column, float("inf"), allowed, "a cell is empty in one of the two")
    return Deviation(name, column, float((committed - built).abs().max()) if committed.notna().any() else 0.0, allowed)


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
    """Whether ``reports/<paper>/<profile>/<dataset>/<file>`` is asked for."""
    return len(path.parts) == 5 and path.parts[2] == profile and (datasets is None or path.parts[3] in datasets)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
