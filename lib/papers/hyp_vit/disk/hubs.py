"""An image that everybody finds: what a few points further in than all others do to a search in the ball."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.datasets.categories import Halves
from lib.geometry import Euclidean, Geometry, Sphere, clip
from lib.metrics import retrieval
from lib.papers.hyp_vit.retrieval import frozen
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.results import answers
from lib.results.markdown import markdown_table, percent, points
from lib.search.exact import nearest
from lib.training.methods import Fitted

HYP, COSINE, FLAT = "D_hyp", "D_cos", "flat"
"""How one network is searched: its points in the ball by D_hyp or D_cos, or its outputs by their flat distance."""


LOST = 1.0
"""Points of Recall@1 from which on it is asked what they were lost to."""


def hubs(fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, codes: np.ndarray, queries: np.ndarray) -> pd.DataFrame:
    """How often the commonest first answer is given, and where it lies; every image of ``queries`` asks all others.

    Columns method, repeat, search, recall (Recall@1, of equally near answers its expected value), most (of all queries,
    those whose first answer is the commonest one), rest_of_it and rest (norm in the ball of that answer, and the median
    of all, percent of the radius); percent.
    """
    lines = []
    for name, several in fitted.items():
        for one in several:
            embedded, e = one.embed(x[queries]), outputs(one, x[queries])
            rest = 100 * one.geometry.c**0.5 * embedded.norm(dim=-1)
            spaces = {HYP: (embedded, one.geometry), COSINE: (embedded, Sphere()), FLAT: (e, Euclidean())}
            for search, (given, space) in spaces.items():
                cells = _hub(given, space, codes[queries], rest)
                lines.append({"method": name, "repeat": one.split.repeat, "search": search} | cells)
    return pd.DataFrame(lines)


@torch.inference_mode()
def outputs(one: Fitted, x: np.ndarray) -> Tensor:
    """What the head hands to exp0, (n, d): vectors of flat space, clipped where the head clips."""
    e = one.network.linear(torch.from_numpy(one.reduction(x)))
    radius = one.network.clip_radius
    return e if radius is None else clip(e, radius)


def _hub(points: Tensor, space: Geometry, codes: np.ndarray, rest: Tensor) -> dict[str, float]:
    """The commonest first answer among ``points: (n, d)``; codes, rest: (n,) category and norm of each.

    Of equally near answers the first in the files is counted as given; recall is the mean over their orders.
    """
    own = np.arange(len(points))
    first = nearest(points, points, 1, space, own, own)[1][:, 0]
    hits = retrieval.evaluate(points, points, codes, codes, space, (1,), own, own).values["hit_rate", 1]
    counts = torch.bincount(first, minlength=len(points))
    commonest = counts.argmax()
    return {
        "recall": 100 * float(hits.mean()),
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
    """What each head loses to its commonest answer; means over the trainings, of the searches that the rows have."""
    lines = []
    for method, of_one in rows.groupby("method", sort=False):
        by = of_one.groupby("search", sort=False).mean(numeric_only=True)
        hyp, lost = by.loc[HYP], by.loc[COSINE, "recall"] - by.loc[HYP, "recall"]
        told = ", ".join(f"{row.most:.1f} % by {row.Index} (Recall@1 {row.recall:.2f})" for row in by.itertuples())
        lines.append(
            f"{method}: the commonest first answer is given to {told}. By D_hyp it rests at {hyp['rest_of_it']:.2f} % "
            f"of the radius, half of all at {hyp['rest']:.2f} % or further out: its key is divided by "
            f"{further(hyp['rest_of_it'], hyp['rest']):.1f} beside theirs. D_cos minus D_hyp: {points(lost)} points"
        )
        if lost >= LOST:
            lines[-1] += f", of which this one answer can be the cause of {min(hyp['most'], lost):.1f} at most"
    return lines


def tests(fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, parts: Halves, seed: int = 0) -> pd.DataFrame:
    """Paired tests of Recall@1 by D_cos against D_hyp, on the same networks, over categories and trainings."""
    cosine = {
        name: [replace(one, method=by) for one in several for by in frozen.by_cosine([one.method])]
        for name, several in fitted.items()
    }
    both = dict(fitted) | {f"{name}{frozen.BY_COSINE}": several for name, several in cosine.items()}
    found = {recalls.UNSEEN: frozen.asked(both, x, parts.codes, [1])}
    pairs = [(f"{name}{frozen.BY_COSINE}", name) for name in fitted]
    return answers.compare(found, parts.names, pairs, [1], metric=recalls.METRIC, seed=seed).drop(columns="rule")
