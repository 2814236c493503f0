"""Recall of heads and encoders, the course of a training end to end, and where points rest in the ball."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style

PLACES = {"head": "-", "encoder": ":"}
"""What is searched after a training end to end, and its dashes."""
CHOSEN = "step that the head chose"


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
    """Loss, a panel per method as their distances differ, and Recall@1 on categories set aside, over the steps.

    A line per training, methods told apart by marker and dashes; the step that its head chose is ringed.

    rows: columns method, repeat, step, loss, head, encoder (percent); NaN where a step has no value.
    """
    methods = list(dict.fromkeys(rows["method"]))
    with style.house():
        figure, axes = plt.subplots(
            1, len(methods) + 1, figsize=(style.WIDTH, 3.0), width_ratios=[1] * len(methods) + [1.8]
        )
        for number, method in enumerate(methods):
            for _, part in rows[rows["method"] == method].groupby("repeat"):
                losses = part.dropna(subset="loss")
                means = losses["loss"].rolling(10, min_periods=1).mean()
                axes[number].plot(losses["step"], means, color=style.PALETTE[number], linewidth=1.1)
                _scores(axes[-1], part, method, number)
            axes[number].set(title=f"loss, {method.partition(',')[0]}", xlabel="steps")
        axes[0].set_ylabel("loss (mean of ten steps)")
        axes[-1].set(title="categories set aside", xlabel="steps", ylabel="Recall@1 (%)")
        handles = dict(zip(*reversed(axes[-1].get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _scores(axis: plt.Axes, part: pd.DataFrame, method: str, number: int) -> None:
    """Recall@1 of head and encoder over the steps of one training; the head's best, of equal ones the first, ringed."""
    for place, dashes in PLACES.items():
        scores = part.dropna(subset=place)
        look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "markersize": 4, "linewidth": 1.1}
        axis.plot(scores["step"], scores[place], dashes, label=f"{method}, {place}", **look)
    heads = part.dropna(subset="head")
    best = heads.loc[heads["head"].idxmax()]
    axis.plot(best["step"], best["head"], "o", color="black", markerfacecolor="none", markersize=9, label=CHOSEN)


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
