"""How a self-distillation went, how many directions features use, and what they find."""

import math
from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.figures import style


def pretraining(history: pd.DataFrame, prototypes: int) -> Figure:
    """Loss, entropies, spread and effective rank of the features over the steps, one panel each.

    history: columns step, loss, entropy, information, spread, rank, as of :class:`lib.training.dino.Distilled`;
    prototypes: their number K; log K is the highest entropy there is.
    """
    step = history["step"] + 1
    with style.house():
        figure, axes = plt.subplots(2, 2, figsize=(style.WIDTH, 4.2), sharex=True)
        loss, entropy, spread, rank = axes.flat
        _entropies(entropy, step, history, prototypes)
        for axis, column, label in (
            (loss, "loss", "loss (nats)"),
            (spread, "spread", "spread of the features"),
            (rank, "rank", "effective rank"),
        ):
            axis.plot(step, history[column], color=style.PALETTE[0])
            axis.set_ylabel(label)
        for axis in axes.flat:
            axis.set_ylim(bottom=0)
        for axis in axes[-1]:
            axis.set_xlabel("step")
        place = {"loc": "outside lower center", "ncols": 3}
        figure.legend(*entropy.get_legend_handles_labels(), title="teacher's entropy", title_fontsize=8, **place)
        plt.close(figure)
    return figure


def _entropies(axis: Axes, step: pd.Series, history: pd.DataFrame, prototypes: int) -> None:
    """How sure the teacher is of one answer, how many different answers it gives, and the most that could be."""
    mean_answer = history["entropy"] + history["information"]
    axis.axhline(math.log(prototypes), color="0.4", linestyle=":", label="log K, all equal")
    axis.plot(step, mean_answer, color=style.PALETTE[1], linestyle="--", label="of the batch's mean answer")
    axis.plot(step, history["entropy"], color=style.PALETTE[0], label="of one answer, mean")
    axis.set_ylabel("teacher's entropy (nats)")


def spectra(rows: pd.DataFrame, ranks: pd.DataFrame) -> Figure:
    """How much of the variance the first directions hold together, a curve per encoder.

    rows: columns encoder, direction (from 1), held (percent, cumulated). ranks: columns encoder, rank.
    """
    rank_of = ranks.set_index("encoder")["rank"]
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 3.2))
        for number, (encoder, part) in enumerate(rows.groupby("encoder", sort=False)):
            label = f"{encoder}: effective rank {rank_of[encoder]:.0f}"
            dashes = style.DASHES[number] or (None, None)
            axis.plot(part["direction"], part["held"], label=label, color=style.PALETTE[number], dashes=dashes)
        axis.set_xscale("log")
        axis.set_xlabel("principal directions, the widest first")
        axis.set_ylabel("share of the variance (%)")
        axis.set_ylim(0, 101)
        axis.legend(loc="lower right")
        plt.close(figure)
    return figure


def encoders(rows: pd.DataFrame, ks: Sequence[int]) -> Figure:
    """MAP@k of each encoder in both galleries, full and hollow, each with its chance as a line; one panel per k.

    rows: of :func:`.tables.values`, of one metric.
    """
    names = list(dict.fromkeys(rows["encoder"]))
    with style.house():
        size = (style.WIDTH, 1.0 + 0.3 * len(names))
        figure, axes = plt.subplots(1, len(ks), figsize=size, sharex=True, sharey=True, squeeze=False)
        for axis, k in zip(axes[0], ks, strict=True):
            for number, (gallery, part) in enumerate(rows[rows["k"] == k].groupby("gallery", sort=False)):
                color = style.PALETTE[number]
                look = {"color": color, "marker": style.MARKERS[number], "linestyle": ""}
                look["markerfacecolor"] = "white" if number else color
                heights = part["encoder"].map(names.index) + 0.12 * (2 * number - 1)
                axis.plot(part["ours"], heights, label=f"{gallery} gallery", **look)
                line = {"color": color, "dashes": style.DASHES[number + 1], "linewidth": 1.2}
                axis.axvline(part["chance"].iloc[0], label=f"chance, {gallery} gallery", **line)
            axis.set_xlim(0, 100)
            axis.set_xlabel(f"MAP@{k} (%)")
        axes[0][0].set_yticks(range(len(names)), names)
        axes[0][0].set_ylim(len(names) - 0.5, -0.5)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
