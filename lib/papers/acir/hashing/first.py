"""The first answers: how often the first is right, and macro F1 of what the nearest images vote for."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.metrics.votes import KS, macro_f1, votes
from lib.papers.acir.radius import COMMONEST
from lib.results import answers
from lib.results.markdown import markdown_table, percent
from lib.training.experiment import Voted
from lib.training.methods import Fitted


def table(several: Mapping[str, Sequence[Fitted]], x: np.ndarray, labels: np.ndarray) -> pd.DataFrame:
    """What the nearest images of the closed gallery vote for: the columns of :func:`lib.results.answers.votes`.

    x: (n, ·) what ``several`` see, labels: (n,). Queries whose class the gallery lacks are left out. Images at one
    distance stand in an order drawn by the training's seed: in that of the archive its first class would win all ties.
    """
    return answers.votes({"closed": {name: [_voted(one, x, labels) for one in ones] for name, ones in several.items()}})


def _voted(one: Fitted, x: np.ndarray, labels: np.ndarray) -> Voted:
    gallery = np.random.default_rng(one.split.seed).permutation(one.split.train)
    queries = one.split.test[np.isin(labels[one.split.test], labels[gallery])]
    voted = votes(one.embed(x[queries]), one.embed(x[gallery]), labels[gallery], one.space)
    return Voted(one.split.repeat, labels[queries], voted, len(one.split.test) - len(queries))


def commonest(query_labels: np.ndarray, gallery_labels: np.ndarray) -> float:
    """Macro F1, percent, of an answer that is always the commonest class of the gallery; both (·,).

    >>> round(commonest(np.array([0, 0, 1, 2]), np.array([0, 0, 1])), 1)
    40.0
    """
    classes, counts = np.unique(gallery_labels, return_counts=True)
    asked = query_labels[np.isin(query_labels, classes)]
    return 100 * macro_f1(asked, np.full(len(asked), classes[counts.argmax()]))


def layout(rows: pd.DataFrame, voted: pd.DataFrame, trivial: float) -> str:
    """A row per method as Markdown: mAP@1 ± over trainings (class mean), then macro F1 of the first and of majorities.

    rows: of :func:`.tables.maps`, one gallery, one length of code and what has none; voted: of :func:`table`, of
    methods with the names of ``rows``; trivial: of :func:`commonest`.
    """
    first = rows[(rows["k"] == 1) & (rows["metric"] == "ap_min")].set_index("method")
    lines = []
    for method, part in voted.groupby("method", sort=False):
        by, own = part.set_index("k"), first.loc[method]
        cells = {
            "method": method,
            "first answer": f"{_spread(own['ours'], own['seeds_spread'])} ({percent(own['class_mean'])})",
        }
        lines.append(cells | {TITLES[k]: _spread(by.loc[k, "macro_f1"], by.loc[k, "seeds_spread"]) for k in KS})
    chance = f"{percent(first['chance'].mean())} ({percent(first['class_chance'].mean())})"
    lines += [{"method": "chance", "first answer": chance}, {"method": COMMONEST, TITLES[1]: percent(trivial)}]
    return markdown_table(pd.DataFrame(lines).fillna("–"))


TITLES = answers.VOTES | {1: "macro F1, first answer"}


def _spread(value: float, spread: float) -> str:
    """A value ± its standard deviation over trainings, where there are several."""
    return percent(value) + ("" if np.isnan(spread) else f" ± {percent(spread)}")
