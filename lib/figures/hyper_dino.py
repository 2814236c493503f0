"""The figures of Hyper-DINO."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style

FAMILIES = {"baseline": "PCA, Euclidean (baseline)", "32": "Hyper-DINO(·, 32)", "dim_in": "Hyper-DINO(·, dim_in)"}


def by_length(panels: dict[str, pd.DataFrame], ks: Sequence[int] = (1, 20)) -> Figure:
    """MAP@k over the input length for the three families (the paper's Fig. 3); a row per k, a column per panel.

    Args:
        panels: title → rows with columns family, dim_in, k, value (percent) and spread (percent, may be missing).
        ks: the list lengths drawn.
    """
    with style.house():
        figure, axes = plt.subplots(
            len(ks), len(panels), figsize=(style.WIDTH, 2.5 * len(ks)), sharey="row", sharex="col", squeeze=False
        )
        for row, k in zip(axes, ks, strict=True):
            for axis, (title, rows) in zip(row, panels.items(), strict=True):
                _draw(axis, rows[rows["k"] == k])
                axis.set_title(f"{title}, k = {k}")
            row[0].set_ylabel(f"MAP@{k} (%)")
        for axis in axes[-1]:
            axis.set_xlabel("input length (numbers)")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(FAMILIES))
        plt.close(figure)
    return figure


def _draw(axis: plt.Axes, rows: pd.DataFrame) -> None:
    for number, (family, label) in enumerate(FAMILIES.items()):
        line = rows[rows["family"] == family].sort_values("dim_in")
        axis.errorbar(
            line["dim_in"],
            line["value"],
            yerr=line["spread"] if line["spread"].notna().any() else None,
            label=label,
            color=style.PALETTE[number],
            marker=style.MARKERS[number],
            dashes=style.DASHES[number] or (None, None),
            markersize=4,
            linewidth=1.2,
            capsize=2,
        )
    axis.set_xscale("log")
    ticks = sorted(rows["dim_in"].unique())
    axis.set_xticks(ticks, labels=[str(tick) for tick in ticks])
    axis.minorticks_off()
