"""How often an interval or a test is right; Fig. 3 is with the figures of the paper."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style


def coverage(rows: pd.DataFrame) -> Figure:
    """How often each interval holds, above, and how wide it is, below, over the number of groups; a column per gains.

    rows: as :func:`lib.papers.linear_prototypes.significance.intervals.coverage` makes them.
    """
    kinds, sizes = list(dict.fromkeys(rows["gains"])), sorted(set(rows["groups"]))
    with style.house():
        size = (style.WIDTH, 4.6)
        figure, axes = plt.subplots(2, len(kinds), figsize=size, sharex=True, sharey="row", squeeze=False)
        for (above, below), kind in zip(axes.T, kinds, strict=True):
            part = rows[rows["gains"] == kind]
            _lines(above, part, "interval", "groups", sizes)
            _lines(below, part, "interval", "groups", sizes, value="width")
            above.axhline(95, color="black", linewidth=1, linestyle=":")
            above.set_title(f"{kind} gains")
            below.set_yscale("log", base=2)
            below.yaxis.set_major_formatter("{x:g}")
            below.set_xlabel("groups (patients, slides)")
        axes[0, 0].set_ylabel("holds the truth (%)")
        axes[1, 0].set_ylabel("width (standard deviations)")
        figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def alarms(rows: pd.DataFrame) -> Figure:
    """False alarms of each test over the ratio of both standard errors.

    rows: as :func:`lib.papers.linear_prototypes.significance.trainings.alarms` makes them.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 3.0))
        _lines(axis, rows, "test", "ratio", sorted(set(rows["ratio"])))
        axis.axhline(5, color="black", linewidth=1, linestyle=":")
        axis.set_xlabel("standard error from the trainings / from the groups")
        axis.set_ylabel("p ≤ 0.05 without\na difference (%)")
        figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _lines(
    axis: plt.Axes, rows: pd.DataFrame, name: str, x: str, places: Sequence[float], value: str = "share"
) -> None:
    """A line per ``name``, a share with its interval, over the values of ``x`` side by side."""
    lines = list(rows.groupby(name, sort=False))
    for number, (label, part) in enumerate(lines):
        axis.errorbar(
            [places.index(place) + 0.027 * (number - (len(lines) - 1) / 2) for place in part[x]],
            part[value],
            yerr=[part["share"] - part["low"], part["high"] - part["share"]] if value == "share" else None,
            label=label,
            color=style.PALETTE[number],
            marker=style.MARKERS[number],
            dashes=style.DASHES[number] or (None, None),
            markersize=4,
            linewidth=1.2,
            capsize=2,
        )
    axis.set_xticks(range(len(places)), [f"{place:g}" for place in places])
