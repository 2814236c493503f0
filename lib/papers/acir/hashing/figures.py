"""Fig. 3: mAP and maAP over the length of the code."""

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.acir.hashing.experiment import LINEAR, NONE


def lengths(rows: pd.DataFrame, theirs: pd.DataFrame, dataset: str) -> Figure:
    """mAP (above) and maAP (below) over bits: ours on the left, published values of ``dataset`` on the right.

    rows: columns method, bits, ours, class_mean, chance, of one gallery and metric; bits NaN, drawn as a level line
    (:data:`REFERENCES`), for what has no code. theirs: columns method, bits, mAP, maAP. All in percent.
    """
    coded, plain = rows.dropna(subset="bits"), rows[rows["bits"].isna()]
    ours = coded.rename(columns={"ours": "mAP", "class_mean": "maAP"})
    bare = plain.rename(columns={"ours": "mAP", "class_mean": "maAP"})
    with style.house():
        figure, axes = plt.subplots(2, 2, figsize=(style.WIDTH, 6.4))
        for column, (table, title) in enumerate(((ours, "ours"), (theirs, f"published, {dataset}"))):
            for axis, metric in zip(axes[:, column], ("mAP", "maAP"), strict=True):
                _lines(axis, table, metric)
                axis.set_ylabel(f"{metric} (%)")
                axis.set_title(title)
                axis.set_xlabel("bits, methods side by side")
                _ticks(axis, table["bits"])
        for axis, metric in zip(axes[:, 0], ("mAP", "maAP"), strict=True):
            _references(axis, bare.set_index("method")[metric])
        handles = dict(
            pair for axis in axes.flat for pair in zip(*reversed(axis.get_legend_handles_labels()), strict=True)
        )
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


ORDER = (
    *("ACIR", "CSQ", "DPN", "DCH", "DBDH", "DSDH", "QSMIH", "Triplet", "ACIR, labels alone", "signs of PCA"),
    "ACIR, no class weights",
    *("ViT-LLaMa", "FIRe", "ATH", "MTH"),
)
"""A method looks the same on both sides, and no two look alike."""


def _lines(axis: plt.Axes, table: pd.DataFrame, metric: str) -> None:
    methods = sorted(table["method"].unique(), key=ORDER.index)
    for place, method in enumerate(methods):
        part = table[table["method"] == method].sort_values("bits")
        aside = 2.0 ** (0.75 * ((place + 0.5) / len(methods) - 0.5))
        axis.plot(part["bits"] * aside, part[metric], label=method, **_look(ORDER.index(method)))


def _look(number: int) -> dict[str, object]:
    """Sign, filling and dashes tell methods apart in grey; ACIR is black and thick."""
    color = "black" if number == 0 else style.dark(style.PALETTE[number % len(style.PALETTE)])
    filling = ("full", "none", "left")[number // len(style.MARKERS)]
    look = {"color": color, "marker": style.MARKERS[number % len(style.MARKERS)], "fillstyle": filling}
    look |= {"dashes": style.DASHES[number // len(style.MARKERS)] or (None, None), "markersize": 5}
    return look | {"linewidth": 1.8 if number == 0 else 0.7, "zorder": 4 if number == 0 else 2}


def _ticks(axis: plt.Axes, bits: pd.Series) -> None:
    ticks = sorted(set(bits))
    axis.set_xscale("log", base=2)
    axis.set_xticks(ticks, [f"{one:.0f}" for one in ticks])
    axis.minorticks_off()


REFERENCES = {LINEAR: "--", NONE: ":"}
"""How the line of what has no code is drawn."""


def _references(axis: plt.Axes, values: pd.Series) -> None:
    """What has no code: a line that the legend names; far below all codes, its name and value beside the title."""
    low, high = axis.get_ylim()
    low, below = min(low, high - 4), []
    for method, value in values.sort_values(ascending=False).items():
        if value >= low - (high - low):
            look = {"color": "black", "linestyle": REFERENCES[method], "linewidth": 1, "zorder": 1}
            axis.axhline(value, label=method, **look)
        else:
            below.append(f"below: {method}, {value:.1f}")
    if below:
        axis.set_title("\n".join([axis.get_title(), *below]), fontsize=8)
