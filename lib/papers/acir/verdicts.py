"""ACIR against CSQ wherever committed reports of real images have it: the verdicts side by side, with the schedules.

Notebooks 31, 32 and 34 train for different times, and two of them networks where the third has one layer: a verdict
alone says little.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from lib import paths
from lib.datasets.catalogue import facts
from lib.results import denominators, paired, real, saved
from lib.results.real import Real
from lib.results.store import Run

Rows = Mapping[str, Any]


@dataclass(frozen=True)
class Place:
    """A paired test of ACIR against CSQ in a table of a notebook, and the table where the steps of ACIR stand.

    where: in words. first, second: of the test, ``{bits}`` the length of the code. steps: the table of the steps, and
    column and value of ACIR's rows in it. epochs: name of the parameter.
    """

    section: str
    where: str
    tests: str
    first: str
    second: str
    steps: tuple[str, str, str]
    epochs: str = "epochs"


PLACES = (
    Place(
        "hashing",
        "31, one layer each",
        "table_tests",
        "ACIR-{bits}bit",
        "CSQ-{bits}bit",
        ("table_1_min", "method", "ACIR"),
    ),
    Place(
        "ranking",
        "34, the network against one layer",
        "table_tests",
        "ACIR, mean of all levels",
        "CSQ, Hamming alone",
        ("table_health", "method", "ACIR"),
    ),
    Place(
        "ablations",
        "32, the network against a small one",
        "table_4_tests",
        "ACIR, pretrained stem",
        "CSQ, pretrained stem",
        ("table_4", "name", "ACIR, pretrained stem"),
    ),
    Place(
        "ablations",
        "32, both with their stem",
        "table_end_to_end_tests",
        "ACIR, end to end",
        "CSQ, end to end",
        ("table_end_to_end", "name", "ACIR, end to end"),
        "end_to_end_epochs",
    ),
)


def sentence(folder: Path, place: Place) -> str | None:
    """A verdict in words, with epochs, steps and α of ACIR; None where ``folder``, a report, has no such test."""
    file = folder / f"{place.tests}.csv"
    if not file.exists():
        return None
    record = saved.record(file)
    bits = record["parameters"]["bits"]
    tests = denominators.by_min(pd.read_csv(file))
    first, second = place.first.format(bits=bits), place.second.format(bits=bits)
    asked = tests[(tests["first"] == first) & (tests["second"] == second)]
    asked = asked[(asked["bits"] == bits) & (asked["measure"] == "ap_min")] if "measure" in asked else asked
    if asked.empty:
        return None
    test = next(asked.itertuples())
    told = [f"{record['parameters'].get(place.epochs, 'untold')} epochs", f"{_steps(folder, place, bits):.0f} steps"]
    told += [f"α = {_alpha(folder, record)}", f"{test.n_seeds:.0f} trainings"]
    return f"{place.where}: ACIR {paired.relation(test)} CSQ ({paired.size(test)}); ACIR: {', '.join(told)}"


def _steps(folder: Path, place: Place, bits: int) -> float:
    table, column, value = place.steps
    rows = pd.read_csv(folder / f"{table}.csv")
    rows = rows[rows[column] == value]
    return float((rows[rows["bits"] == bits] if "bits" in rows else rows)["steps"].max())


def _alpha(folder: Path, record: Rows) -> str:
    """α of ACIR's loss: a parameter of the run, or chosen in its table of rates, or told in a caption."""
    if "alpha" in record["parameters"]:
        return f"{record['parameters']['alpha']:g}"
    rates = pd.read_csv(folder / "table_rates.csv")
    if "alpha" in rates:
        return f"{rates[rates['chosen'] & (rates['method'] == 'ACIR')]['alpha'].iloc[0]:g}"
    table = folder / "table_2.csv"
    caption = saved.record(table)["caption"] if table.exists() else ""
    found = re.search(r"α = ([\d.]*\d)", caption)
    return found[1] if found else "untold"


def lines(dataset: str, profile: str = real.PROFILE) -> list[str]:
    """Every verdict of one dataset of the committed reports, one to a line, in the order of :data:`PLACES`."""
    base = paths.COMMITTED / "acir" / profile / dataset
    return [told for place in PLACES if (told := sentence(base / place.section, place)) is not None]


def side_by_side(*runs: Run) -> Real:
    """The verdicts of all datasets of the sample, for the notebooks of these ``runs``, which name what is read."""
    if any(run.profile != "demo" for run in runs):
        return Real((real.REAL_ALREADY,))
    parts = []
    for folder in sorted((paths.COMMITTED / "acir" / real.PROFILE).glob("*")):
        if told := lines(folder.name):
            parts.append("\n".join([f"**{facts(folder.name).title}**", "", *(f"- {line}" for line in told)]))
    return Real(tuple(parts))
