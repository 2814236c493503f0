"""MAP@k over the length of the input (Fig. 3), the mapper beside its opponents, and votes of the nearest images."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.hyper_dino.published import FAMILIES
from lib.results.answers import VOTES

TICKS = (5, 10, 20, 40, 80, 160, 384)
LINES = {"PCA": "-", "NCA": "--", "better of both": ":"}


def by_length(panels: dict[str, pd.DataFrame], ks: Sequence[int] = (1, 20)) -> Figure:
    """MAP@k over the input length for the three families (the paper's Fig. 3); a row per k, a column per panel.

    Args:
        panels: title → rows with columns source, family, dim_in, k, value (percent), spread and chance (percent, may
            be missing). A family has its marker, a source its line: NCA is dashed and hollow. A single length has
            no line, in the legend neither.
        ks: the list lengths drawn.
    """
    with style.house():
        size = (style.WIDTH, 2.3 * len(ks))
        figure, axes = plt.subplots(len(ks), len(panels), figsize=size, sharey="row", sharex=True, squeeze=False)
        for row, k in zip(axes, ks, strict=True):
            for axis, rows in zip(row, panels.values(), strict=True):
                _draw(axis, rows[rows["k"] == k])
            row[0].set_ylabel(_scale(k, pd.concat(panels.values())))
        for axis, title in zip(axes[0], panels, strict=True):
            axis.set_title(title)
        for axis in axes[-1]:
            axis.set_xlabel("input length (numbers)")
        drawn = [zip(*axis.get_legend_handles_labels(), strict=True) for axis in axes[0]]
        named = {label: handle for panel in drawn for handle, label in panel}
        figure.legend(named.values(), named.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _draw(axis: plt.Axes, rows: pd.DataFrame) -> None:
    for source in rows["source"].unique():
        for number, (family, label) in enumerate(FAMILIES.items()):
            line = rows[(rows["family"] == family) & (rows["source"] == source)].sort_values("dim_in")
            lengths = line["value"].notna().sum()
            if not lengths:
                continue  # a legend names what is drawn
            axis.errorbar(
                line["dim_in"],
                line["value"],
                yerr=line["spread"] if line["spread"].notna().any() else None,
                label=f"{source}: {label}",
                color=style.PALETTE[number],
                marker=style.MARKERS[number],
                markerfacecolor="white" if source == "NCA" else None,
                linestyle=LINES[source] if lengths > 1 else "",
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
    axis.set_xscale("log")
    axis.set_xticks(TICKS, labels=[str(tick) for tick in TICKS])
    axis.minorticks_off()


def _scale(k: int, rows: pd.DataFrame) -> str:
    """The name of an axis; chance is often far below all points, so it is told and not drawn."""
    return f"MAP@{k} (%), chance {rows[rows['k'] == k]['chance'].mean():.1f}"


def opponents(rows: pd.DataFrame) -> Figure:
    """MAP@k of methods under each fold rule; a row per method, a column per k.

    rows: columns rule, method, k, ours, spread and chance (percent).
    """
    methods, ks, rules = list(dict.fromkeys(rows["method"])), sorted(rows["k"].unique()), rows["rule"].unique()
    with style.house():
        size = (style.WIDTH, 1.0 + 0.3 * len(methods))
        figure, axes = plt.subplots(1, len(ks), figsize=size, sharey=True, squeeze=False)
        for axis, k in zip(axes[0], ks, strict=True):
            for number, rule in enumerate(rules):
                part = rows[(rows["k"] == k) & (rows["rule"] == rule)].set_index("method").loc[methods]
                _points(axis, part["ours"], part["spread"], number, len(rules), f"folds {rule}")
            axis.set_xlabel(_scale(k, rows))
        _named(axes[0][0], methods)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def patients(rows: pd.DataFrame) -> Figure:
    """Macro F1 of the first answer and of majorities; a row per method, a panel per archive.

    rows: columns archive, method, k (:data:`VOTES`), macro_f1 and seeds_spread (percent, may be missing).
    """
    methods, archives = list(dict.fromkeys(rows["method"])), list(dict.fromkeys(rows["archive"]))
    with style.house():
        size = (style.WIDTH, 1.0 + 0.4 * len(methods))
        figure, axes = plt.subplots(1, len(archives), figsize=size, sharex=True, sharey=True, squeeze=False)
        for axis, archive in zip(axes[0], archives, strict=True):
            for number, (k, name) in enumerate(VOTES.items()):
                part = rows[(rows["k"] == k) & (rows["archive"] == archive)].set_index("method").loc[methods]
                _points(axis, part["macro_f1"], part["seeds_spread"], number, len(VOTES), name)
            axis.set_title(f"{archive} archive")
            axis.set_xlabel("macro F1 (%)")
        _named(axes[0][0], methods)
        figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=len(VOTES))
        plt.close(figure)
    return figure


def _points(axis: plt.Axes, values: pd.Series, spread: pd.Series, number: int, of: int, label: str) -> None:
    """One marker per row, the ``number``-th of ``of`` series a little lower than the one before."""
    heights = [row + 0.22 * (number - (of - 1) / 2) for row in range(len(values))]
    axis.errorbar(
        values,
        heights,
        xerr=spread.fillna(0),
        label=label,
        color=style.PALETTE[number],
        marker=style.MARKERS[number],
        markerfacecolor="white" if number % 2 else None,
        linestyle="",
        markersize=5,
        capsize=2,
    )


def _named(axis: plt.Axes, methods: Sequence[str]) -> None:
    axis.set_yticks(range(len(methods)), methods)
    axis.set_ylim(len(methods) - 0.5, -0.5)
