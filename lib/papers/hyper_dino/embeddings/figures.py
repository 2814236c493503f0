"""Features before any mapper (Hyper-DINO, section 2.1): what PCA keeps, and how well the parts retrieve."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style

SOURCES = ("PCA", "NCA", "whitened", "scaled")


def variance(curves: pd.DataFrame, lengths: Sequence[int]) -> Figure:
    """Share of the variance that the first n principal components keep, of the images they were fitted on and of new.

    Args:
        curves: columns rule, part ("training" or "test"), n, kept (percent).
        lengths: numbers of components that are used later, marked below.
    """
    rules = curves["rule"].unique()
    with style.house():
        figure, axes = plt.subplots(1, len(rules), figsize=(style.WIDTH, 2.7), sharey=True, squeeze=False)
        for axis, rule in zip(axes[0], rules, strict=True):
            for number, (part, rows) in enumerate(curves[curves["rule"] == rule].groupby("part", sort=False)):
                dashes = style.DASHES[number]
                axis.plot(rows["n"], rows["kept"], color=style.PALETTE[number], dashes=dashes, label=f"{part} images")
            axis.plot(lengths, [0] * len(lengths), "k|", clip_on=False, markersize=7)
            axis.set(title=f"folds {rule}", xscale="log", ylim=(0, 102), xlabel="principal components (number)")
        axes[0][0].set_ylabel("variance kept (%)")
        axes[0][0].legend(loc="lower right")
        _ticks(axes, curves["n"])
        plt.close(figure)
    return figure


def baselines(rows: pd.DataFrame) -> Figure:
    """MAP@k over the length of the feature for every way to shorten it; a row per k, a column per fold rule.

    Args:
        rows: columns rule, source, dim_in, k, value, chance and spread (percent, spread may be missing). The scaled
            features have one length only and are drawn as a line, as chance is.
    """
    rules, ks = rows["rule"].unique(), sorted(rows["k"].unique())
    with style.house():
        size = (style.WIDTH, 2.3 * len(ks) + 0.3)
        figure, axes = plt.subplots(len(ks), len(rules), figsize=size, sharex=True, sharey="row", squeeze=False)
        for line, k in zip(axes, ks, strict=True):
            for axis, rule in zip(line, rules, strict=True):
                _sources(axis, rows[(rows["k"] == k) & (rows["rule"] == rule)])
            line[0].set(ylabel=f"MAP@{k} (%)", ylim=(max(0, line[0].get_ylim()[0]), None))
        for axis, rule in zip(axes[0], rules, strict=True):
            axis.set_title(f"folds {rule}")
        for axis in axes[-1]:
            axis.set_xlabel("length (numbers)")
        _ticks(axes, rows["dim_in"])
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(handles))
        plt.close(figure)
    return figure


def _sources(axis: plt.Axes, rows: pd.DataFrame) -> None:
    axis.set_xscale("log")
    axis.axhline(rows["chance"].mean(), color="black", linestyle=":", linewidth=0.8, label="chance")
    for number, source in enumerate(SOURCES):
        line = rows[rows["source"] == source].sort_values("dim_in")
        if line.empty:
            continue
        if source == "scaled":
            axis.axhline(line["value"].iloc[0], color="black", linewidth=0.8, label="scaled, full length")
            continue
        axis.errorbar(
            line["dim_in"],
            line["value"],
            yerr=line["spread"] if line["spread"].notna().any() else None,
            label=source,
            color=style.PALETTE[number],
            marker=style.MARKERS[number],
            markerfacecolor="white" if number else None,
            linestyle=("-", "--", ":")[number],
            markersize=4,
            linewidth=1.2,
            capsize=2,
        )


def _ticks(axes, lengths: pd.Series) -> None:
    """Round numbers up to the longest, and the longest itself; so few that those of three digits have room."""
    longest = int(lengths.max())
    ticks = [n for n in (1, 2, 5, 10, 20, 40, 80, 320) if lengths.min() <= n < 0.45 * longest] + [longest]
    for axis in axes.flat:
        axis.set_xticks(ticks, labels=[str(n) for n in ticks])
        axis.minorticks_off()
