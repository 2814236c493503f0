"""What came out of notebook 16: sentences made from its tables."""

from typing import Any

import numpy as np
import pandas as pd

from lib.results import paired
from lib.results.markdown import points


def switches(rows: pd.DataFrame, k: int) -> list[str]:
    """How many switches change MAP@k clearly, and which; from the rows of a switch table."""
    tested = rows[(rows["k"] == k) & rows["difference"].notna()]
    clear = [test for test in tested.itertuples() if paired.relation(test) in paired.CLEAR]
    return [
        f"k = {k}: {len(clear)} of {len(tested)} switches change the score clearly",
        *(f"k = {k}: {test.method} {_by(test, 'the default')}" for test in clear),
    ]


def printed(rows: pd.DataFrame) -> list[str]:
    """Where heads end that begin as printed, beside the default; from the rows of a switch table."""
    ends = rows.drop_duplicates("method")
    ends = ends[ends["method"].str.contains("default|as printed")]
    return [
        f"{row.method}: last loss {row.loss:.2f}, {row.rim:.0f} % of the training images end at the rim"
        for row in ends.itertuples()
    ]


def knowing(lost: pd.DataFrame, method: str, kind: str) -> list[str]:
    """What knowing the query's group is worth to a method; from the rows of a leakage table."""
    return [
        f"k = {test.k}, {method}: the score with folds by {kind} {_by(test, 'that with folds by image')}"
        for test in lost[lost["method"] == method].itertuples()
    ]


def definitions(rows: pd.DataFrame, k: int) -> list[str]:
    """How large the same gain looks under each definition; from the rows of a table of definitions."""
    lines = []
    for rule, part in rows.groupby("rule", sort=False):
        gains = ", ".join(f"{points(row.gain)} ({row.definition})" for row in part.itertuples())
        lines.append(f"k = {k}, folds {rule}: the mapper's gain is {gains}")
    return lines


def choice(chosen: pd.DataFrame, on_test: str, on_validation: str, unchosen: str) -> list[str]:
    """How much more a length reports that was chosen on the test folds; from the rows of a table of choices.

    unchosen: the row of the length that was fixed beforehand; where it scores the same, the gain is no luck.
    """
    value = chosen.set_index(["choice", "k"])["value"]
    lines = [
        f"k = {k}: choosing on the test folds reports {points(value[on_test, k] - value[on_validation, k])} points "
        "over choosing on validation images"
        for k in chosen["k"].unique()
    ]
    if all(np.isclose(value[on_test, k], value[unchosen, k]) for k in chosen["k"].unique()):
        lines.append("This is no luck of the test folds: the longest, fixed beforehand, scores the same.")
    return lines


def _by(test: Any, other: str) -> str:
    """How something compares with ``other``, and by how many points."""
    return f"{paired.relation(test)} {other} ({paired.size(test)})"
