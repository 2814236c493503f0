"""Fig. 2 with every method, and HWC over α and γ."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.label_tree.names import (
    AS_PRINTED,
    AS_TOLD,
    BOTH,
    BY_COSINE,
    CONSTANT,
    MARGIN,
    OF_FORM,
    OUTSIDE,
    SUPCON,
)
from lib.papers.label_tree.sweeps import tables

PANELS = (("hf1", "HF1 (%), higher is better"), ("violation", "violations (%), lower is better"))
COLUMNS = {
    "weights inside of the softmax": (AS_PRINTED, AS_TOLD, BY_COSINE, CONSTANT),
    "weights outside; with LAM": (OUTSIDE, MARGIN, BOTH),
}
"""Which methods stand beside SupCon in a column of Fig. 2."""
MAPS = {"hf1": "cividis", "violation": "cividis_r"}
"""Bright is good, above and below."""


def temperatures(rows: pd.DataFrame) -> Figure:
    """Fig. 2: HF1 (above) and violations (below) against τ, bars over trainings; the grey band is SupCon's best τ.

    Methods stand in two columns, :data:`COLUMNS`, SupCon in both; the panels of a line have one scale.
    """
    of_best = tables.best(rows)
    star = float(of_best.loc[of_best["method"] == SUPCON, "temperature"].iloc[0])
    with style.house():
        figure, axes = plt.subplots(2, len(COLUMNS), figsize=(style.WIDTH, 6.0), sharex=True, sharey="row")
        for column, (about, methods) in zip(axes.T, COLUMNS.items(), strict=True):
            shown = [SUPCON, *(name for name in methods if name in set(rows["method"]))]
            for axis, (measure, _) in zip(column, PANELS, strict=True):
                for number, method in enumerate(shown):
                    cells = rows[rows["method"] == method].groupby("temperature")[measure].agg(["mean", "std"])
                    aside = 1.025 ** (number - (len(shown) - 1) / 2)  # bars beside each other, not on each other
                    look = _look(number)
                    axis.errorbar(cells.index * aside, cells["mean"], yerr=cells["std"].fillna(0), label=method, **look)
                axis.axvline(star, color="0.5", linestyle="-", linewidth=5, alpha=0.3, zorder=0)
                axis.set_xscale("log")
                axis.set_xticks(cells.index, [f"{tau:g}" for tau in cells.index])
                axis.minorticks_off()
            column[0].set_title(about)
            column[-1].set_xlabel("temperature τ (log scale, no unit)")
            column[-1].legend(loc="upper center", bbox_to_anchor=(0.5, -0.22), ncols=2)
        for axis, (_, title) in zip(axes[:, 0], PANELS, strict=True):
            axis.set_ylabel(title)
        plt.close(figure)
    return figure


def _look(number: int) -> dict[str, object]:
    """Sign and dashes tell methods apart in grey; SupCon, what all are compared with, is black and thick."""
    color = "black" if number == 0 else style.PALETTE[number - 1]
    look = {"color": color, "marker": style.MARKERS[number], "markersize": 5, "capsize": 2, "elinewidth": 0.7}
    return look | {"dashes": style.DASHES[number] or (None, None), "linewidth": 2 if number == 0 else 1.1}


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
