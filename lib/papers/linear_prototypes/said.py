"""Paired tests as sentences: the reference is named once, and each rival has a line."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from lib.papers.linear_prototypes.retrieval.experiment import PAPER
from lib.results import paired
from lib.results.markdown import points

WORDS = {"is better than": "better", "is worse than": "worse", "is not clearly different from": "not clearly different"}
"""What :func:`lib.results.paired.relation` says, where the other one is named above."""

NAMES = {PAPER: "the paper's head, trained with squared Euclidean and searched by cosine"}
"""How references are called in a sentence."""


def against(tests: pd.DataFrame) -> list[str]:
    """How each rival compares in each gallery and at each k, a line each; a reference of several is named above them.

    tests: as :func:`lib.results.paired.together` gives them, with columns rule (the gallery) and k where there are
    several.

    >>> test = {"second": "flat", "p_holm": 0.01, "p_floor": 0.002, "n_units": 10, "n_tests": 2, "low": 1.5, "high": 3}
    >>> rows = [test | {"first": name, "rule": "open", "k": 1, "difference": 2.5} for name in ("ball", "NCA")]
    >>> print("\\n".join(against(pd.DataFrame(rows))))
    Against flat:
      ball: open, k = 1 better (+2.50 points, +1.50 to +3.00)
      NCA: open, k = 1 better (+2.50 points, +1.50 to +3.00)
    """
    lines = []
    for second, part in tests.groupby("second", sort=False):
        name, alone = NAMES.get(second, second), part["first"].nunique() == 1
        lines += [] if alone else [f"Against {name}:"]
        for first, rival in part.groupby("first", sort=False):
            head = f"{first} against {name}" if alone else f"  {first}"
            lines.append(f"{head}: {'; '.join(_outcomes(rival.itertuples()))}")
    return lines


def _outcomes(tests: Iterable[Any]) -> Iterable[str]:
    for test in tests:
        place = [getattr(test, name) for name in ("rule",) if hasattr(test, name)]
        where = ", ".join([*place, *([f"k = {test.k}"] if hasattr(test, "k") else [])])
        outcome = WORDS.get(paired.relation(test), "cannot be told apart")
        known = f"{points(test.difference)} points, {paired.interval(test.low, test.high)}"
        yield f"{where} {outcome} ({known})".strip()
