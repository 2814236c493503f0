"""The course of a training end to end, and where points rest in the ball."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.hyp_vit.names import END, UNTRAINED

PLACES = {"head": "-", "encoder": ":"}
"""What is searched after a training end to end, and its dashes."""


def course(rows: pd.DataFrame) -> Figure:
    """Loss, a panel per method as their distances differ; below, Recall@1 on categories set aside, over the steps.

    A line per training; the step that its head chose is ringed. The untrained encoder has a panel of its own.

    rows: columns method, repeat, step, loss, head, encoder (percent); NaN where a step has no value.
    """
    methods = list(dict.fromkeys(rows["method"]))
    untrained = [name for name in methods if name.startswith(UNTRAINED)]
    groups = [names for names in ([name for name in methods if name not in untrained], untrained) if names]
    with style.house():
        figure = plt.figure(figsize=(style.WIDTH, 5.4))
        above, below = figure.subfigures(2, 1, height_ratios=[1, 1.5])
        losses = above.subplots(1, len(methods), squeeze=False)[0]
        for number, (axis, method) in enumerate(zip(losses, methods, strict=True)):
            for _, part in rows[rows["method"] == method].dropna(subset="loss").groupby("repeat"):
                means = part["loss"].rolling(10, min_periods=1).mean()
                axis.plot(part["step"], means, color=style.PALETTE[number], linewidth=1.1)
            axis.set(title=method.removesuffix(END.rstrip(", ")), xlabel="steps")
        losses[0].set_ylabel("loss (mean of the\nlast ten steps, or fewer)")
        axes = below.subplots(1, len(groups), squeeze=False)[0]
        for axis, names in zip(axes, groups, strict=True):
            for (method, _), part in rows[rows["method"].isin(names)].groupby(["method", "repeat"], sort=False):
                _scores(axis, part, method, methods.index(method))
            axis.set(title="categories set aside", xlabel="steps")
        axes[0].set_ylabel("Recall@1 (%)")
        handles = {label: h for axis in axes for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        below.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _scores(axis: plt.Axes, part: pd.DataFrame, method: str, number: int) -> None:
    """Head and encoder over the steps of one training; the head's best step, of equal ones the first, is ringed."""
    look = {"color": style.PALETTE[number], "marker": style.MARKERS[number % len(style.MARKERS)], "markersize": 4}
    for place, dashes in PLACES.items():
        scores = part.dropna(subset=place)
        axis.plot(scores["step"], scores[place], dashes, label=f"{method}, {place}", linewidth=1.1, **look)
    best = part.loc[part["head"].idxmax()]
    ring = {"color": "black", "markerfacecolor": "none", "markersize": 9}
    axis.plot(best["step"], best["head"], "o", label="step that the head chose", **ring)


def rest(rows: pd.DataFrame, bound: float) -> Figure:
    """Where embeddings rest: median, quartiles and extremes of every method; dashed, the bound set by clipping.

    rows: columns method, share (percent of the ball's radius). bound: percent.
    """
    ends = rows.groupby("method", sort=False)["share"].quantile([0, 0.25, 0.5, 0.75, 1]).unstack()
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.0 + 0.35 * len(ends)))
        for place, (low, first, middle, third, high) in enumerate(ends.to_numpy()):
            axis.plot([low, high], [place, place], color="0.5", linewidth=1)
            axis.plot([first, third], [place, place], color=style.PALETTE[0], linewidth=6, solid_capstyle="butt")
            axis.plot([middle], [place], "o", color="black", markersize=4)
        axis.axvline(bound, color="black", linestyle="--", linewidth=1, label="bound set by clipping")
        axis.axvline(100, color="black", linewidth=1.5, label="rim")
        axis.set(xlim=(0, 102), xlabel="distance from the centre on paper (% of the ball's radius)")
        axis.set_yticks(range(len(ends)), ends.index)
        axis.set_ylim(len(ends) - 0.5, -0.5)
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
