"""Differences with their intervals, one below the other: what is clear is filled."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.figures.lines import look


def forest(
    rows: pd.DataFrame, *, xlabel: str, zero: bool = True, row_height: float = 0.24, width: int | None = None
) -> Figure:
    """A panel for each value of ``panel``, a line for each name, a marker for each value of ``series``.

    Args:
        rows: columns name, difference, and low and high (no bar where they are NaN) or spread, to both sides; panel and
            series, where there are several; clear (true: filled), else those with p_holm of at most 0.05, or all.
        xlabel: what the differences are, with unit. zero: draw a line at 0, as differences need it; scores need none.
        row_height: inches. width: letters of a name to a line.
    """
    rows = rows.assign(**{name: "" for name in ("panel", "series") if name not in rows})
    if "low" not in rows:
        half = rows["spread"].fillna(0)
        rows = rows.assign(low=rows["difference"] - half, high=rows["difference"] + half)
    if "clear" not in rows:
        rows = rows.assign(clear=rows["p_holm"] <= 0.05 if "p_holm" in rows else True)
    names, shown, kinds = list(rows["name"].unique()), list(rows["panel"].unique()), rows["series"].unique()
    with style.house():
        size = (style.WIDTH, 1.1 + row_height * len(names) * max(1, 0.6 * len(kinds)))
        figure, axes = plt.subplots(1, len(shown), figsize=size, sharey=True, squeeze=False)
        for axis, panel in zip(axes[0], shown, strict=True):
            if zero:
                axis.axvline(0, color="0.5", linewidth=0.8)
            for number, (kind, colour) in enumerate((kind, look(n)) for n, kind in enumerate(kinds)):
                part = rows[(rows["panel"] == panel) & (rows["series"] == kind)]
                away = 0.6 * ((number + 0.5) / len(kinds) - 0.5)
                for row in part.itertuples():
                    y = names.index(row.name) + away
                    axis.plot([row.low, row.high], [y, y], color=colour["color"], linewidth=1)
                    face = colour["color"] if row.clear else "white"
                    axis.plot(row.difference, y, colour["marker"], color=colour["color"], markerfacecolor=face)
                axis.plot([], [], colour["marker"], color=colour["color"], label=kind)
            axis.set(title=panel, xlabel=xlabel)
        axes[0][0].set_yticks(range(len(names)), [style.legible(name, width) for name in names])
        axes[0][0].invert_yaxis()
        if len(kinds) > 1:
            handles = axes[0][0].get_legend_handles_labels()
            figure.legend(*handles, loc="outside lower center", ncols=len(kinds))
        plt.close(figure)
    return figure
