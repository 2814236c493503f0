"""Which mistakes are left, what each objective scores, and how far apart leaves are."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style

SHOWN = (("hf1", "HF1 (%)"), ("order", "PC-Order (%)"), ("top1", "Top-1 (%)"))
LIGHT, DARK = 0.85, 0.2
HATCHES = ("", "//", "xx", "..")


def scores(rows: pd.DataFrame) -> Figure:
    """HF1, PC-Order and Top-1 of every method, bars over trainings; rows: of :func:`.tables.rows`."""
    methods = list(dict.fromkeys(rows["method"]))
    places = range(len(methods))
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 0.9 + 0.24 * len(methods)), sharey=True)
        for axis, (measure, title) in zip(axes, SHOWN, strict=True):
            part = rows[rows["measure"] == measure].set_index("method").loc[methods]
            spread = part["seeds_spread"].fillna(0)
            curved = ["Hyperbolic" in name for name in methods]
            for kind, marker, colour in ((False, "o", style.PALETTE[0]), (True, "D", style.PALETTE[1])):
                at = [place for place in places if curved[place] == kind]
                look = {"fmt": marker, "color": colour, "markersize": 4.5, "capsize": 2}
                axis.errorbar(part["ours"].iloc[at], at, xerr=spread.iloc[at], **look)
            axis.set_xlabel(title)
        axes[0].set_yticks(places, methods)
        axes[0].set_ylabel("objective")
        axes[0].invert_yaxis()
        handles = [
            plt.Line2D([], [], marker="o", linestyle="", color=style.PALETTE[0], label="Euclidean (unit sphere)"),
            plt.Line2D([], [], marker="D", linestyle="", color=style.PALETTE[1], label="Hyperbolic (ball)"),
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def mistakes(rows: pd.DataFrame, levels: Sequence[str]) -> Figure:
    """Stacked bars of wrong answers by how far up the tree they go; rows: of :func:`.mistakes.rows`.

    levels: what a mistake at each depth is called, from depth 0 on.
    """
    methods = list(dict.fromkeys(rows["method"]))
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 0.9 + 0.24 * len(methods)))
        left, n_depths = pd.Series(0.0, index=methods), rows["depth"].nunique()
        for number, depth in enumerate(sorted(rows["depth"].unique())):  # the worst first, on one base line
            part = rows[rows["depth"] == depth].set_index("method")["share"].loc[methods]
            grey = DARK + (LIGHT - DARK) * number / max(1, n_depths - 1)
            look = {"color": str(grey), "hatch": HATCHES[number % len(HATCHES)], "edgecolor": "black", "linewidth": 0.4}
            axis.barh(methods, part, left=left, label=levels[depth], **look)
            left += part
        axis.invert_yaxis()
        axis.set(xlabel="wrong answers, share of all (%)", ylabel="objective")
        figure.legend(loc="outside lower center", ncols=1 if max(map(len, levels)) > 40 else 2)
        plt.close(figure)
    return figure


def confusions(rows: pd.DataFrame) -> Figure:
    """Which class is taken for which, a bar for each method; rows: of :func:`.mistakes.confusions`.

    A pair inside of one group has its name in plain letters, one of two groups in bold.
    """
    pairs = list(dict.fromkeys(zip(rows["true"], rows["answered"], strict=True)))
    methods = list(dict.fromkeys(rows["method"]))
    thick = 0.8 / len(methods)
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.0 + 0.42 * len(pairs)))
        for number, (method, part) in enumerate(rows.groupby("method", sort=False)):
            places = [place + (number - (len(methods) - 1) / 2) * thick for place in range(len(pairs))]
            look = {"hatch": HATCHES[number], "edgecolor": "black", "linewidth": 0.4, "color": style.PALETTE[number]}
            axis.barh(places, part["share"], thick, xerr=part["spread"], label=method, error_kw={"capsize": 2}, **look)
        axis.set_yticks(range(len(pairs)), [f"{_short(true)} → {_short(answered)}" for true, answered in pairs])
        for label, kin in zip(axis.get_yticklabels(), rows.drop_duplicates(["true", "answered"])["kin"], strict=True):
            label.set_fontweight("normal" if kin else "bold")
        axis.invert_yaxis()
        axis.grid(False, axis="y")
        axis.set(xlabel="taken for the other, share of all answers (%)", ylabel="true class → answer")
        figure.legend(loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def _short(name: str) -> str:
    return style.legible(name.rpartition("/")[2]).replace("_", " ")
