"""Lines with spreads over something that was changed, a panel for each thing."""

from collections.abc import Mapping, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style

TICK, FEW = 0.36, 20
"""Inches that the number at a tick takes, with the gap to the next; more values than a few are a curve."""


def look(number: int) -> dict[str, object]:
    """Colour, marker and dashes of the line with this number; it is told from its neighbours in grey as well."""
    n = len(style.MARKERS)
    dashes = style.DASHES[number % n] or (None, None)
    return {"color": style.dark(style.PALETTE[number % len(style.PALETTE)]), "marker": style.MARKERS[number % n]} | {
        "dashes": dashes
    }


def lines(
    rows: pd.DataFrame,
    *,
    xlabel: str | Mapping[str, str],
    ylabel: str,
    zero: bool = False,
    log: bool = False,
    sharey: bool = True,
    looks: Mapping[str, Mapping[str, object]] | None = None,
    panels: Sequence[str] | None = None,
    height: float = 3.3,
) -> Figure:
    """One panel for each value of ``panel``, one line for each value of ``line``; bars: ± ``spread``.

    Args:
        rows: columns panel (one if absent), line, x (numbers; text stands in the order in which it comes), y and spread
            (no bar where it is NaN or absent).
        xlabel: below all panels, or of each. ylabel: beside the first.
        zero: draw a line at 0. log: x is logarithmic. sharey: all panels have the scale of the first.
        looks: line → how it is drawn; the palette's next if not given.
        panels: their order, if not as they come. height: in inches.
    """
    rows = rows.assign(**{name: value for name, value in {"panel": "", "spread": 0.0}.items() if name not in rows})
    names, known = list(panels or rows["panel"].unique()), list(rows["line"].unique())
    drawn = {line: (looks or {}).get(line) or look(number) for number, line in enumerate(known)}
    with style.house():
        figure, axes = plt.subplots(1, len(names), figsize=(style.WIDTH, height), sharey=sharey, squeeze=False)
        for axis, panel in zip(axes[0], names, strict=True):
            part = rows[rows["panel"] == panel].dropna(subset="y")
            text = not pd.api.types.is_numeric_dtype(part["x"])
            ticks = list(part["x"].unique())
            if zero:
                axis.axhline(0, color="0.7", linewidth=0.8)
            for line, points in part.groupby("line", sort=False):
                x = points["x"].map(ticks.index) if text else points["x"]
                bars = points["spread"].fillna(0)
                axis.errorbar(x, points["y"], yerr=bars, label=line, markersize=4, capsize=2, **drawn[line])
            if text:
                axis.set_xticks(range(len(ticks)), [style.legible(tick) for tick in ticks], rotation=45)
            elif log:
                axis.set_xscale("log")
                if len(ticks) <= FEW:
                    axis.set_xticks(apart(ticks, TICK * len(names) / style.WIDTH))
                axis.xaxis.set_major_formatter("{x:g}")
                axis.minorticks_off()
            axis.set(title=panel, xlabel=xlabel if isinstance(xlabel, str) else xlabel[panel])
        axes[0][0].set_ylabel(ylabel)
        handles = {label: h for axis in axes[0] for h, label in zip(*axis.get_legend_handles_labels(), strict=True)}
        if len(known) > 1:
            figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def with_level(rows: pd.DataFrame, column: str = "chance") -> pd.DataFrame:
    """``rows`` of :func:`lines` and a line "chance" more, of a ``column`` that all lines of a panel share at an x."""
    once = rows.drop_duplicates(["panel", "x"])
    return pd.concat([rows, once.assign(line=column, y=once[column], spread=np.nan)])


def apart(values: Sequence[float], share: float) -> list[float]:
    """Those of the ``values`` that are at least this ``share`` of a logarithmic axis away from the last one kept.

    >>> apart([5, 10, 20, 384, 478, 1280], share=0.2)
    [5, 20, 384, 1280]
    """
    least, kept = (max(values) / min(values)) ** share, []
    for value in sorted(set(values)):
        if not kept or value >= least * kept[-1]:
            kept.append(value)
    return kept
