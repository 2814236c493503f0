"""Prototypes in a plane: what a change of the comparison changes, and the static picture of notebook 40."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure
from torch import Tensor

from lib.geometry import PoincareBall
from lib.losses.linear_prototypes import NAMES, Comparison
from lib.papers.linear_prototypes import figures
from lib.papers.linear_prototypes.plane.experiment import LIMIT, entrance, place, support_of
from lib.results.markdown import markdown_table
from lib.results.store import Run

CURVATURES = (0.0, 1.0, 2.0)


def agreement(v: Tensor, labels: Tensor, k: int, seed: int, times: int = 50) -> pd.DataFrame:
    """How often images outside the support get another class than by squared Euclidean distance, over many supports.

    Args:
        v: (n, 2) embeddings; for "poincare" they are put into the ball of c = 1 first.
        labels: (n,) classes. k: support images of each class. seed: of the supports. times: how many.

    Returns:
        Columns comparison, right and changed (percent of the images that ask).
    """
    found = {name: [] for name in NAMES}
    truth = []
    for number in range(times):
        support = support_of(labels, entrance(len(v), -1, seed + number), k)
        asks = np.setdiff1d(np.arange(len(v)), support.numpy())
        truth.append(labels[asks])
        for name in NAMES:
            space = PoincareBall(1.0)
            h = space.project(space.exp0(v)) if name == "poincare" else v
            comparison = Comparison(name)
            chosen = comparison.dissimilarity(h[asks], comparison.prototypes(h[support])).argmin(-1)
            found[name].append(chosen)
    answers = {name: torch.cat(chosen) for name, chosen in found.items()}
    return pd.DataFrame(
        {
            "comparison": name,
            "right": 100 * (chosen == torch.cat(truth)).double().mean().item(),
            "changed": 100 * (chosen != answers[NAMES[0]]).double().mean().item(),
        }
        for name, chosen in answers.items()
    )


def save_plane(run: Run, v: Tensor, labels: Tensor, classes: Sequence[str], query: int, seed: int) -> Figure:
    """Write and return the picture at three curvatures, K = 5 and temperature 1."""
    order = entrance(len(v), query, seed)
    planes = {c: place(v, labels, order, 5, 1.0, c) for c in CURVATURES}
    figure = figures.curvatures(planes, labels.numpy(), classes, query, LIMIT)
    rows = pd.DataFrame(
        {"c": c, "class": classes[code], "p": chance}
        for c, plane in planes.items()
        for code, chance in enumerate(plane.chances[query].tolist())
    )
    text = (
        "A head with two outputs, K = 5, temperature 1: decision regions by squared distance at three curvatures (c = "
        "0 is flat). Numbers: the probabilities of the query. For teaching; no image retrieval is measured here."
    )
    run.save_figure("figure_plane", f"Linear prototypes in a plane on {run.dataset}", figure, rows, text)
    return figure


def save_agreement(run: Run, rows: pd.DataFrame) -> None:
    """Write the table of :func:`agreement`."""
    text = (
        "Images outside the support, K = 5, 50 random supports, percent: given to their own class, and given to "
        "another class than by squared Euclidean distance. A head with two outputs, where directions matter most."
    )
    title = f"Linear prototypes, comparisons in a plane on {run.dataset}"
    run.save_table("table_agreement", title, rows, markdown_table(rows.round(2)), text)
