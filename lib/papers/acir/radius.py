"""Table 6: what a ball around a class centre answers, and whether codes are over-centralised."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from lib.geometry.points import Points
from lib.metrics import hashing
from lib.results.markdown import markdown_table, percent


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


def centralisation(
    query: Points, gallery: Points, query_labels: np.ndarray, gallery_labels: np.ndarray
) -> dict[str, float]:
    """How close the codes of a class lie: means over the classes of the archive.

    distinct: different codes of a class; largest: images with the commonest of them, percent of the class; spread: mean
    distance of two images of a class, in bits; apart: the same of images of two classes; answered: queries with
    the code of a class centre, percent, which R = 0 answers; right: of these, how many get their own class, percent.
    """
    packed = hashing.pack(gallery)
    classes = np.unique(gallery_labels)
    distance = hashing.hamming(packed, packed).astype(float)
    counts = [np.unique(packed[gallery_labels == c], axis=0, return_counts=True)[1] for c in classes]
    inner = [distance[gallery_labels == c][:, gallery_labels == c] for c in classes]
    spreads = [block.sum() / (len(block) * (len(block) - 1)) for block in inner if len(block) > 1]
    zero = by_radius(query, gallery, query_labels, gallery_labels, [0]).iloc[0]
    n = zero["n_queries"]
    answered = 100 * (n - zero["n_rejected"]) / n
    return {
        "distinct": float(np.mean([len(some) for some in counts])),
        "largest": float(np.mean([100 * some.max() / some.sum() for some in counts])),
        "spread": float(np.mean(spreads)) if spreads else np.nan,
        "apart": float(distance[gallery_labels[:, None] != gallery_labels].mean()),
        "answered": float(answered),
        "right": float(100 * zero["accuracy"] / answered) if answered else np.nan,
    }


def means(rows: pd.DataFrame) -> pd.DataFrame:
    """Over trainings, a row per loss (and radius): the mean of each column, n_seeds, and ± of the accuracy, if any."""
    keys = [name for name in ("method", "radius") if name in rows]
    numbers = [name for name in rows.columns if name not in (*keys, "repeat")]
    grouped = rows.groupby(keys, sort=False)
    more = {"n_seeds": grouped["repeat"].nunique()}
    if "accuracy" in rows:
        more["accuracy_spread"] = grouped["accuracy"].std()
    return grouped[numbers].mean().assign(**more).reset_index()


def layout(rows: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Table 6 as Markdown: a row per radius of ours, published columns first; theirs may be empty.

    A cell is ``accuracy (precision / recall)``; ours has ± of the accuracy over trainings. The trivial answer has a
    column, and does not count among those that leave queries in no ball.
    """
    table = means(rows)
    theirs = theirs[theirs["radius"].isin(table["radius"])]
    columns = {f"{name}, published": part for name, part in theirs.groupby("method", sort=False)}
    ours = table.replace({"method": {name: f"{name}, ours" for name in set(table["method"]) - {COMMONEST}}})
    columns |= dict(list(ours.groupby("method", sort=False)))
    wide = pd.DataFrame(
        {
            name: {
                row.radius: f"{row.accuracy:.1f}{_spread(row)} ({row.precision:.1f} / {row.recall:.1f})"
                for row in part.itertuples()
            }
            for name, part in columns.items()
        }
    )
    rejected = table[table["method"] != COMMONEST].groupby("radius")["n_rejected"]
    wide["queries in no ball"] = [f"{rejected.min()[r]:.0f} to {rejected.max()[r]:.0f}" for r in wide.index]
    return markdown_table(wide.fillna("–").rename_axis("R").reset_index())


def _spread(row: Any) -> str:
    """± of the accuracy, where there are several trainings."""
    known = getattr(row, "accuracy_spread", np.nan)
    return "" if np.isnan(known) else f" ± {known:.1f}"


def leads(rows: pd.DataFrame, ours: str = "ACIR", theirs: str = "CSQ") -> list[str]:
    """How far ``ours`` leads in accuracy at the smallest and the largest ball, training by training.

    rows: of :func:`by_radius`, with method and repeat.
    """
    by = rows.pivot_table(index=["radius", "repeat"], columns="method", values="accuracy")
    lead = by[ours] - by[theirs]
    radii = rows["radius"].unique()
    return [
        f"R = {r}: {ours} is above {theirs} in {int((lead[r] > 0).sum())} of {len(lead[r])} trainings "
        f"({lead[r].min():+.1f} to {lead[r].max():+.1f} points)"
        for r in (radii.min(), radii.max())
    ]


def beside_commonest(rows: pd.DataFrame) -> list[str]:
    """Accuracy in the largest ball, every training's, beside always the commonest class.

    rows: of :func:`by_radius`, with method and repeat, and :func:`commonest`.
    """
    last = rows[rows["radius"] == rows["radius"].max()]
    trivial = last.loc[last["method"] == COMMONEST, "accuracy"].mean()
    told = [
        f"{name} {part['accuracy'].mean():.1f} ({part['accuracy'].min():.0f} to {part['accuracy'].max():.0f})"
        for name, part in last[last["method"] != COMMONEST].groupby("method", sort=False)
    ]
    radius = f"R = {last['radius'].iloc[0]}, accuracy (lowest to highest training)"
    return [f"{radius}: {', '.join(told)}; {COMMONEST} {trivial:.1f}"]


def centralisation_layout(rows: pd.DataFrame) -> str:
    """How close the codes of a class lie, as Markdown; rows: of :func:`centralisation`, with method and repeat."""
    lines = [
        {
            "method": row.method,
            "distinct codes of a class": f"{row.distinct:.1f}",
            "images with the commonest": f"{row.largest:.0f} %",
            "bits between two of a class": f"{row.spread:.2f}",
            "of two classes": f"{row.apart:.2f}",
            "queries answered at R = 0": percent(row.answered),
            "of these right": percent(row.right),
        }
        for row in means(rows).itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def claims(rows: pd.DataFrame, ours: str = "ACIR", theirs: str = "CSQ") -> list[str]:
    """What the paper says of Table 6, looked up in a table of one dataset (AC-19).

    rows: columns method, radius, accuracy, precision, recall in percent, of two methods at the same radii, from 0 on.
    """
    kinds = ["accuracy", "precision", "recall"]
    by = {name: part.set_index("radius").sort_index()[kinds] for name, part in rows.groupby("method")}
    a, b = by[ours], by[theirs]
    step = b.loc[1] - b.loc[0]
    last = a.index[-1]
    lead = a.loc[last, "accuracy"] - b.loc[last, "accuracy"]
    return [
        f"from R = 0 to 1, {theirs} changes by {step['precision']:+.1f} points of precision and "
        f"{step['recall']:+.1f} of recall, {ours} by {a.loc[1, 'precision'] - a.loc[0, 'precision']:+.1f} and "
        f"{a.loc[1, 'recall'] - a.loc[0, 'recall']:+.1f}",
        f"{ours} is above {theirs} in accuracy {_from(a['accuracy'] - b['accuracy'])}, in recall "
        f"{_from(a['recall'] - b['recall'])}",
        f"at R = {last} {ours} is {abs(lead):.1f} points {'above' if lead > 0 else 'below'} {theirs} in accuracy",
    ]


def _from(difference: pd.Series) -> str:
    """From which radius on a difference is positive to the end.

    >>> _from(pd.Series([-1.0, 2.0, -1.0, 3.0, 3.0])), _from(pd.Series([1.0, -1.0]))
    ('from R = 3 on', 'not at the largest R')
    """
    below = difference.index[difference <= 0]
    if below.empty:
        return "at every R"
    if below[-1] == difference.index[-1]:
        return "not at the largest R" if (difference > 0).any() else "at no R"
    return f"from R = {difference.index[difference.index.get_loc(below[-1]) + 1]} on"
