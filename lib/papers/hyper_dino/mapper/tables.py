"""Numbers about the training of Hyper-DINO's mapper: what the open choices of the loss do, and how the loss falls."""

from collections.abc import Mapping, Sequence

import pandas as pd
import torch
from torch import Tensor

from lib.geometry import Geometry
from lib.losses import hyper_dino
from lib.papers.hyper_dino.mapper import figures
from lib.results.shown import Figure
from lib.training.fit import Schedule
from lib.training.methods import Fitted


def choices(h: Tensor, labels: Tensor, geometry: Geometry, m0: float, alpha: float) -> pd.DataFrame:
    """The loss of one embedding under the four readings of erratum HD-9.

    Args:
        h: (n, d) embedding.
        labels: (n,) integer classes.
        geometry: where the distances are measured.
        m0, alpha: of the margin.

    Returns:
        Columns self_pairs, detach_mean, positive (L_pos), margin, negative (L_neg), and outward: by how much L_neg
        falls per unit of s, when the embedding h grows to (1 + s)·h. Negative: L_neg asks it to shrink.
    """
    rows = []
    for self_pairs in (False, True):
        for detach_mean in (True, False):
            scale = torch.ones((), dtype=h.dtype, requires_grad=True)
            options = {"m0": m0, "alpha": alpha, "self_pairs": self_pairs, "detach_mean": detach_mean}
            loss = hyper_dino.contrastive(scale * h, labels, geometry, **options)
            (slope,) = torch.autograd.grad(loss.negative, scale)
            values = {"positive": loss.positive, "margin": loss.margin, "negative": loss.negative, "outward": -slope}
            numbers = {name: value.item() for name, value in values.items()}
            rows.append({"self_pairs": self_pairs, "detach_mean": detach_mean} | numbers)
    return pd.DataFrame(rows)


def curves(fitted: Mapping[str, Sequence[Fitted]]) -> pd.DataFrame:
    """How the training loss fell: columns head, fold, epoch, iteration, loss; ``fitted``: head → one per split.

    ``loss`` is the mean over an epoch, ``iteration`` the number of batches seen at its end.
    """
    rows = [
        (name, one.split.fold, epoch, epoch * one.method.schedule.steps(len(one.split.train)), loss)
        for name, several in fitted.items()
        for one in several
        for epoch, loss in enumerate(one.history, start=1)
    ]
    return pd.DataFrame(rows, columns=["head", "fold", "epoch", "iteration", "loss"])


def verdicts(rows: pd.DataFrame) -> list[str]:
    """One sentence per head: in how many folds the last epoch's loss is below half of the first one's."""
    lines = []
    for head, part in rows.groupby("head", sort=False):
        ends = part.sort_values("epoch").groupby("fold")["loss"].agg(["first", "last"])
        halved = (ends["last"] < ends["first"] / 2).sum()
        lines.append(f"{head}: the loss more than halves in {halved} of {len(ends)} folds")
    return lines


def figure_2(rows: pd.DataFrame, batch_size: int) -> Figure:
    """Fig. 2, the loss over the iterations, from the rows of :func:`curves`."""
    epochs, published = rows["epoch"].max(), Schedule().epochs
    text = (
        "Training loss over iterations, the mean of each epoch: mean over the folds, band from the lowest to the "
        f"highest of {rows['fold'].nunique()} folds by image; {epochs} epochs (published: {published}) with batches "
        f"of {batch_size}. The paper draws the loss of its own training sets and prints no numbers, so shapes can be "
        "compared, values cannot."
    )
    return Figure("training loss", rows, text, figure=figures.loss_curves(rows))
