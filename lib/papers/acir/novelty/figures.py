"""Figs. 4 and 5, and which kinds of odd pictures which score finds."""

from collections.abc import Mapping, Sequence
from string import ascii_uppercase

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.papers.acir.novelty.maps import Page
from lib.papers.acir.novelty.rules import OOD
from lib.papers.acir.novelty.scene import FAR, KNOWN, NEAR


def kinds(rows: pd.DataFrame) -> Figure:
    """Detected (left) and AUROC (right), a row per kind of picture, a column per score; numbers on shades of grey."""
    scores, names = rows["score"].unique().tolist(), rows["kind"].unique().tolist()
    with style.house():
        height = 1.6 + 0.27 * len(names)
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, height), sharey=True)
        titles = {"detected": "called novel (%)", "auroc": "AUROC × 100, 50 is chance"}
        for axis, (column, title) in zip(axes, titles.items(), strict=True):
            wide = rows.pivot(index="kind", columns="score", values=column).loc[names, scores].to_numpy()
            _shaded(axis, wide)
            axis.set_xticks(range(len(scores)), [style.legible(name) for name in scores], rotation=90)
            axis.set(title=title, xlabel="score")
        axes[0].set_yticks(range(len(names)), [style.legible(name).replace("_", " ") for name in names])
        axes[0].set_ylabel("what asks")
        plt.close(figure)
    return figure


def _shaded(axis: plt.Axes, values: np.ndarray) -> None:
    """Percentages as shades of grey with their numbers; what there is none of stays white."""
    axis.imshow(values, cmap="Greys", vmin=0, vmax=100, aspect="auto")
    axis.grid(False)
    for y, x in np.argwhere(np.isfinite(values)):
        colour = "white" if values[y, x] > 50 else "black"
        axis.text(x, y, f"{values[y, x]:.0f}", ha="center", va="center", fontsize=7, color=colour)


MARKERS = (*style.MARKERS, "<", ">", "*", "h")
"""A sign for each known class, so that classes are told apart in grey."""


def pages(drawn: Mapping[str, Page], kind: np.ndarray, part: np.ndarray, classes: Sequence[str]) -> Figure:
    """t-SNE of several representations: known classes in colours and markers, novel pictures black.

    Each kind of OOD pictures is a letter. kind, part: (n,) of the points. classes: the known ones, in their order.
    """
    novel = [(part == NEAR, "x", "left-out class", 0.7)]
    for number, name in enumerate(dict.fromkeys(kind[part == FAR].tolist())):
        letter = ascii_uppercase[number % len(ascii_uppercase)]
        novel.append(((part == FAR) & (kind == name), rf"$\mathrm{{{letter}}}$", style.legible(name), 0))
    with style.house():
        figure, axes = plt.subplots(2, -(-len(drawn) // 2), figsize=(style.WIDTH, 6.6), squeeze=False)
        for axis, (name, one) in zip(axes.flat, drawn.items(), strict=False):
            for number, label in enumerate(classes):
                own = (kind == label) & (part == KNOWN)
                look = {"color": style.PALETTE[number % len(style.PALETTE)], "s": 12, "linewidth": 0, "alpha": 0.8}
                marker = MARKERS[number % len(MARKERS)]
                axis.scatter(*one.points[own].T, marker=marker, label=style.legible(label), rasterized=True, **look)
            for own, marker, label, linewidth in novel:
                look = {"color": "black", "s": 16, "linewidth": linewidth}
                axis.scatter(*one.points[own].T, marker=marker, label=label, rasterized=True, **look)
            axis.set(xticks=[], yticks=[], xlabel="t-SNE 1", ylabel="t-SNE 2")
            axis.set_title(f"{name}\n{100 * one.kept:.0f} % of 10 neighbours kept, trustworthiness {one.trust:.2f}")
        handles, labels = axes.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, markerscale=2)
        plt.close(figure)
    return figure


ODD, NONE = ("left-out class", OOD), "refused"
"""Of Fig. 5: the last rows, and the last column."""


def confusions(counts: Mapping[str, np.ndarray], classes: Sequence[str]) -> Figure:
    """Fig. 5: of the queries of each class how many percent get each class, or none (last column).

    counts: rule → (C + 2, C + 1); the last two rows are the left-out class and OOD.
    """
    names = [style.legible(name).replace("_", " ") for name in classes]
    with style.house():
        size = (style.WIDTH, 0.9 + style.WIDTH / max(2, len(counts)))
        figure, axes = plt.subplots(1, len(counts), figsize=size, sharey=True, squeeze=False)
        for axis, (name, table) in zip(axes[0], counts.items(), strict=True):
            shares = _shares(table)
            _shaded(axis, np.where(shares >= 0.5, shares, np.nan))
            axis.set_xticks(range(len(names) + 1), [*names, NONE], rotation=90)
            axis.set(title=name, xlabel="class given")
            axis.axvline(len(classes) - 0.5, color="black", linewidth=0.8)
            axis.axhline(len(classes) - 0.5, color="black", linewidth=0.8)
        axes[0][0].set_yticks(range(len(names) + 2), [*names, *ODD])
        axes[0][0].set_ylabel("class of the query")
        plt.close(figure)
    return figure


def _shares(counts: np.ndarray) -> np.ndarray:
    """Percent of each row; 0 for a class that does not ask."""
    return 100 * counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def confusion_rows(counts: Mapping[str, np.ndarray], classes: Sequence[str]) -> pd.DataFrame:
    """The same as rows: rule, query_class, given_class, share (percent)."""
    asks, gives, rows = [*classes, *ODD], [*classes, NONE], []
    for rule, table in counts.items():
        shares = _shares(table)
        for i, j in np.argwhere(shares > 0):
            rows.append({"rule": rule, "query_class": asks[i], "given_class": gives[j], "share": shares[i, j]})
    return pd.DataFrame(rows)


def plane(code: np.ndarray, error: np.ndarray, part: np.ndarray, radius: float, limit: float) -> Figure:
    """Bits to the nearest centre against the residual, a point per query, and both limits (for the sliders)."""
    looks = {
        KNOWN: {"marker": "o", "color": style.PALETTE[0], "s": 10, "alpha": 0.5, "label": "known"},
        NEAR: {"marker": "x", "color": style.PALETTE[3], "s": 22, "label": "left-out class"},
        FAR: {"marker": "+", "color": "black", "s": 22, "label": "OOD"},
    }
    shift = np.random.default_rng(0).uniform(-0.35, 0.35, len(code))  # so that points of one distance are seen
    with style.house():
        figure, axis = plt.subplots(figsize=(4.8, 3.6))
        for name, look in looks.items():
            own = part == name
            axis.scatter((code + shift)[own], error[own], linewidth=0.8, **look)
        axis.axvline(radius + 0.5, color="black", linestyle="--", linewidth=1)
        axis.axhline(limit, color="black", linestyle=":", linewidth=1.4)
        axis.set(xlabel="bits to the nearest centre", ylabel="residual of the decoder, L1")
        figure.legend(loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure
