"""Label trees in pictures: drawn trees, kinship and distances, measures against each other, prototypes."""

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from torch import Tensor

from lib.figures import style
from lib.papers.label_tree.taxonomies import tables
from lib.taxonomy import Taxonomy

EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5}


def trees(several: Sequence[Taxonomy], titles: Sequence[str], columns: int, height: float, size: float = 8) -> Figure:
    """Trees from the root (left) to the leaves (right), a panel each; groups below the root have a colour each.

    titles: above each panel. columns: panels beside each other. height: of the figure in inches. size: of the names.
    """
    with style.house():
        rows = -(-len(several) // columns)
        figure, axes = plt.subplots(rows, columns, figsize=(style.WIDTH, height), squeeze=False)
        for axis in axes.ravel()[len(several) :]:
            axis.remove()
        for axis, tree, title in zip(axes.ravel(), several, titles, strict=False):
            _tree(axis, tree, size)
            axis.set_title(title)
        plt.close(figure)
    return figure


def in_order(tree: Taxonomy) -> list[str]:
    """The leaves as the tree is drawn, top down: kin beside each other."""

    def below(node: str) -> list[str]:
        return [leaf for child in tree.children(node) for leaf in below(child)] or [node]

    return below(tree.root)


def _tree(axis: plt.Axes, tree: Taxonomy, size: float) -> None:
    height = {leaf: -float(row) for row, leaf in enumerate(in_order(tree))}
    for node in reversed(tree.nodes):  # children before their parents
        if node not in height:
            height[node] = float(np.mean([height[child] for child in tree.children(node)]))
    branches = {node: number for number, node in enumerate(tree.level(1))}
    for node, parent in tree.parents.items():
        depth = tree.depth_of(node)
        ends = [height[parent], height[node], height[node]]
        axis.plot([depth - 1, depth - 1, depth], ends, "-", color="0.6", linewidth=0.9, zorder=1)
    for node in tree.nodes:
        depth, leaf = tree.depth_of(node), not tree.children(node)
        branch = branches[tree.ancestors(node)[1]] if depth else None
        colour = "black" if branch is None else style.PALETTE[branch % len(style.PALETTE)]
        marker = "s" if branch is None else style.MARKERS[branch % len(style.MARKERS)]
        axis.plot(depth, height[node], marker, color=colour, markersize=4 if leaf else 5.5, zorder=3, **EDGE)
        # The name of a group stands in front of the lines to what is below it.
        place = {"xytext": (6, 0), "va": "center"} if leaf else {"xytext": (4, 4), "va": "bottom"}
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        name = style.legible(node.rsplit("/", 1)[-1].replace("_", " "))
        axis.annotate(name, (depth, height[node]), textcoords="offset points", fontsize=size, bbox=paper, **place)
    axis.set(xlim=(-0.08 * tree.depth, 1.52 * tree.depth), ylim=(min(height.values()) - 0.8, 1.2))
    axis.set_xticks(range(tree.depth + 1))
    axis.set_xlabel("level (steps from the root)")
    axis.set_yticks([])
    axis.grid(False)
    axis.spines[:].set_visible(False)


def matrices(several: Sequence[Taxonomy]) -> Figure:
    """ρ (eq. 4) and the edges between every two leaves, a row of panels for each tree, kin beside each other."""
    with style.house():
        figure, axes = plt.subplots(len(several), 2, figsize=(style.WIDTH, 3.5 * len(several)), squeeze=False)
        for pair, tree in zip(axes, several, strict=True):
            order = tree.codes(in_order(tree))
            for axis, values, what in zip(pair, (tree.rho(), tree.distance()), ("kinship ρ", "edges"), strict=True):
                _heat(axis, values[np.ix_(order, order)], [tree.leaves[code] for code in order], near=values[0, 0])
                axis.set_title(f"{tree.name}: {what}")
            pair[0].set_ylabel("class")
            pair[1].set_yticks([])
        plt.close(figure)
    return figure


def _heat(axis: plt.Axes, values: np.ndarray, names: Sequence[str], near: float) -> None:
    """Numbers with their values; ``near``, that of a class with itself, is dark."""
    dark = np.abs(values - near) / np.abs(values - near).max()
    axis.imshow(1 - dark, cmap="Blues", vmin=0, vmax=1)
    for row, column in np.ndindex(*values.shape):
        text = f"{values[row, column]:.2g}".removeprefix("0") or "0"
        colour = "white" if dark[row, column] < 0.4 else "black"
        axis.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    axis.set_xticks(range(len(names)), labels=names, rotation=45, ha="right", rotation_mode="anchor")
    axis.set_yticks(range(len(names)), labels=names)
    axis.tick_params(labelsize=7)
    axis.grid(False)


def measures(rows: pd.DataFrame, printed: pd.DataFrame) -> Figure:
    """HF1 against H-Acc, with the root and without: made-up classifiers on every tree, and the rows of Table 1.

    rows: of :func:`lib.papers.label_tree.taxonomies.tables.classifiers`. printed: of
    :func:`lib.papers.label_tree.taxonomies.tables.printed_breakhis`.
    """
    with style.house():
        figure, axes = plt.subplots(1, 2, figsize=(style.WIDTH, 3.6), sharex=True, sharey=True)
        for axis, name in zip(axes, ("hf1", "hf1_below_root"), strict=True):
            for number, (tree, part) in enumerate(rows.groupby("tree", sort=False)):
                look = {"markersize": 4.5, "markerfacecolor": "none", "color": style.PALETTE[number]}
                axis.plot(part["h_acc"], part[name], style.MARKERS[number], label=tree, **look)
            look = {"color": "black", "markersize": 5, "linestyle": ""}
            axis.plot(printed["h_acc"], printed["hf1"], "*", label="BreakHis, the paper's Table 1", **look)
            axis.set(xlabel="H-Acc (0 to 1)", title=tables.MEASURES[name], xlim=(0.2, 1), ylim=(0.2, 1), aspect="equal")
        axes[0].set_ylabel("HF1 (0 to 1)")
        figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        plt.close(figure)
    return figure


def parents(z: Tensor, centres: Tensor, rows: pd.DataFrame) -> Figure:
    """Points beside the prototypes of two groups, and the line of equal distance between these.

    z, centres, rows: of :func:`lib.papers.label_tree.taxonomies.tables.beside_parents`.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH * 0.8, 3.3))
        groups = list(dict.fromkeys(rows["group"]))
        for number, (name, centre) in enumerate(zip(groups, centres.tolist(), strict=True)):
            look = {"color": style.PALETTE[number], "markersize": 13, "linestyle": ""}
            axis.plot(*centre, "*", label=f"prototype of {name}", **look, **EDGE)
            points = z[np.flatnonzero(rows["group"] == name).tolist()]
            look |= {"markersize": 6, "marker": style.MARKERS[number]}
            axis.plot(*points.T.numpy(), label=f"images that are {name}", **look, **EDGE)
        axis.axvline(0, color="0.4", linestyle="--", linewidth=1, label="equally near to both")
        for name, point in zip(rows["point"], z.tolist(), strict=True):
            axis.annotate(name, point, (7, 5), textcoords="offset points", fontsize=9)
        axis.set(xlim=(-2.2, 2.4), ylim=(-1.0, 1.2), aspect="equal", xlabel="$z_1$", ylabel="$z_2$")
        axis.set_yticks([-1, 0, 1])
        figure.legend(loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def steps(rows: pd.DataFrame, taken: int) -> Figure:
    """The distance that is left to the mean after each step of eq. 3, for points nearer to and further from it.

    rows: of :func:`lib.papers.label_tree.taxonomies.tables.steps`. taken: how many the paper takes.
    """
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH * 0.85, 3.0))
        for number, (length, part) in enumerate(rows.groupby("length")):
            look = {"color": style.PALETTE[number], "marker": style.MARKERS[number], "markersize": 4}
            dashes = style.DASHES[number] or (None, None)
            axis.plot(part["step"], part["left"], label=f"{length:g}", dashes=dashes, **look)
        axis.axvline(taken, color="0.4", linewidth=1, zorder=1)
        axis.annotate(f"the paper takes {taken}", (taken, 5), (4, 0), textcoords="offset points", fontsize=8)
        axis.set(yscale="log", ylim=(1e-4, 10), xlabel="step", ylabel="distance to the mean (log scale)")
        figure.legend(loc="outside center right", title="points around their mean,\nat a distance of")
        plt.close(figure)
    return figure
