"""Is what was built the same as what is committed? Every table, every cell, at stated tolerances."""

import re
import subprocess
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from lib.devices import CPU
from lib.files import MARKER
from lib.paths import BUILD, REPORTS, ROOT
from lib.study import saved
from lib.study.saved import ELSEWHERE_POINTS, ELSEWHERE_SHARE, SHARE

REBUILT = BUILD / "rebuilt"
"""Sections that were built again and agreed with those in ``reports/``, which stayed."""
UNSEEN = 24
"""Levels of 255 by which red, green or blue of a pixel may change unseen where the data of a picture are equal."""
FEW = 1e-4
"""Share of the pixels that may change by more: less than a word in a small figure."""


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


@dataclass(frozen=True)
class Tolerance:
    """How far the numbers of a table may deviate, as the table itself says (:meth:`lib.study.store.Run.save`).

    share: of the largest number of the committed column. free: columns that are not compared. points: by so much they
    may deviate anyway. elsewhere: trained on another device, where choices and verdicts may be others: whole numbers
    and words are not compared.
    """

    share: float = SHARE
    free: tuple[str, ...] = ()
    points: float = 0.0
    elsewhere: bool = False


def tolerance(record: dict[str, Any], built: dict[str, Any] | None = None) -> Tolerance:
    """What the record of a table (:func:`lib.study.saved.record`) says of it; ``built``: the rebuild's record."""
    own = Tolerance(**record.get("tolerance", {}))
    if built is None or saved.device(built) == saved.device(record):
        return own
    free = (*own.free, "freedom")  # of a test, which follows its spreads
    return Tolerance(max(own.share, ELSEWHERE_SHARE), free, ELSEWHERE_POINTS, elsewhere=True)


def tables(committed: pd.DataFrame, built: pd.DataFrame, tolerance: Tolerance, name: str) -> list[Deviation]:
    """Compare two versions of one table, column by column.

    Whole numbers and words must be equal, other numbers within a share of the largest one of their column: so nothing
    that stands in one column makes another looser, and a column of zeros is never taken for what was measured.

    Args:
        committed, built: the two versions.
        tolerance: of the committed one.
        name: of the table, for the message.

    >>> old = pd.DataFrame({"k": [1, 20], "ours": [100.0, 88.0]})
    >>> new = old.assign(ours=[99.5, 88.0])
    >>> [(d.column, float(d.deviation), float(d.allowed), d.within) for d in tables(old, new, Tolerance(), "table_2")]
    [('k', 0.0, 0.0, True), ('ours', 0.5, 1.0, True)]
    """
    if list(committed.columns) != list(built.columns) or len(committed) != len(built):
        shapes = f"{committed.shape[0]} × {committed.shape[1]} committed, {built.shape[0]} × {built.shape[1]} built"
        return [Deviation(name, "", float("inf"), 0.0, f"other rows or columns ({shapes})")]
    compared = committed.columns.drop(list(tolerance.free), errors="ignore")
    if tolerance.elsewhere:
        compared = committed[compared].select_dtypes("float").columns
    return [_column(committed[column], built[column], tolerance, name) for column in compared]


def _column(committed: pd.Series, built: pd.Series, tolerance: Tolerance, name: str) -> Deviation:
    column = str(committed.name)
    if committed.empty:
        return Deviation(name, column, 0.0, 0.0)
    words = not (_of_numbers(committed) and _of_numbers(built))
    finite = committed[np.isfinite(committed)].abs() if pd.api.types.is_float_dtype(committed) else pd.Series([0.0])
    allowed = max(tolerance.share * float(finite.max()) if len(finite) else 0.0, tolerance.points)
    if words:
        both_empty = committed.isna() & built.isna()
        deviation = ((committed.astype(str) != built.astype(str)) & ~both_empty).astype(float)
    else:
        one_empty = committed.isna() != built.isna()
        deviation = (committed.astype(float) - built.astype(float)).abs().fillna(0.0).mask(one_empty, np.inf)
    over = deviation if words else deviation - allowed
    largest, row = deviation.idxmax(), over.idxmax()
    problem = f"row {row}: {committed[row]} committed, {built[row]} built" + ("" if words else f" (± {allowed:g})")
    return Deviation(name, column, deviation[largest], allowed, problem if over[row] > 0 else "")


def _of_numbers(column: pd.Series) -> bool:
    return pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)


def agree(standing: Path, rebuilt: Path) -> bool:
    """Whether the folder of a section may stay as it is: a rebuild differs from it in numbers alone, none beyond.

    Both hold the same files, their titles, parameters and captions are the same but for the numbers in captions, and
    every table is within the standing one's tolerance, as is the data of every picture. If all these numbers are equal,
    the folder stays only where a picture was rounded otherwise (:func:`_drawn_alike`), and nothing else has changed, or
    where another device gave them. What the demo has from another device gives way to the CPU's, which is committed.
    """
    names = {file.name for file in rebuilt.iterdir()}
    if not standing.is_dir() or {file.name for file in standing.iterdir()} - {MARKER} != names:
        return False
    if _words(standing) != _words(rebuilt):
        return False
    old, new = (next(iter(_records(folder))) for folder in (standing, rebuilt))
    moved = saved.device(old) != saved.device(new)
    if moved and old.get("profile") == "demo" and saved.device(new) == CPU:
        return False
    changed = [name for name in names if (standing / name).read_bytes() != (rebuilt / name).read_bytes()]
    both = [(standing / name, rebuilt / name) for name in changed]
    data = [(old, new) for old, new in both if old.suffix == ".csv"]
    if not data:
        return moved or (bool(both) and all(_drawn_alike(old, new) for old, new in both))
    return all(
        deviation.within
        for old, new in data
        for deviation in tables(
            pd.read_csv(old), pd.read_csv(new), tolerance(saved.record(old), saved.record(new)), old.name
        )
    )


def _drawn_alike(old: Path, new: Path) -> bool:
    """Whether two pictures of the same data differ by no more than what a processor rounds otherwise.

    They have the same size, and hardly a pixel of them changes so that it is seen.
    """
    if old.suffix != ".png":
        return False
    pixels = [np.asarray(Image.open(BytesIO(file.read_bytes())).convert("RGB"), dtype=int) for file in (old, new)]
    if pixels[0].shape != pixels[1].shape:
        return False
    return bool((np.abs(pixels[0] - pixels[1]).max(axis=-1) > UNSEEN).mean() <= FEW)


def _words(folder: Path) -> list[dict[str, Any]]:
    """What a section's record says, without the numbers in captions."""
    about = [record | {"device": "any"} for record in _records(folder)]
    return [record | {"caption": re.sub(r"[-+−]?\d[\d.,]*", "#", record["caption"])} for record in about]


def _records(folder: Path) -> list[dict[str, Any]]:
    return [*saved.records((folder / saved.RECORD).read_text(encoding="utf-8")).values()]


def with_commit(profile: str, datasets: Collection[str] | None = None) -> tuple[list[Deviation], list[str]]:
    """Compare the tables of ``profile`` (of these ``datasets``, or of all) as last built with the last commit's.

    They lie in ``reports/``, or in ``build/rebuilt/`` where they agreed with what stands there. The demo must have
    exactly the committed tables. Elsewhere the images are yours: a table that is not committed, or was made from other
    images, is not compared but named.

    Returns:
        The deviations, and one line for each table that was not compared, or in part, as it is from another device.
    """
    listed = _git("ls-tree", "-r", "--name-only", "HEAD", "reports/").splitlines()
    here = [path.relative_to(ROOT).as_posix() for path in REPORTS.rglob("*.csv")]
    committed, built = (
        {name for name in names if name.endswith(".csv") and _belongs(Path(name), profile, datasets)}
        for names in (listed, here)
    )
    deviations = [Deviation(name, "", float("inf"), 0.0, "committed, but not built") for name in committed - built]
    notes, moved = [], Counter[str]()
    for name in sorted(built):
        if name not in committed and profile == "demo":
            deviations.append(Deviation(name, "", float("inf"), 0.0, "built, but not committed"))
        elif name not in committed:
            notes.append(f"{name}: new")
        elif profile != "demo" and _show(name)["digest"] != saved.record(ROOT / name)["digest"]:
            notes.append(f"{name}: made from other images than the committed one")
        else:
            new, about = _last_built(name), saved.record(_last_built(name))
            rule = tolerance(_show(name), about)
            deviations += tables(pd.read_csv(StringIO(_git("show", f"HEAD:{name}"))), pd.read_csv(new), rule, name)
            if rule.elsewhere:
                moved[f"trained on {saved.device(about)}, the committed ones on {saved.device(_show(name))}"] += 1
    notes += [
        f"words and whole numbers of {n} tables, {how}: other numbers may deviate by {ELSEWHERE_POINTS:g}, or by "
        f"{ELSEWHERE_SHARE:.0%} of the largest of their column"
        for how, n in moved.items()
    ]
    return deviations, notes


def _last_built(name: str) -> Path:
    rebuilt = REBUILT / Path(name).relative_to("reports")
    return rebuilt if rebuilt.exists() else ROOT / name


def _show(name: str) -> dict[str, Any]:
    """The committed record of where table ``name`` comes from."""
    table = Path(name)
    return saved.records(_git("show", f"HEAD:{table.with_name(saved.RECORD).as_posix()}"))[table.stem]


def _belongs(path: Path, profile: str, datasets: Collection[str] | None) -> bool:
    """Whether ``reports/<paper>/<profile>/<dataset>/<section>/<file>`` is asked for."""
    return len(path.parts) == 6 and path.parts[2] == profile and (datasets is None or path.parts[3] in datasets)


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout
