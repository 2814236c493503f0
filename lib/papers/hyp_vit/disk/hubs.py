"""An image that everybody finds: what a few points further in than all others do to a search in the ball."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import Geometry, PoincareBall, Sphere
from lib.results.markdown import markdown_table, percent
from lib.search.exact import nearest
from lib.training.methods import Fitted

SEARCHES = {"D_hyp": None, "D_cos": Sphere()}
"""How embeddings are compared; None: by the distance that the head was trained with."""


def hubs(fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, codes: np.ndarray, queries: np.ndarray) -> pd.DataFrame:
    """How often the commonest first answer is given, and where it lies; every image of ``queries`` asks all others.

    Columns method, repeat, search, recall (Recall@1), most (of all queries, those whose first answer is the commonest
    one), rest_of_it and rest (its norm, and the median of all, percent of the radius); percent.
    """
    lines = []
    for name, several in fitted.items():
        for one in several:
            points = one.embed(x[queries])
            for search, space in SEARCHES.items():
                cells = _hub(points, space or one.geometry, one.geometry, codes[queries])
                lines.append({"method": name, "repeat": one.split.repeat, "search": search} | cells)
    return pd.DataFrame(lines)


def _hub(points: Tensor, space: Geometry, home: PoincareBall, codes: np.ndarray) -> dict[str, float]:
    own = np.arange(len(points))
    first = nearest(points, points, 1, space, own, own)[1][:, 0]
    counts = torch.bincount(first, minlength=len(points))
    rest = 100 * home.c**0.5 * points.norm(dim=-1)
    commonest = counts.argmax()
    return {
        "recall": 100 * float((codes[first.numpy()] == codes).mean()),
        "most": 100 * counts[commonest].item() / len(points),
        "rest_of_it": rest[commonest].item(),
        "rest": rest.median().item(),
    }


def layout(rows: pd.DataFrame) -> str:
    """Means over the trainings as Markdown."""
    means = rows.groupby(["method", "search"], sort=False).mean(numeric_only=True)
    lines = [
        {
            "method": method,
            "search": search,
            "Recall@1": percent(row["recall"]),
            "queries with the commonest first answer": f"{row['most']:.1f} %",
            "it rests at": f"{row['rest_of_it']:.2f} %",
            "median of all": f"{row['rest']:.2f} %",
        }
        for (method, search), row in means.iterrows()
    ]
    return markdown_table(pd.DataFrame(lines))


def further(inner: float, outer: float) -> float:
    """How many times nearer, in ‖x − y‖²/(1 − c‖y‖²), a point y is that rests at ``inner`` instead of ``outer``.

    Both in percent of the radius; everything is compared by this key when one query asks.

    >>> round(further(97.0, 99.9), 1)
    29.6
    """
    return (1 - (inner / 100) ** 2) / (1 - (outer / 100) ** 2)


def sentences(rows: pd.DataFrame) -> list[str]:
    """What each head loses to its commonest answer."""
    lines = []
    for method, of_one in rows.groupby("method", sort=False):
        hyp, cosine = (of_one[of_one["search"] == search].mean(numeric_only=True) for search in SEARCHES)
        lines.append(
            f"{method}: the commonest first answer is given to {hyp['most']:.1f} % of the queries by D_hyp and to "
            f"{cosine['most']:.1f} % by D_cos; Recall@1 {hyp['recall']:.2f} and {cosine['recall']:.2f}. By D_hyp it "
            f"rests at {hyp['rest_of_it']:.2f} % of the radius, half of all at {hyp['rest']:.2f} % or further out: its "
            f"key is divided by {further(hyp['rest_of_it'], hyp['rest']):.1f} beside theirs"
        )
    return lines
