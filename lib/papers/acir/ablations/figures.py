"""What each part earns, and mAP over α."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.acir import published
from lib.papers.acir.ablations.more import FORMS

LOOKS = {"on": ("o", "switched on"), "off": ("s", "taken out of the whole"), "ours": ("^", "the whole and an opponent")}


BEYOND = 3.0
"""A gain so many times as large as the next smaller one would press all others together: it stands at the edge."""


def gains(table: pd.DataFrame) -> Figure:
    """A sign and its 95 % interval for every comparison of :func:`.tables.gains`; diamonds: the paper's gains.

    Filled where the corrected test is clear. The largest gain may lie beyond the edge (:data:`BEYOND`); then it is
    written there.
    """
    names = [row.part + ", taken out" * (row.where == "off") for row in table.itertuples()]
    places = range(len(table))
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.1 + 0.27 * len(table)))
        axis.axvline(0, color="black", linewidth=0.8)
        for number, (where, (marker, title)) in enumerate(LOOKS.items()):
            look = {"fmt": marker, "color": style.PALETTE[number], "capsize": 2, "markersize": 5}
            axis.errorbar([], [], label=title, **look)
            for filled in (True, False):
                chosen = (table["where"] == where) & ((table["p_holm"] <= 0.05) == filled)
                part, at = table[chosen], np.flatnonzero(chosen)
                error = [part["difference"] - part["low"], part["high"] - part["difference"]]
                axis.errorbar(part["difference"], at, xerr=error, fillstyle="full" if filled else "none", **look)
        known = [place for place in places if pd.notna(table["published"].iloc[place])]
        look = {"marker": "D", "facecolors": "white", "edgecolors": "black", "s": 28, "zorder": 3}
        axis.scatter(table["published"].iloc[known], known, label="published, by hits", **look)
        axis.set_yticks(places, names)
        axis.invert_yaxis()
        _edge(axis, table)
        axis.set_xlabel("gain in mAP (percentage points)")
        figure.legend(loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def _edge(axis: plt.Axes, table: pd.DataFrame) -> None:
    """Cut the axis off where one gain is far beyond all others, and write it at the edge."""
    largest = table["difference"].abs().idxmax()
    others = table.drop(index=largest)
    if others.empty or abs(table.loc[largest, "difference"]) < BEYOND * others["difference"].abs().max():
        return
    known = others[["low", "high", "published"]].stack()
    low, high = min(known.min(), 0) - 3, max(known.max(), 0) + 3
    axis.set_xlim(low, high)
    value, place = table.loc[largest, "difference"], table.index.get_loc(largest)
    look = {"ha": "right", "va": "center", "fontsize": 8, "bbox": {"facecolor": "white", "edgecolor": "none", "pad": 1}}
    text = f"{value:+.1f} →" if value > 0 else f"← {value:+.1f}"
    axis.text(high - 0.2 if value > 0 else low + 0.2, place, text, **(look if value > 0 else look | {"ha": "left"}))


def alphas(rows: pd.DataFrame) -> Figure:
    """mAP over α: each form of L_Q on the left (min(k, R)), the paper's on the right (hits).

    rows: of :func:`.more.alpha_rows`.
    """
    with style.house():
        figure, (left, right) = plt.subplots(1, 2, figsize=(style.WIDTH, 3.0), sharex=True)
        for number, (form, title) in enumerate(FORMS.items()):
            of_form = rows[rows["form"] == form].groupby("alpha")["mAP_min"]
            mean, spread = of_form.mean(), of_form.std().fillna(0)
            look = {
                "color": style.PALETTE[number],
                "marker": style.MARKERS[number],
                "markersize": 5 + 3 * (number == 1),
            }
            look |= {"linestyle": ("-", "--", ":")[number], "capsize": 2}
            look |= {"markerfacecolor": "none"} if number == 1 else {}
            label = title if form == "ours" else f"{title} (one training)"
            left.errorbar(mean.index, mean, yerr=spread, label=label, **look)
        theirs = published.alphas()
        right.plot(theirs["alpha"], theirs["mAP"], marker="D", color="black", label="published")
        for axis, title, divided in ((left, "ours", "min(k, R)"), (right, "published, RadIN-CT", "hits")):
            axis.set_title(title)
            axis.set_xlabel("α, weight of the quantisation term")
            axis.set_ylabel(f"mAP, {divided} (%)")
            axis.set_xticks(sorted({*rows["alpha"], *theirs["alpha"]}))
        figure.legend(loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
