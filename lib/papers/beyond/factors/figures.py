"""What earns how many points, and what a larger margin does."""

from collections.abc import Sequence
from textwrap import fill

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from lib.figures import style

FILLED = ("full", "none", "none")
CHANCES = {"chance": "chance", "class_chance": "chance, averaged over classes"}
LINES = {
    "chance": {"linestyle": ":", "linewidth": 1},
    "class_chance": {"linestyle": (0, (5, 2)), "linewidth": 0.8},
}
"""The two levels of chance: over queries, and averaged per class first."""


def factors(values: pd.DataFrame, earned: pd.DataFrame) -> Figure:
    """Above MAP@k of every method, below the points that each factor earns; a column per k.

    values: columns archive, method, k, ours, spread, class_mean, chance, class_chance (percent); earned: archive,
    factor, k, difference, low, high (points). Archives and methods, or factors, keep their order.
    """
    looks = {archive: _look(number) for number, archive in enumerate(dict.fromkeys(values["archive"]))}
    ks = sorted(values["k"].unique())
    rows = [values["method"].nunique(), earned["factor"].nunique()]
    with style.house():
        size, heights = (style.WIDTH, 1.6 + 0.36 * sum(rows)), {"height_ratios": rows}
        figure, axes = plt.subplots(2, len(ks), figsize=size, sharex="row", sharey="row", squeeze=False, **heights)
        for above, below, k in zip(*axes, ks, strict=True):
            _methods(above, values[values["k"] == k], looks)
            _earned(below, earned[earned["k"] == k], looks)
            above.set_title("the first answer" if k == 1 else f"a list of {k}")
            above.set_xlabel(f"MAP@{k} (%)")
            below.set_title(f"what one change earns, MAP@{k}")
            below.set_xlabel("points, 95 % interval")
        for axis, frame, column in zip(axes[:, 0], (values, earned), ("method", "factor"), strict=True):
            names = list(dict.fromkeys(frame[column]))
            axis.set_yticks(range(len(names)), [_wrapped(name) for name in names])
            axis.set_ylim(len(names) - 0.4, -0.6)
        figure.legend(handles=_legend(looks), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def earned(tests: pd.DataFrame) -> Figure:
    """A bar for each factor, the largest gain first, its number beside; hollow where the difference is not clear.

    So is the dot at its end: a bar may be too short to be seen into.

    tests: columns factor, k, difference, low, high (points), p_holm.
    """
    rows = tests.sort_values("difference", ascending=False, kind="stable")
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.2 + 0.36 * len(rows)))
        for place, row in enumerate(rows.itertuples()):
            clear = row.p_holm <= 0.05
            bar, dot = _verdict(clear)
            axis.barh(place, row.difference, 0.62, **bar)
            if not np.isnan(row.low):
                axis.plot([row.low, row.high], [place, place], color="black", linewidth=0.9)
            axis.plot(row.difference, place, **dot)
            told = f"{row.difference:+z.1f}" + ("" if clear else ", not clear")
            axis.text(1.02, place, told, transform=axis.get_yaxis_transform(), va="center", fontsize=9)
        axis.axvline(0, color="black", linewidth=1)
        axis.set_yticks(range(len(rows)), rows["factor"].map(_wrapped))
        axis.invert_yaxis()
        axis.grid(False, axis="y")
        axis.set_xlabel(f"points of MAP@{rows['k'].iloc[0]} that it earns")
        kinds = [(Patch(**bar), Line2D([], [], **dot)) for bar, dot in map(_verdict, (True, False))]
        kinds.append(Line2D([], [], color="black", linewidth=0.9))
        figure.legend(kinds, ["clear", "not clear", "95 % interval"], loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _verdict(clear: bool) -> tuple[dict[str, object], dict[str, object]]:
    """The bar and the dot at its end."""
    bar = {"facecolor": style.PALETTE[0] if clear else "white", "edgecolor": style.PALETTE[0], "linewidth": 1.2}
    dot = {"color": "black", "marker": "o", "linestyle": "", "markersize": 4.5, "markeredgecolor": "black"}
    return bar, dot | {"markerfacecolor": "black" if clear else "white", "zorder": 3}


def _wrapped(name: str) -> str:
    """The name of a row in lines that leave the panels their room."""
    return fill(name, 34)


def _look(number: int) -> dict[str, object]:
    return {"color": style.PALETTE[number], "marker": style.MARKERS[number], "fillstyle": FILLED[number]}


def _legend(looks: dict[str, dict[str, object]]) -> list[Line2D]:
    lines = [Line2D([], [], linestyle="", markersize=6, label=archive, **look) for archive, look in looks.items()]
    over_classes = Line2D([], [], linestyle="", color="black", marker="|", markersize=8, label="averaged over classes")
    guessed = [Line2D([], [], color="black", label=CHANCES[column], **LINES[column]) for column in CHANCES]
    return [*lines, over_classes, *guessed]


def _methods(axis: Axes, rows: pd.DataFrame, looks: dict[str, dict[str, object]]) -> None:
    places = {method: place for place, method in enumerate(dict.fromkeys(rows["method"]))}
    for archive, part in rows.groupby("archive", sort=False):
        height = part["method"].map(places) + _shift(archive, looks)
        axis.errorbar(part["ours"], height, xerr=part["spread"], **_drawn(looks[archive]))
        axis.plot(part["class_mean"], height, "|", color=looks[archive]["color"], markersize=8)
        for column, line in LINES.items():
            axis.axvline(part[column].mean(), color=looks[archive]["color"], **line)
    axis.set_xlim(0, 100)


def _earned(axis: Axes, rows: pd.DataFrame, looks: dict[str, dict[str, object]]) -> None:
    places = {factor: place for place, factor in enumerate(dict.fromkeys(rows["factor"]))}
    axis.axvline(0, color="black", linewidth=1)
    for archive, part in rows.groupby("archive", sort=False):
        ends = np.abs(part[["low", "high"]].to_numpy() - part[["difference"]].to_numpy()).T
        height = part["factor"].map(places) + _shift(archive, looks)
        axis.errorbar(part["difference"], height, xerr=ends, **_drawn(looks[archive]))


def _shift(archive: str, looks: dict[str, dict[str, object]]) -> float:
    """So that archives lie side by side around the place of a row."""
    return 0.24 * (list(looks).index(archive) - (len(looks) - 1) / 2)


def _drawn(look: dict[str, object]) -> dict[str, object]:
    return look | {"linestyle": "", "markersize": 5, "elinewidth": 1.2, "capsize": 2}


def margins(rows: pd.DataFrame, ks: Sequence[int]) -> Figure:
    """MAP@k of the ball and of the flat head over the margin, and the norm at which their embeddings rest.

    rows: columns head, m0, k, ours, spread (percent), norm.
    """
    with style.house():
        figure, axes = plt.subplots(1, len(ks) + 1, figsize=(style.WIDTH, 2.8))
        for number, (head, of_head) in enumerate(rows.groupby("head", sort=False)):
            look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "label": head, "markersize": 5}
            look |= {"dashes": style.DASHES[number] or (None, None), "linewidth": 1.3}
            for axis, k in zip(axes, ks, strict=False):
                line = of_head[of_head["k"] == k]
                axis.errorbar(line["m0"], line["ours"], yerr=line["spread"], capsize=2, **look)
            norms = of_head[of_head["k"] == ks[0]]
            axes[-1].plot(norms["m0"], norms["norm"], **look)
        for axis, label in zip(axes, [*(f"MAP@{k} (%)" for k in ks), "median norm"], strict=True):
            axis.set_xscale("log", base=2)
            axis.set_xticks(sorted(rows["m0"].unique()), [f"{m0:g}" for m0 in sorted(rows["m0"].unique())])
            axis.set_xlabel("margin m0 of the ball")
            axis.set_ylabel(label)
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure
