"""Pushes in pictures: over γ, over the distance, and where centres end up."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.losses import label_tree as losses
from lib.papers.label_tree.objectives import forces

LOOK = {
    kind: {"color": style.PALETTE[number], "marker": style.MARKERS[number], "label": name}
    for number, (kind, name) in enumerate(
        {
            forces.PLAIN: "no weights (SupCon)",
            losses.PRINTED: "as printed: ω·(−d/τ)",
            losses.COSINE: "cosine: ω·cos/τ",
            losses.SHIFTED: "shifted: ω·(d̄ − d)/τ",
            losses.DIVIDED: "divided: −d/(ωτ)",
        }.items()
    )
}


def effects(by_gamma: pd.DataFrame, by_distance: pd.DataFrame) -> Figure:
    """What the weights do to far against sibling: over γ at two distances of the far images, and over that distance.

    by_gamma: of :func:`.forces.effects` with two scenes; by_distance: with many, and one γ.
    """
    with style.house():
        figure, axes = plt.subplots(1, 3, figsize=(style.WIDTH, 3.8), sharey=True)
        for axis, (far, part) in zip(axes, by_gamma.groupby("far_at"), strict=False):
            _lines(axis, part, "gamma", markersize=4)
            axis.set(
                xlabel="γ, how much the tree weighs",
                title=f"siblings at {part['sibling_at'].iloc[0]:g}, far at {far:g}",
            )
        gamma, at = (by_distance[name].iloc[0] for name in ("gamma", "sibling_at"))
        _lines(axes[2], by_distance, "far_at", markersize=4, markevery=5)
        axes[2].axvline(at, color="0.5", linewidth=0.8, linestyle=":")
        axes[2].set(xlabel="distance of far images (chord)", title=f"siblings at {at:g}, γ = {gamma:g}")
        axes[0].set(yscale="log", ylabel="far : sibling, over that without weights\n(log scale)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _lines(axis: plt.Axes, rows: pd.DataFrame, x: str, **look: float) -> None:
    """The effect of each form over the column ``x``, and a line where weights do nothing."""
    for kind, part in rows.groupby("kind", sort=False):
        axis.plot(part[x], part["effect"], **LOOK[kind], **look)
    axis.axhline(1, color="black", linewidth=0.8)


def pushes(rows: pd.DataFrame) -> Figure:
    """What a multiplier does to a push at distance d; rows: of :func:`.forces.relative`."""
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH * 0.7, 3.2))
        for number, (omega, part) in enumerate(rows.groupby("omega")):
            dashes = style.DASHES[number] or (None, None)
            axis.plot(part["distance"], part["push"], color="black", dashes=dashes, label=f"ω = {omega:g}")
        axis.axhline(1, color="black", linewidth=0.8)
        axis.set(yscale="log", ylim=(1e-4, 3), xlabel="distance d of the negative (chord)")
        axis.set_ylabel("push as printed, over that with ω = 1\n(log scale)")
        axis.legend()
        plt.close(figure)
    return figure


def centres(rows: pd.DataFrame) -> Figure:
    """Distances of free centres, siblings and far classes; rows: of :func:`.forces.simulation`."""
    names = list(dict.fromkeys(f"{row.kind}, γ = {row.gamma:g}" for row in rows.itertuples()))
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 0.9 + 0.3 * len(names)))
        for number, (part, title) in enumerate((("siblings", "siblings"), ("far", "other branch"))):
            means = rows.groupby(["kind", "gamma"], sort=False)[part].agg(["mean", "std"])
            look = {"color": style.PALETTE[number], "fmt": style.MARKERS[number], "capsize": 2, "label": title}
            axis.errorbar(means["mean"], range(len(names)), xerr=means["std"], **look)
        axis.set_yticks(range(len(names)), names)
        axis.invert_yaxis()
        axis.set(xlabel="mean distance of centres (chord; at most 2)", ylabel="form of the loss")
        figure.legend(loc="outside lower center", ncols=2)
        plt.close(figure)
    return figure


def explorer(scene: forces.Scene, tau: float, alpha: float, gamma: float, margin: float) -> Figure:
    """What the sliders show: pushes of each form on one sibling and one far image, and the hinge of LAM."""
    found = {kind: forces.forces(scene, tau, alpha, gamma, kind) for kind in forces.KINDS}
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(7.0, 3.6), width_ratios=(1.5, 1))
        places = np.arange(len(found))
        for number, (part, hatch) in enumerate((("sibling", ""), ("far", "//"))):
            values = [max(one[part], 1e-12) for one in found.values()]
            look = {"color": style.PALETTE[number], "hatch": hatch, "edgecolor": "black", "linewidth": 0.4}
            axes[0].bar(places + 0.4 * number - 0.2, values, 0.38, label=f"push on one {part} image", **look)
        axes[0].set_ylabel("push (share of the gradient)")
        axes[0].set_yscale("log")
        axes[0].set_ylim(1e-10, 300)
        axes[0].set_yticks([1e-9, 1e-6, 1e-3, 1])
        axes[0].set_xticks(places, found, rotation=25)
        axes[0].legend(loc="upper left")
        gap = np.linspace(-1, 1, 101)
        axes[1].plot(gap, np.maximum(0, margin - gap), color="black")
        axes[1].axvline(margin, color=style.PALETTE[3], linestyle="--", label=f"m = {margin:g}")
        axes[1].set_xlabel("d⁻ − d⁺: wrong − own ancestor")
        axes[1].set_ylabel("LAM of one image (Eq. 11)")
        axes[1].legend()
        plt.close(figure)
    return figure
