"""Figures beyond the Hyper-DINO paper: differences, norms, leakage, galleries."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from lib.figures import style
from lib.papers.hyper_dino.beyond.experiment import EPOCHS, EQUAL


def differences(rows: pd.DataFrame, what: str) -> Figure:
    """Differences with their 95 % intervals beside a line at 0, a row for each name, a panel for each k.

    rows: columns name, rule (its own marker), k, difference, low, high (points); ``what`` is the label below.
    """
    names, rules = (list(dict.fromkeys(rows[column])) for column in ("name", "rule"))
    ks = sorted(rows["k"].unique())
    with style.house():
        size = (style.WIDTH, 1.0 + 0.3 * len(names))
        figure, axes = plt.subplots(1, len(ks), figsize=size, sharey=True, squeeze=False)
        for axis, k in zip(axes[0], ks, strict=True):
            for number, rule in enumerate(rules):
                part = rows[(rows["k"] == k) & (rows["rule"] == rule)]
                heights = part["name"].map(names.index) + 0.24 * (number - (len(rules) - 1) / 2)
                reach = (part["difference"] - part["low"], part["high"] - part["difference"])
                look = {"fmt": style.MARKERS[number], "color": style.PALETTE[number], "markersize": 4, "capsize": 2}
                axis.errorbar(part["difference"], heights, xerr=reach, label=rule, linewidth=1.2, **look)
            axis.axvline(0, color="black", linewidth=1)
            axis.set_title(f"k = {k}")
            axis.set_xlabel(what)
        axes[0][0].set_yticks(range(len(names)), names)
        axes[0][0].set_ylim(len(names) - 0.5, -0.5)
        if len(rules) > 1:
            figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(rules))
        plt.close(figure)
    return figure


def norms(rows: pd.DataFrame, settled: Mapping[str, float], limit: float) -> Figure:
    """How far from the centre the embeddings lie, as far as ``limit``.

    rows: columns method, norm, share (percent of the embeddings in a bin); settled: method → the norm at which the
    loss of negative pairs becomes 0, drawn as a vertical line.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 3.0))
        for number, (method, part) in enumerate(rows.groupby("method", sort=False)):
            look = {"color": style.PALETTE[number], "dashes": style.DASHES[number] or (None, None)}
            axis.plot(part["norm"], part["share"], drawstyle="steps-mid", label=method, linewidth=1.4, **look)
            if method in settled:
                label = f"{method}: classes exactly at the margin ({settled[method]:.3f})"
                axis.axvline(settled[method], linewidth=1, alpha=0.8, label=label, **look)
        axis.set_xlabel("Euclidean norm of the embedding (the ball ends at 1)")
        axis.set_ylabel("share of embeddings (%)")
        axis.set_xlim(0, limit)
        axis.set_ylim(bottom=0)
        figure.legend(loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


SQUARE = {"markersize": 9, "markerfacecolor": "none", "markeredgewidth": 1.3}


def leakage(rows: pd.DataFrame, group_kind: str) -> Figure:
    """MAP@k with and without images of the query's own group in the gallery, joined by a line per method.

    rows: of :func:`.tables.leakage`; the points lost stand at the right with their 95 % interval. A dotted line is the
    level of chance. Squares are so large, and empty, that a dot of nearly the same score is seen inside.
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
                axis.plot(row["by_image"], height, "o", color=color, markersize=4.5)
                axis.plot(row["by_group"], height, "s", color=color, **SQUARE)
                lost = f"{-row['difference']:z.1f}"
                if not np.isnan(row["low"]):
                    lost += f" ({-row['high']:z.1f} to {-row['low']:z.1f})"
                axis.text(1.02, height, lost, transform=axis.get_yaxis_transform(), va="center", fontsize=8)
            axis.text(1.02, -0.7, "points lost", transform=axis.get_yaxis_transform(), va="bottom", fontsize=8)
            axis.axvline(part["chance"].iloc[0], color="black", linestyle=":", linewidth=1)
            axis.set_xlim(0, 100)
            axis.set_title(f"k = {k}")
            axis.set_xlabel("MAP@k (%)")
        axes[0][0].set_yticks(range(len(methods)), methods)
        axes[0][0].set_ylim(len(methods) - 0.4, -0.6)
        handles = [
            Line2D([], [], color="black", marker="o", linestyle="", markersize=4.5, label="folds by image"),
            Line2D([], [], color="black", marker="s", linestyle="", label=f"by {group_kind}", **SQUARE),
            Line2D([], [], color="black", linestyle=":", label="chance"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def galleries(rows: pd.DataFrame, ks: Sequence[int]) -> Figure:
    """MAP@k over the number of images learnt from, closed gallery at the left, open at the right; a row per k.

    Methods stand a little beside each other, and every other sign is hollow: curves may lie on one another.

    rows: columns gallery, method, length (how long was learnt: :data:`.experiment.EQUAL` solid, the others dashed),
    n_train, k, ours, spread, chance (percent).
    """
    sides = {"closed": "closed: the training images", "open": "open: images of other unseen groups"}
    methods = list(dict.fromkeys(rows["method"]))
    with style.house():
        size = (style.WIDTH, 2.2 * len(ks))
        figure, axes = plt.subplots(len(ks), 2, figsize=size, sharex=True, sharey="row", squeeze=False)
        for line, k in zip(axes, ks, strict=True):
            for axis, side in zip(line, sides, strict=True):
                part = rows[(rows["k"] == k) & (rows["gallery"] == side)]
                for (method, length), curve in part.groupby(["method", "length"], sort=False):
                    number = methods.index(method)
                    aside = ASIDE ** (number - (len(methods) - 1) / 2)
                    _curve(axis, curve.assign(n_train=curve["n_train"] * aside), number, dashed=length != EQUAL)
                chance = part.groupby("n_train")["chance"].mean()
                axis.plot(chance.index, chance, color="black", linestyle=":", linewidth=0.8)
                axis.set_xscale("log")
            line[0].set_ylabel(f"MAP@{k} (%)")
            line[0].set_ylim(bottom=0)
        sizes = sorted(rows["n_train"].unique())
        for axis, title in zip(axes[0], sides.values(), strict=True):
            axis.set_title(title)
        for axis in axes[-1]:
            axis.set_xlabel("images learnt from")
            axis.set_xticks(sizes, labels=[f"{n:,}" for n in sizes])
            axis.minorticks_off()
        look = [_sign(number) | {"label": name} for number, name in enumerate(methods)]
        look += [{"color": "0.4", "linestyle": line, "label": name} for name, line in ((EQUAL, "-"), (EPOCHS, "--"))]
        look.append({"color": "black", "linestyle": ":", "linewidth": 0.8, "label": "chance"})
        handles = [Line2D([], [], **one) for one in look]
        figure.legend(handles=handles, loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


ASIDE = 1.07
"""A factor between the methods of :func:`galleries`: sizes double, signs are narrower."""


def _sign(number: int) -> dict[str, object]:
    """Colour and sign of a method."""
    face = "white" if number % 2 else style.PALETTE[number]
    look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "markerfacecolor": face}
    return look | {"markersize": 4}


def _curve(axis: Axes, rows: pd.DataFrame, number: int, *, dashed: bool) -> None:
    """MAP@k of one method over the images learnt from; bars are the spread, of solid curves alone."""
    axis.errorbar(
        rows["n_train"],
        rows["ours"],
        yerr=None if dashed else rows["spread"],
        linestyle="--" if dashed else "-",
        linewidth=1.2,
        capsize=2,
        **_sign(number),
    )
