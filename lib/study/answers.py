"""Answers of methods: their tables, who has an answer at all, and which galleries are tested."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import pandas as pd

from lib.metrics.votes import KS, macro_f1
from lib.study.columns import HEALTH, Column, Layout
from lib.training.experiment import Voted
from lib.training.methods import Answer

CLASS_MEAN = "Class mean: over all queries of all folds, averaged per class first."
"""What captions say of a class mean, wherever one stands."""


def layout(what: str = "folds") -> Layout:
    """A line per method and rule, a column per k; ``what`` heads the column of the rule. Chance is a rule's last line.

    Beside MAP@k stands the mean over classes at the smallest and the largest k; ± is over folds, "± seeds" over
    trainings, at the largest k.
    """
    columns = [
        Column(what, "rule"),
        Column("method"),
        Column("MAP@{}", "ours", over="k", pm="spread", chance="chance"),
        Column("class mean@{}", "class_mean", over="end"),
        Column("± seeds", "seeds_spread", at=("longest", True)),
        Column("queries", "n_queries", "0"),
        Column("left out", "n_without_relevant", "0"),
    ]
    return Layout([*columns, *HEALTH], block="rule", prepare=_of_ends)


def ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of the shortest and the longest list, the smallest and the largest k."""
    return rows[rows["k"].isin([rows["k"].min(), rows["k"].max()])]


def _of_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Those of AP by min(k, R), with end, the smallest and the largest k, and whether a row is of the longest list."""
    rows = rows[rows["metric"] == "ap_min"]
    longest = rows["k"] == rows["k"].max()
    return rows.assign(longest=longest, end=rows["k"].where(longest | (rows["k"] == rows["k"].min())))


def chance_said(rows: pd.DataFrame) -> str:
    """Chance at the smallest and the largest k of rows of :func:`values`, for a caption.

    >>> chance_said(pd.DataFrame({"k": [1, 20], "chance": [12.5, 3.52]}))
    'chance is 12.5 at k = 1 and 3.5 at k = 20'
    """
    at = rows.groupby("k")["chance"].mean()
    return f"chance is {' and '.join(f'{at[k]:.1f} at k = {k}' for k in dict.fromkeys([at.index[0], at.index[-1]]))}"


def votes(archives: Mapping[str, Mapping[str, Sequence[Voted]]]) -> pd.DataFrame:
    """Macro F1 of the vote of the nearest images, over the classes that can be answered; percent.

    A class can be answered in an archive if some query of it has an answer there, an image of its class. Queries
    without one are left out and counted, as everywhere: they are no false alarms either, as every method would have
    them. Every other query counts once a training, all folds together.

    archives: archive → method → one for each split, as :func:`lib.training.experiment.votes`.

    Returns:
        Columns archive, method, k (the first answer, the majority of the first 3 and 5), macro_f1 (mean over
        trainings; NaN where no query has an answer), seeds_spread (their standard deviation), n_seeds, n_queries (all
        of them), n_without_relevant, n_classes (those of the mean).
    """
    lines = []
    for archive, method, voted in ((a, m, voted) for a, methods in archives.items() for m, voted in methods.items()):
        rows = pd.concat(
            pd.DataFrame(vote.votes, columns=list(KS)).assign(label=vote.classes, repeat=vote.repeat) for vote in voted
        )
        n_without = sum(vote.n_without_relevant for vote in voted if vote.repeat == 0)
        counts = {"n_seeds": len({vote.repeat for vote in voted}), "n_without_relevant": n_without}
        counts |= {"n_queries": int((rows["repeat"] == 0).sum()) + n_without, "n_classes": rows["label"].nunique()}
        for k in KS:
            scores = pd.Series([100 * macro_f1(part["label"], part[k]) for _, part in rows.groupby("repeat")])
            cells = {"archive": archive, "method": method, "k": k}
            lines.append(cells | {"macro_f1": scores.mean(), "seeds_spread": scores.std()} | counts)
    return pd.DataFrame(lines)


VOTES = {1: "first answer", 3: "majority of 3", 5: "majority of 5"}
"""How the votes of :data:`lib.metrics.votes.KS` are called."""
VOTED = Layout(
    [
        Column("archive"),
        Column("method"),
        *(Column(f"macro F1, {name}", "macro_f1", pm="seeds_spread", at=("k", k)) for k, name in VOTES.items()),
        Column("classes", "n_classes", "0"),
        Column("queries", "n_queries", "0"),
        Column("left out", "n_without_relevant", "0"),
    ],
    by=("archive", "method"),
)
"""The table of :func:`votes`: a line per archive and method, ± over trainings."""


FEWEST = 2
"""A gallery with answers of fewer classes is not tested: it cannot say which method tells classes apart."""

Answered = TypeVar("Answered", bound=Mapping[str, Sequence[Answer]])
"""Method → its answer on each split."""


def n_classes(by_method: Mapping[str, Sequence[Answer]]) -> int:
    """Of how many classes a query has an answer in a gallery: an image of its class is there."""
    parts = [answer.per_query for answer in next(iter(by_method.values()))]
    answered = [part.classes[part.values["ap_min"].notna().any(axis=1).to_numpy()] for part in parts]
    return len(np.unique(np.concatenate(answered)))


def counted(rows: pd.DataFrame, galleries: Mapping[str, Answered], column: str) -> pd.DataFrame:
    """``rows`` with n_classes, of how many classes a query has an answer in the gallery that ``column`` names."""
    counts = {name: n_classes(by_method) for name, by_method in galleries.items()}
    return rows.assign(n_classes=rows[column].map(counts))


def fair(galleries: Mapping[str, Answered]) -> dict[str, Answered]:
    """The galleries in which queries of at least :data:`FEWEST` classes have an answer: these are tested.

    All of them if there is none; :func:`sentences` say then that nothing can be concluded.
    """
    return {name: answers for name, answers in galleries.items() if n_classes(answers) >= FEWEST} or dict(galleries)


def sentences(rows: pd.DataFrame) -> list[str]:
    """How many queries of each gallery have no answer, and if too few classes have one to conclude anything.

    rows: columns gallery or archive, n_queries, n_without_relevant, of which the first row of each gallery counts, and
    n_classes if it was counted.

    >>> row = {"gallery": "open", "n_queries": 10, "n_without_relevant": 4, "n_classes": 1}
    >>> print("\\n".join(sentences(pd.DataFrame([row]))))
    open: 4 of 10 queries have no image of their class there, and are left out
    open: only one class has any answer there; nothing can be concluded
    >>> sentences(pd.DataFrame([row | {"n_without_relevant": 0, "n_classes": 8}]))
    ['every query has an image of its class to find']
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
    return lines or ["every query has an image of its class to find"]
