"""Recall of heads and encoders, the course of a training end to end, and where points rest in the ball."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.hyp_vit.names import END, UNTRAINED

PLACES = {"head": "-", "encoder": ":"}
"""What is searched after a training end to end, and its dashes."""
CHOSEN = "step that the head chose"
END_TO_END = END.rstrip(", ")


def recall(rows: pd.DataFrame) -> Figure:
    """Recall@K of every method, a column for the smallest and the largest K; bars over trainings, chance in the label.

    The untrained encoder has panels of its own, below, since it lies far off.

    rows: columns method, k, ours, seeds_spread, class_mean, chance (percent).
    """
    untrained = rows["method"].str.startswith(UNTRAINED)
    parts = [part for part in (rows[~untrained], rows[untrained]) if len(part)]
    heights = [part["method"].nunique() for part in parts]
    ends = [rows["k"].min(), rows["k"].max()]
    with style.house():
        figure, axes = plt.subplots(
            len(parts),
            2,
            figsize=(style.WIDTH, 1.3 + 0.27 * sum(heights) + 0.3 * len(parts)),
            height_ratios=heights,
            squeeze=False,
        )
        for row, part in zip(axes, parts, strict=True):
            for axis, k in zip(row, ends, strict=True):
                _recalls(axis, part[part["k"] == k])
            row[1].set_yticklabels([])
        for axis, k in zip(axes[-1], ends, strict=True):
            axis.set_xlabel(f"Recall@{k} (%), chance {rows.loc[rows['k'] == k, 'chance'].mean():.1f}")
        handles = [
            plt.Line2D([], [], marker="o", linestyle="", color=style.PALETTE[0], label="mean over images, ± trainings"),
            plt.Line2D([], [], marker="|", linestyle="", color="black", markersize=9, label="mean over categories"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _recalls(axis: plt.Axes, part: pd.DataFrame) -> None:
    """A row per method, the first on top."""
    places = range(len(part))
    spread = part["seeds_spread"].fillna(0)
    axis.errorbar(part["ours"], places, xerr=spread, fmt="o", color=style.PALETTE[0], markersize=5, capsize=2)
    axis.plot(part["class_mean"], places, "|", color="black", markersize=9)
    axis.set_yticks(places, part["method"])
    axis.set_ylim(len(part) - 0.5, -0.5)
    axis.set_xlim(max(0, axis.get_xlim()[0]), min(101, axis.get_xlim()[1]))


def course(rows: pd.DataFrame) -> Figure:
    """Loss, a panel per method as their distances differ; below, Recall@1 on categories set aside, over the steps.

    A line per training, methods told apart by marker and dashes; the step that its head chose is ringed. The untrained
    encoder has a panel of scores of its own.

    rows: columns method, repeat, step, loss, head, encoder (percent); NaN where a step has no value.
    """
    methods = list(dict.fromkeys(rows["method"]))
    untrained = [one for one in methods if one.startswith(UNTRAINED)]
    groups = [several for several in ([one for one in methods if one not in untrained], untrained) if several]
    with style.house():
        figure = plt.figure(figsize=(style.WIDTH, 5.4))
        above, below = figure.subfigures(2, 1, height_ratios=[1, 1.5])
        losses = above.subplots(1, len(methods), squeeze=False)[0]
        for number, (axis, method) in enumerate(zip(losses, methods, strict=True)):
            for _, part in rows[rows["method"] == method].groupby("repeat"):
                one = part.dropna(subset="loss")
                means = one["loss"].rolling(10, min_periods=1).mean()
                axis.plot(one["step"], means, color=style.PALETTE[number], linewidth=1.1)
            axis.set(title=method.removesuffix(END_TO_END), xlabel="steps")
        losses[0].set_ylabel("loss (mean of ten steps)")
        axes = below.subplots(1, len(groups), squeeze=False)[0]
        for axis, several in zip(axes, groups, strict=True):
            for method in several:
                for _, part in rows[rows["method"] == method].groupby("repeat"):
                    _scores(axis, part, method, methods.index(method))
            axis.set(title="categories set aside", xlabel="steps")
        axes[0].set_ylabel("Recall@1 (%)")
        handles = {
            label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
        }
        below.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _scores(axis: plt.Axes, part: pd.DataFrame, method: str, number: int) -> None:
    """Recall@1 of head and encoder over the steps of one training; the head's best, of equal ones the first, ringed."""
    for place, dashes in PLACES.items():
        scores = part.dropna(subset=place)
        marker = style.MARKERS[number % len(style.MARKERS)]
        look = {"color": style.PALETTE[number], "marker": marker, "markersize": 4, "linewidth": 1.1}
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
