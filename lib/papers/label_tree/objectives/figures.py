"""Pushes in pictures: against γ, against the distance, and where centres end up."""

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


def ratios(rows: pd.DataFrame, pushes: pd.DataFrame) -> Figure:
    """Left: push on a far class over push on a sibling, for each γ; right: what a multiplier does to a push at d.

    rows: of :func:`.forces.ratios`; pushes: of :func:`.forces.relative`.
    """
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6))
        for kind, part in rows.groupby("kind", sort=False):
            axes[0].plot(part["gamma"], part["ratio"], markersize=4, **LOOK[kind])
        axes[0].axhline(1, color="black", linewidth=0.8)
        axes[0].set_yscale("log")
        axes[0].set_xlabel("γ, how much the tree weighs (no unit)")
        axes[0].set_ylabel("push: far class / sibling (log scale)")
        for number, (omega, part) in enumerate(pushes.groupby("omega")):
            dashes = style.DASHES[number] or (None, None)
            axes[1].plot(part["distance"], part["push"], color="black", dashes=dashes, label=f"ω = {omega:g}")
        axes[1].axhline(1, color="black", linewidth=0.8)
        axes[1].set_yscale("log")
        axes[1].set_ylim(1e-4, 3)
        axes[1].set_xlabel("distance d of the negative (chord)")
        axes[1].set_ylabel("push as printed, over that with ω = 1")
        axes[1].legend()
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
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
        axes[0].set_ylim(1e-7, 300)
        axes[0].set_yticks([1e-6, 1e-4, 1e-2, 1])
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
