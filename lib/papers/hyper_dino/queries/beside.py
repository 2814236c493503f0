"""The idea in one picture: a query and its nearest tiles, by plain features above and with the head below."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.datasets.table import ImageTable
from lib.figures.strips import Strip
from lib.papers.hyper_dino.queries import lists
from lib.results import pictures
from lib.results.shown import Figure
from lib.results.store import Run
from lib.training.methods import Fitted

PLAIN, HEAD = "plain features", "with the head"


def answers(
    fitted: Mapping[str, Sequence[Fitted]],
    x: np.ndarray,
    images: ImageTable,
    picture: np.ndarray,
    queries: np.ndarray,
    k: int = lists.COLUMNS,
) -> pd.DataFrame:
    """The rows of :func:`.lists.answers` of each method, its name in the column method; k: a row of a strip.

    fitted: :data:`PLAIN` and :data:`HEAD` → one per fold of one fold rule.
    """
    rows = {name: lists.answers(of, x, images, picture, queries, k) for name, of in fitted.items()}
    return pd.concat([of.assign(method=name) for name, of in rows.items()], ignore_index=True)


def best_and_worst(rows: pd.DataFrame) -> list[str]:
    """The query that gains most right answers with the head, and the one that gains least or loses most."""
    right = rows.groupby(["query", "method"], sort=False)["right"].sum().unstack()
    gains = (right[HEAD] - right[PLAIN]).sort_values(ascending=False, kind="stable").index
    return list(dict.fromkeys([gains[0], gains[-1]]))


def strips(rows: pd.DataFrame, images: ImageTable, queries: Sequence[str]) -> list[Strip]:
    """A strip per query: :data:`PLAIN` names its first row of answers, :data:`HEAD` the second; no distances."""
    by_method = pd.concat([rows[rows["method"] == name] for name in (PLAIN, HEAD)])
    shown = []
    for strip in lists.strips(by_method, images, queries):
        names = {0: PLAIN, len(strip.answers) // 2: HEAD}
        found = [
            replace(answer, label=names.get(place, ""), distance=None) for place, answer in enumerate(strip.answers)
        ]
        shown.append(replace(strip, title=strip.title.partition("\n")[2], answers=found))
    return shown


def save(run: Run, shown: Sequence[Strip], rows: pd.DataFrame, group_kind: str) -> Figure:
    """Draw and write the strips as ``figure_beside``; returns the figure that a notebook shows."""
    text = (
        f"A query image at the left, its nearest images at the right: above by {PLAIN}, compared by their angle, below "
        f"{HEAD}, {run.parameters['recipe']}. No image of the query's own {group_kind} is searched. A dashed frame "
        "and a cross mark another class than the query's. Of one query of every class, drawn at random: the one that "
        "gains most right answers with the head, and the one that gains least."
    )
    figure = Figure("plain features and head", rows, text, free=lists.OF_AN_ANSWER, figure=lists.drawn(shown, "image"))
    return pictures.save(run, "figure_beside", figure, lists.drawn(lists.bare(shown), "image"))
