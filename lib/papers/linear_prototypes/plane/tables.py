"""Prototypes in a plane: what a change of the comparison changes, and the static picture of notebook 40."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from lib.geometry import PoincareBall
from lib.losses.linear_prototypes import NAMES, Comparison
from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.plane.experiment import LIMIT, entrance, place, support_of
from lib.results.shown import Figure

CURVATURES = (0.0, 1.0, 2.0)


def agreement(v: Tensor, labels: Tensor, k: int, seed: int, times: int = 50) -> pd.DataFrame:
    """How often images outside the support get another class than by squared Euclidean distance, over many supports.

    Args:
        v: (n, 2) embeddings; for "poincare" they are put into the ball of c = 1 first.
        labels: (n,) classes. k: support images of each class. seed: of the supports. times: how many.

    Returns:
        Columns comparison, right and changed (percent of the queries).
    """
    chosen = {name: [] for name in NAMES}
    truth = []
    for number in range(times):
        support = support_of(labels, entrance(len(v), -1, seed + number), k)
        queries = np.setdiff1d(np.arange(len(v)), support.numpy())
        truth.append(labels[queries])
        for name in NAMES:
            space = PoincareBall(1.0)
            h = space.project(space.exp0(v)) if name == "poincare" else v
            comparison = Comparison(name)
            nearest = comparison.dissimilarity(h[queries], comparison.prototypes(h[support])).argmin(-1)
            chosen[name].append(nearest)
    classes = {name: torch.cat(parts) for name, parts in chosen.items()}
    return pd.DataFrame(
        {
            "comparison": name,
            "right": 100 * (given == torch.cat(truth)).double().mean().item(),
            "changed": 100 * (given != classes[NAMES[0]]).double().mean().item(),
        }
        for name, given in classes.items()
    )


def figure_plane(v: Tensor, labels: Tensor, classes: Sequence[str], query: int, seed: int) -> Figure:
    """The picture at three curvatures, K = 5 and temperature 1, and the probabilities of the query in each.

    Arguments as :func:`lib.papers.linear_prototypes.plane.sliders.explore`.
    """
    order = entrance(len(v), query, seed)
    planes = {c: place(v, labels, order, 5, 1.0, c) for c in CURVATURES}
    rows = pd.DataFrame(
        {"c": c, "class": classes[code], "p": chance}
        for c, plane in planes.items()
        for code, chance in enumerate(plane.chances[query].tolist())
    )
    text = (
        "A head with two outputs, K = 5, temperature 1: decision regions by squared distance at three curvatures (c = "
        "0 is flat). Above: the class that the query is given, and how probable that is. For teaching; no image "
        "retrieval is measured here."
    )
    drawn = figures.curvatures(planes, labels.numpy(), classes, query, LIMIT)
    return Figure("decision regions in a plane", rows, text, figure=drawn)
