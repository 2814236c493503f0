"""Galleries in which queries of too few classes have an answer: they are shown, counted, and not tested."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from lib.training.methods import Answer

FEWEST = 2
"""Where queries of fewer classes have an answer, a gallery is not tested: it cannot say who tells classes apart."""

Answered = TypeVar("Answered", bound=Mapping[str, Sequence[Answer]])
"""Method → its answer on each split."""


def n_classes(by_method: Mapping[str, Sequence[Answer]]) -> int:
    """Of how many classes a query has an answer in a gallery: an image of its class is there."""
    several = next(iter(by_method.values()))
    asked = (part.per_query.classes[part.per_query.values["ap_min"].notna().any(axis=1).to_numpy()] for part in several)
    return len(np.unique(np.concatenate(list(asked))))


def counted(rows: pd.DataFrame, found: Mapping[str, Answered], column: str) -> pd.DataFrame:
    """``rows`` with n_classes, of how many classes a query has an answer in the gallery that ``column`` names."""
    return rows.assign(n_classes=rows[column].map({name: n_classes(by_method) for name, by_method in found.items()}))


def fair(found: Mapping[str, Answered]) -> dict[str, Answered]:
    """Those galleries of ``found`` in which queries of at least :data:`FEWEST` classes have an answer: what is tested.

    All of them where there is none; :func:`left_out` says then that nothing can be concluded.
    """
    return {name: of for name, of in found.items() if n_classes(of) >= FEWEST} or dict(found)


def left_out(rows: pd.DataFrame) -> list[str]:
    """How many queries of each gallery have no answer, and where too few classes have one to conclude anything.

    rows: columns gallery or archive, n_queries, n_without_relevant, of which the first row of each gallery counts, and
    n_classes where it was counted. No sentence where every query has an answer.

    >>> row = {"gallery": "open", "n_queries": 10, "n_without_relevant": 4, "n_classes": 1}
    >>> print("\\n".join(left_out(pd.DataFrame([row]))))
    open: 4 of 10 queries have no image of their class there, and are left out
    open: only one class has any answer there; nothing can be concluded
    """
    column, lines = "gallery" if "gallery" in rows else "archive", []
    for name, part in rows.groupby(column, sort=False):
        first = part.iloc[0]
        if first["n_without_relevant"]:
            lost = f"{int(first['n_without_relevant'])} of {int(first['n_queries'])}"
            lines.append(f"{name}: {lost} queries have no image of their class there, and are left out")
        if (classes := first.get("n_classes", FEWEST)) < FEWEST:
            which = "only one class has any answer there" if classes == 1 else "no class has an answer there"
            lines.append(f"{name}: {which}; nothing can be concluded")
    return lines


def sentences(rows: pd.DataFrame) -> list[str]:
    """:func:`left_out`, or that there is nobody to name.

    >>> sentences(pd.DataFrame([{"gallery": "closed", "n_queries": 10, "n_without_relevant": 0}]))
    ['every query has an image of its class to find']
    """
    return left_out(rows) or ["every query has an image of its class to find"]
