"""Fig. 2 with every method, and HWC over α and γ."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.label_tree.names import OF_FORM, SUPCON
from lib.papers.label_tree.sweeps import tables

PANELS = (("hf1", "HF1 (%), higher is better"), ("violation", "violations (%), lower is better"))
MAPS = {"hf1": "cividis", "violation": "cividis_r"}
"""Bright is good, above and below."""


def temperatures(rows: pd.DataFrame) -> Figure:
    """Fig. 2: HF1 and violations against τ, bars over trainings; the grey band is SupCon's best τ."""
    of_best = tables.best(rows)
    star = float(of_best.loc[of_best["method"] == SUPCON, "temperature"].iloc[0])
    methods = list(dict.fromkeys(rows["method"]))
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 4.2))
        for axis, (measure, title) in zip(axes, PANELS, strict=True):
            for number, method in enumerate(methods):
                cells = rows[rows["method"] == method].groupby("temperature")[measure].agg(["mean", "std"]).fillna(0)
                aside = 1.035 ** (number - (len(methods) - 1) / 2)  # bars beside each other, not on each other
                axis.errorbar(cells.index * aside, cells["mean"], yerr=cells["std"], label=method, **_look(number))
            axis.axvline(star, color="0.5", linestyle="-", linewidth=5, alpha=0.3, zorder=0)
            axis.set_xscale("log")
            axis.set_xticks(cells.index, [f"{tau:g}" for tau in cells.index])
            axis.minorticks_off()
            axis.set_xlabel("temperature τ (log scale, no unit)")
            axis.set_ylabel(title)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _look(number: int) -> dict[str, object]:
    """Sign, filling and dashes tell methods apart in grey; SupCon, what all are compared with, is black and thick."""
    color = "black" if number == 0 else style.PALETTE[number]
    again = number >= len(style.MARKERS)
    look = {"color": color, "marker": style.MARKERS[number % len(style.MARKERS)], "markersize": 5, "capsize": 2}
    look |= {"dashes": style.DASHES[number % len(style.DASHES)] or (None, None), "elinewidth": 0.7}
    return look | {"linewidth": 2 if number == 0 else 1.1, "markerfacecolor": "white" if again else color}


def weights(rows: pd.DataFrame) -> Figure:
    """HF1 (above) and violations (below) at every pair of α and γ, a column for each form."""
    forms = list(dict.fromkeys(rows["form"]))
    alphas, gammas = (sorted(rows[name].unique()) for name in ("alpha", "gamma"))
    with style.house():
        figure, axes = plt.subplots(2, len(forms), figsize=(style.WIDTH, 5.0), squeeze=False)
        for line, (measure, title) in zip(axes, PANELS, strict=True):
            grids = [tables.grid(rows, form, measure) for form in forms]
            low, high = min(grid.min() for grid in grids), max(grid.max() for grid in grids)
            for axis, form, grid in zip(line, forms, grids, strict=True):
                axis.imshow(grid, cmap=MAPS[measure], vmin=low, vmax=high, aspect="auto")
                for (a, g), value in pd.DataFrame(grid).stack().items():
                    ink = "white" if (value < (low + high) / 2) == (measure == "hf1") else "black"
                    axis.text(g, a, f"{value:.1f}", ha="center", va="center", color=ink, fontsize=8)
                axis.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
                axis.set_yticks(range(len(alphas)), [f"{alpha:g}" for alpha in alphas])
                axis.set_title(f"{OF_FORM[form]}\n{title}", fontsize=8)
                axis.set_xlabel("γ (weighs negatives)")
                axis.grid(False)
            line[0].set_ylabel("α (weighs positives)")
        plt.close(figure)
    return figure
