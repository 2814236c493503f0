"""The figures of notebook 42: a gain between both intervals, and how often an interval or a test is right."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.metrics.significance import Evidence


def gains(results: Mapping[str, Evidence]) -> Figure:
    """Both distributions of a mean gain and both intervals, as they should be drawn (Fig. 3, LP-5): a row per title.

    The sign-flip null and its 95 % range at the left of the legend, the bootstrap and the confidence interval beside.
    Where fewer than two groups allow no test, the observed gain stands alone and the title says so.
    """
    with style.house():
        size = (style.WIDTH, 0.6 + 1.45 * len(results))
        figure, axes = plt.subplots(len(results), 1, figsize=size, squeeze=False)
        for axis, (title, one) in zip(axes[:, 0], results.items(), strict=True):
            if one.test.n_units > 1:
                _distributions(axis, one)
            if one.test.n_units > 0:
                axis.axvline(one.test.difference, color="black", linewidth=1.6, label="observed gain")
            untested = ": fewer than two groups, no test" if one.test.n_units < 2 else ""
            axis.set_title(f"{title}{untested}", loc="left")
            axis.set_ylabel("resamples (%)")
        axes[-1, 0].set_xlabel("mean gain of AP@k (percentage points)")
        handles = {}
        for axis in axes[:, 0]:
            handles = dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True)) | handles
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _distributions(axis: plt.Axes, one: Evidence) -> None:
    """Both distributions as histograms, and both ends of their intervals."""
    ends = (one.null_low, one.null_high), (one.test.low, one.test.high)
    kinds = ("no difference (signs flipped)", "bootstrap of the gain")
    bins = np.histogram_bin_edges(np.concatenate([one.null, one.bootstrap]), 80)
    for number, (values, interval, kind) in enumerate(zip((one.null, one.bootstrap), ends, kinds, strict=True)):
        look = {"color": style.PALETTE[number]}
        share = np.full(len(values), 100 / len(values))
        style_of = {"alpha": 0.55, "hatch": ("", "////")[number], "edgecolor": style.PALETTE[number]}
        axis.hist(values, bins, weights=share, label=kind, histtype="stepfilled", **look, **style_of)
        name = ("95 % of the null", "95 % confidence interval (Student's t)")[number]
        for end in interval:
            axis.axvline(end, linestyle=("--", "-.")[number], linewidth=1.2, label=name, **look)


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
            [places.index(value) + 0.08 * (number - (len(lines) - 1) / 2) for value in part[x]],
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
