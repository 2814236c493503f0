"""Table 6: what a ball around a class centre answers."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.geometry.points import Points
from lib.metrics import hashing
from lib.papers.acir import published
from lib.study.columns import printed
from lib.study.markdown import markdown_table


def by_radius(
    query: Points, gallery: Points, query_labels: np.ndarray, gallery_labels: np.ndarray, radii: Sequence[int]
) -> pd.DataFrame:
    """The columns of :func:`lib.metrics.hashing.by_centre` in percent, for codes ``(q, bits)`` and ``(m, bits)``.

    Queries of a class that the archive has no image of, and so no centre, are left out and counted (n_left_out).
    """
    classes, centres = hashing.centres(gallery, gallery_labels)
    known = np.isin(query_labels, classes)
    distance = hashing.hamming(hashing.pack(query)[known], centres)
    frame = hashing.by_centre(distance, query_labels[known], classes, radii)
    frame[["accuracy", "precision", "recall"]] *= 100
    return frame.assign(n_left_out=int((~known).sum()))


COMMONEST = "always the commonest class"
"""The trivial answer of Table 6: the class of which the archive has most images, whatever the query and the ball."""


def commonest(query_labels: np.ndarray, gallery_labels: np.ndarray, radii: Sequence[int]) -> pd.DataFrame:
    """:data:`COMMONEST` at every radius: the columns of :func:`by_radius`, method and repeat (one, 0).

    As there, the precision of a class that nothing is given to counts 0, and queries without a class in the archive are
    left out. Of several commonest classes it is the first.
    """
    classes, counts = np.unique(gallery_labels, return_counts=True)
    known = np.isin(query_labels, classes)
    distance = np.tile(np.arange(len(classes)) != counts.argmax(), (int(known.sum()), 1)).astype(int)
    frame = hashing.by_centre(distance, query_labels[known], classes, radii)
    frame[["accuracy", "precision", "recall"]] *= 100
    return frame.assign(n_left_out=int((~known).sum()), method=COMMONEST, repeat=0)


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Over trainings (repeat), a row per method (and radius): the mean of each column, and ``<column>_spread``.

    Of four decimals, as a csv has them: who reads the csv gets the same table.
    """
    keys = [name for name in ("method", "radius") if name in rows]
    grouped = rows.drop(columns="repeat").round(4).groupby(keys, sort=False)
    return grouped.mean().join(grouped.std().add_suffix("_spread")).reset_index()


def table_6(rows: pd.DataFrame) -> str:
    """Table 6 as Markdown: a row per radius of ours, published columns first.

    A cell is ``accuracy (precision / recall)``; ours has ± of the accuracy over trainings. The trivial answer has a
    column, and does not count among those that leave queries in no ball.
    """
    ours = means(rows)
    theirs = published.radii()
    theirs = theirs[theirs["radius"].isin(ours["radius"])].assign(whose="published")
    known = ours.assign(whose=ours["method"].map(lambda name: "" if name == COMMONEST else "ours"))
    wide: dict[str, dict[int, str]] = {}
    for row in pd.concat([theirs, known]).itertuples():
        numbers = (row.accuracy, row.accuracy_spread, row.precision, row.recall)
        accuracy, spread, precision, recall = (printed(number, "1") for number in numbers)
        name = f"{row.method}, {row.whose}".removesuffix(", ")
        cell = f"{accuracy}{f' ± {spread}' * (spread != '–')} ({precision} / {recall})"
        wide.setdefault(name, {})[row.radius] = cell
    rejected = ours[ours["method"] != COMMONEST].groupby("radius")["n_rejected"].agg(["min", "max"])
    wide["queries in no ball"] = {r: f"{low:.0f} to {high:.0f}" for r, (low, high) in rejected.iterrows()}
    return markdown_table(pd.DataFrame(wide).fillna("–").rename_axis("R").reset_index())
