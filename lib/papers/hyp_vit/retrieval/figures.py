"""Recall of heads and encoders, the course of a training end to end, and where points rest in the ball."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def recall(rows: pd.DataFrame) -> Figure:
    """Recall@K of every method, a panel for the smallest and the largest K; bars over trainings, dotted chance.

    rows: columns method, k, ours, seeds_spread, class_mean, chance (percent).
    """
    methods = list(dict.fromkeys(rows["method"]))
    ends = [rows["k"].min(), rows["k"].max()]
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 1.1 + 0.27 * len(methods)), sharey=True)
        for axis, k in zip(axes, ends, strict=True):
            part = rows[rows["k"] == k].set_index("method").loc[methods]
            places = range(len(methods))
            spread = part["seeds_spread"].fillna(0)
            axis.errorbar(part["ours"], places, xerr=spread, fmt="o", color=style.PALETTE[0], markersize=5, capsize=2)
            axis.plot(part["class_mean"], places, "|", color="black", markersize=9)
            axis.set_xlabel(f"Recall@{k} (%), chance {part['chance'].mean():.1f}")
            axis.set_yticks(places, methods)
            axis.set_xlim(max(0, axis.get_xlim()[0]), min(101, axis.get_xlim()[1]))
        axes[0].invert_yaxis()
        handles = [
            plt.Line2D([], [], marker="o", linestyle="", color=style.PALETTE[0], label="mean over images, ± trainings"),
            plt.Line2D([], [], marker="|", linestyle="", color="black", markersize=9, label="mean over categories"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def course(rows: pd.DataFrame) -> Figure:
    """Loss, and Recall@1 on categories set aside, over the steps of every training.

    rows: columns method, repeat, step, loss, head, encoder (percent); NaN where a step has no value.
    """
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 2.7))
        for number, (method, of_one) in enumerate(rows.groupby("method", sort=False)):
            for repeat, part in of_one.groupby("repeat"):
                look = {"color": style.PALETTE[number], "linewidth": 1.1}
                losses = part.dropna(subset="loss")
                label = method if repeat == 0 else None
                axes[0].plot(losses["step"], losses["loss"].rolling(10, min_periods=1).mean(), label=label, **look)
                for place, line in (("head", "-"), ("encoder", ":")):
                    scores = part.dropna(subset=place)
                    label = f"{method}, {place}" if repeat == 0 else None
                    marker = style.MARKERS[number]
                    axes[1].plot(scores["step"], scores[place], line, marker=marker, markersize=4, label=label, **look)
        axes[0].set_ylabel("loss (mean of ten steps)")
        axes[1].set_ylabel("Recall@1, validation (%)")
        for axis in axes:
            axis.set_xlabel("steps")
        figure.legend(*axes[1].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def rest(rows: pd.DataFrame, bound: float) -> Figure:
    """Where embeddings rest: median, quartiles and extremes of every method; dashed, the bound set by clipping.

    rows: columns method, share (percent of the ball's radius). bound: percent.
    """
    methods = list(dict.fromkeys(rows["method"]))
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.0 + 0.35 * len(methods)))
        for place, method in enumerate(methods):
            low, first, middle, third, high = rows.loc[rows["method"] == method, "share"].quantile(
                [0, 0.25, 0.5, 0.75, 1]
            )
            axis.plot([low, high], [place, place], color="0.5", linewidth=1)
            axis.plot([first, third], [place, place], color=style.PALETTE[0], linewidth=6, solid_capstyle="butt")
            axis.plot([middle], [place], "o", color="black", markersize=4)
        axis.axvline(bound, color="black", linestyle="--", linewidth=1, label="bound set by clipping")
        axis.axvline(100, color="black", linewidth=1.5, label="rim")
        axis.set_xlim(0, 102)
        axis.set_yticks(range(len(methods)), methods)
        axis.set_ylim(len(methods) - 0.5, -0.5)
        axis.set_xlabel("distance from the centre on paper (% of the ball's radius)")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
