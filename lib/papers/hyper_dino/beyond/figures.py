"""Figures beyond the Hyper-DINO paper: norms, leakage, galleries."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.figures import style


def norms(rows: pd.DataFrame, settled: Mapping[str, float]) -> Figure:
    """How far from the centre the embeddings lie.

    rows: columns method, norm, share (percent of the embeddings in a bin); settled: method → the norm at which the
    loss of negative pairs becomes 0, drawn as a vertical line.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 3.0))
        for number, (method, part) in enumerate(rows.groupby("method", sort=False)):
            look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
            axis.plot(part["norm"], part["share"], drawstyle="steps-mid", label=method, linewidth=1.4, **look)
            if method in settled:
                label = f"{method}: classes just at the margin ({settled[method]:.3f})"
                axis.axvline(settled[method], linewidth=1, alpha=0.8, label=label, **look)
        axis.set_xlabel("Euclidean norm of the embedding (the ball ends at 1)")
        axis.set_ylabel("share of embeddings (%)")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        figure.legend(loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def leakage(rows: pd.DataFrame, group_kind: str) -> Figure:
    """MAP@k with and without images of the query's own group in the gallery, joined by a line per method.

    rows: of :func:`.tables.leakage`; the points lost stand above the line with their 95 % interval. A dotted line is
    the level of chance.
    """
    methods = list(dict.fromkeys(rows["method"]))
    ks = sorted(rows["k"].unique())
    with style.house():
        size = (style.WIDTH, 0.7 + 0.42 * len(methods))
        figure, axes = plt.subplots(1, len(ks), figsize=size, sharex=True, sharey=True, squeeze=False)
        for axis, k in zip(axes[0], ks, strict=True):
            part = rows[rows["k"] == k].set_index("method").loc[methods]
            for height, (method, row) in enumerate(part.iterrows()):
                color = style.PALETTE[methods.index(method)]
                axis.plot([row["by_group"], row["by_image"]], [height, height], color=color, linewidth=1.5)
                axis.plot(row["by_image"], height, "o", color=color, markersize=6)
                axis.plot(row["by_group"], height, "s", color=color, markersize=6, markerfacecolor="white")
                lost = f"{-row['difference']:.1f} lost"
                if not np.isnan(row["low"]):
                    lost += f" ({-row['high']:.1f} to {-row['low']:.1f})"
                middle = (row["by_group"] + row["by_image"]) / 2
                axis.annotate(lost, (middle, height), (0, 4), textcoords="offset points", ha="center", fontsize=8)
            axis.axvline(part["chance"].iloc[0], color="black", linestyle=":", linewidth=1)
            axis.set_xlim(0, 100)
            axis.set_title(f"k = {k}")
            axis.set_xlabel("MAP@k (%)")
        axes[0][0].set_yticks(range(len(methods)), methods)
        axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
        handles = [
            Line2D([], [], color="black", marker="o", linestyle="", label="folds by image"),
            Line2D([], [], color="black", marker="s", linestyle="", markerfacecolor="white", label=f"by {group_kind}"),
            Line2D([], [], color="black", linestyle=":", label="chance"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def galleries(rows: pd.DataFrame, ks: Sequence[int]) -> Figure:
    """MAP@k over the number of images learnt from, closed gallery at the left, open at the right; a row per k.

    rows: columns gallery, method, n_train, k, ours, spread (percent).
    """
    sides = {"closed": "closed: the training images", "open": "open: images of other unseen groups"}
    with style.house():
        size = (style.WIDTH, 2.2 * len(ks))
        figure, axes = plt.subplots(len(ks), 2, figsize=size, sharex=True, sharey="row", squeeze=False)
        for line, k in zip(axes, ks, strict=True):
            for axis, side in zip(line, sides, strict=True):
                part = rows[(rows["k"] == k) & (rows["gallery"] == side)]
                for number, (method, of_method) in enumerate(part.groupby("method", sort=False)):
                    axis.errorbar(
                        of_method["n_train"],
                        of_method["ours"],
                        yerr=of_method["spread"],
                        label=method,
                        color=style.PALETTE[number],
                        marker=style.MARKERS[number],
                        dashes=style.DASHES[number] or (None, None),
                        markersize=4,
                        linewidth=1.2,
                        capsize=2,
                    )
                axis.set_xscale("log")
            line[0].set_ylabel(f"MAP@{k} (%)")
        sizes = sorted(rows["n_train"].unique())
        for axis, title in zip(axes[0], sides.values(), strict=True):
            axis.set_title(title)
        for axis in axes[-1]:
            axis.set_xlabel("images learnt from")
            axis.set_xticks(sizes, labels=[f"{n:,}" for n in sizes])
            axis.minorticks_off()
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure
