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
from lib.papers.hyp_vit.names import HYP
from lib.papers.hyp_vit.retrieval import frozen
from lib.papers.hyp_vit.retrieval import tables as recalls
from lib.results import answers
from lib.results.markdown import markdown_table, percent, points
from lib.search.exact import nearest
from lib.training.methods import Fitted

D_HYP, D_COS, D_FLAT = "D_hyp", "D_cos", "flat"
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
            spaces = {D_HYP: (embedded, one.geometry), D_COS: (embedded, Sphere()), D_FLAT: (e, Euclidean())}
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
    """What each head loses to its commonest answer and, where Hyp is beside it, to what it learnt; means of trainings.

    rows: of :func:`hubs`, of any searches among which are D_hyp and D_cos.
    """
    lines = []
    for method, of_one in rows.groupby("method", sort=False):
        by = of_one.groupby("search", sort=False).mean(numeric_only=True)
        hyp, lost = by.loc[D_HYP], by.loc[D_COS, "recall"] - by.loc[D_HYP, "recall"]
        told = ", ".join(f"{row.most:.1f} % by {row.Index} (Recall@1 {row.recall:.2f})" for row in by.itertuples())
        lines.append(
            f"{method}: the commonest first answer is given to {told}. By D_hyp it rests at {hyp['rest_of_it']:.2f} % "
            f"of the radius, half of all at {hyp['rest']:.2f} % or further out: for a query at the same flat "
            f"distance from both it counts as {further(hyp['rest_of_it'], hyp['rest']):.1f} times nearer. D_cos minus "
            f"D_hyp: {points(lost)} points"
        )
        if lost >= LOST:
            lines[-1] += f", of which this one answer can be the cause of {min(hyp['most'], lost):.1f} at most"
    return lines + in_short(rows)


def in_short(rows: pd.DataFrame) -> list[str]:
    """How much less than Hyp each other head finds by D_hyp, and how much of it D_cos gets back from its networks."""
    recall = rows.groupby(["method", "search"], sort=False)["recall"].mean()
    methods = recall.index.unique("method")
    return [_beside_hyp(recall, name) for name in methods if name != HYP and HYP in methods]


def _beside_hyp(recall: pd.Series, method: str) -> str:
    whole, back = recall[HYP, D_HYP] - recall[method, D_HYP], recall[method, D_COS] - recall[method, D_HYP]
    told = f'{HYP} minus "{method}", both by D_hyp: {points(whole)} points of Recall@1'
    if whole <= 0:
        return told
    left = f"{points(whole - back)} are left: lost in what was learnt" if whole > back else "nothing is left"
    return f"{told}; D_cos gets {points(back)} back from the same networks, {left}"


def tests(fitted: Mapping[str, Sequence[Fitted]], x: np.ndarray, parts: Halves, seed: int = 0) -> pd.DataFrame:
    """Paired tests of Recall@1 over categories and trainings: D_cos against D_hyp, and Hyp against others by D_cos.

    The first are of the same networks; the second say whether anything is left that the search does not account for.
    """
    cosine = {
        f"{name}{frozen.BY_COSINE}": [replace(one, method=frozen.by_cosine([one.method])[0]) for one in several]
        for name, several in fitted.items()
    }
    found = {recalls.UNSEEN: frozen.asked(dict(fitted) | cosine, x, parts.codes, [1])}
    pairs = [(by_cosine, name) for by_cosine, name in zip(cosine, fitted, strict=True)]
    pairs += [(HYP, by_cosine) for by_cosine, name in pairs if HYP in fitted and name != HYP]
    return answers.compare(found, parts.names, pairs, [1], metric=recalls.METRIC, seed=seed).drop(columns="rule")
