"""The figures of Hyper-DINO."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.hyper_dino.published import FAMILIES

TICKS = (5, 10, 20, 40, 80, 160, 384)


def by_length(panels: dict[str, pd.DataFrame], ks: Sequence[int] = (1, 20)) -> Figure:
    """MAP@k over the input length for the three families (the paper's Fig. 3); a row per k, a column per panel.

    Args:
        panels: title → rows with columns source, family, dim_in, k, value (percent) and spread (percent, may be
            missing). A family has its marker, a source its line: NCA is dashed and hollow.
        ks: the list lengths drawn.
    """
    with style.house():
        size = (style.WIDTH, 2.3 * len(ks))
        figure, axes = plt.subplots(len(ks), len(panels), figsize=size, sharey="row", sharex=True, squeeze=False)
        for row, k in zip(axes, ks, strict=True):
            for axis, rows in zip(row, panels.values(), strict=True):
                _draw(axis, rows[rows["k"] == k])
            row[0].set_ylabel(f"MAP@{k} (%)")
        for axis, title in zip(axes[0], panels, strict=True):
            axis.set_title(title)
        for axis in axes[-1]:
            axis.set_xlabel("input length (numbers)")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _draw(axis: plt.Axes, rows: pd.DataFrame) -> None:
    for source in rows["source"].unique():
        for number, (family, label) in enumerate(FAMILIES.items()):
            line = rows[(rows["family"] == family) & (rows["source"] == source)].sort_values("dim_in")
            nca = source == "NCA"
            axis.errorbar(
                line["dim_in"],
                line["value"],
                yerr=line["spread"] if line["spread"].notna().any() else None,
                label=f"{source}: {label}",
                color=style.PALETTE[number],
                marker=style.MARKERS[number],
                markerfacecolor="white" if nca else None,
                linestyle="--" if nca else "-",
                markersize=4,
                linewidth=1.2,
                capsize=2,
            )
    axis.set_xscale("log")
    axis.set_xticks(TICKS, labels=[str(tick) for tick in TICKS])
    axis.minorticks_off()
