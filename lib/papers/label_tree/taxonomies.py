"""Label trees and their measures: drawn trees, what a mistake costs, the walk to the mean, and Tables 1 to 3.

The published tables are checked against themselves: errata LT-4 to LT-8.
"""

import warnings
from collections.abc import Sequence
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import torch
from matplotlib.figure import Figure

from lib.figures import style
from lib.geometry import PoincareBall
from lib.metrics import hierarchy
from lib.papers.label_tree import published
from lib.study.columns import Column, Layout
from lib.study.markdown import markdown_table
from lib.taxonomy import Taxonomy

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    from geoopt.manifolds.stereographic import math as gyro

MEASURES = {"hf1": "HF1, with root", "hf1_below_root": "HF1, without", "h_acc": "H-Acc"}
"""The columns of :func:`lib.metrics.hierarchy.of_predictions` that say how bad an answer is, and their names."""
ROUNDING = 0.0005
"""Half of the last printed digit; a sum or difference of two printed values can be off by twice that."""
YES, NO, TIES = "fits", "**impossible**", "ties only"
PANELS = {"breakhis": "BreakHis", "odir": "ODIR", "ham10000": "HAM", "in_shop": "InShop", "inaturalist": "iNat"}
EDGE = {"markeredgecolor": "black", "markeredgewidth": 0.5}


# Trees


def trees_figure(trees: Sequence[Taxonomy], columns: int, height: float, size: float = 8) -> Figure:
    """Trees from the root (left) to the leaves (right), a panel each; groups below the root have a colour each.

    columns: panels beside each other. height: of the figure in inches. size: of the names.
    """
    with style.house():
        rows = -(-len(trees) // columns)
        figure, axes = plt.subplots(rows, columns, figsize=(style.WIDTH, height), squeeze=False)
        for axis in axes.ravel()[len(trees) :]:
            axis.remove()
        for axis, tree in zip(axes.ravel(), trees, strict=False):
            _tree(axis, tree, size)
            axis.set_title(tree.name)
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


def tree_rows(trees: Sequence[Taxonomy]) -> pd.DataFrame:
    """Every node of some trees: columns tree, node, parent ("" for the root), depth, leaf (True or False)."""
    return pd.DataFrame(
        {
            "tree": tree.name,
            "node": node,
            "parent": tree.parents.get(node, ""),
            "depth": tree.depth_of(node),
            "leaf": not tree.children(node),
        }
        for tree in trees
        for node in tree.nodes
    )


# Measures


def mistakes(trees: Sequence[Taxonomy]) -> pd.DataFrame:
    """Every kind of answer that a tree tells apart, once: what it costs in each measure.

    Two pairs of classes are of one kind if their depths and the depth of their lowest common ancestor are the same.

    Returns:
        Columns tree, right, answer (an example: the first by name), common (the deepest group that both are in), edges,
        pairs (how many ordered pairs of classes are of the kind), and :data:`MEASURES`; the right answer first, then by
        falling H-Acc.
    """
    parts = []
    for tree in trees:
        right, answer = (codes.ravel() for codes in np.indices((len(tree.leaves), len(tree.leaves))))
        kinds = hierarchy.of_predictions(right, answer, tree).rename(columns={"shared_depth": "shared"})
        depths, names = tree.leaf_depths(), np.array(tree.leaves)
        kinds["upper"], kinds["lower"] = np.sort(np.stack([depths[right], depths[answer]]), axis=0)
        kinds["right"], kinds["answer"] = names[right], names[answer]
        kinds["edges"] = tree.distance()[right, answer]
        # A right answer is one kind, however deep its class ends.
        kinds.loc[kinds["top1"] == 1, ["upper", "lower", "shared"]] = tree.depth
        alike = kinds.groupby(["top1", "upper", "lower", "shared"], sort=False)
        first = alike.head(1).assign(pairs=alike["top1"].transform("size"), tree=tree.name)
        first["common"] = [_meeting(tree, *pair) for pair in zip(first["right"], first["answer"], strict=True)]
        parts.append(first.sort_values(["top1", "h_acc", "hf1"], ascending=False, kind="stable"))
    columns = ["tree", "right", "answer", "common", "edges", "pairs", *MEASURES]
    return pd.concat(parts, ignore_index=True)[columns]


def _meeting(tree: Taxonomy, one: str, other: str) -> str:
    shared = [node for node in tree.ancestors(one) if node in tree.ancestors(other)]
    return shared[-1]


def steps(lengths: Sequence[float], n_steps: int = 12, n: int = 50, dim: int = 8, seed: int = 3) -> pd.DataFrame:
    """How far eq. 3 with beta = 1 is from the Fréchet mean after each of its steps, which begin at the origin.

    Args:
        lengths: how far the ``n`` made-up points are from the point around which they lie, in the ball with c = 1.
        n_steps: the paper takes 3.
        dim: of the ball.

    Returns:
        Columns length, step (0 is the origin), left (distance to the mean).
    """
    ball, k = PoincareBall(1.0), torch.tensor(-1.0, dtype=torch.float64)
    directions = torch.randn(n, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    directions = directions / directions.norm(dim=1, keepdim=True)
    rows = []
    for length in lengths:
        points = gyro.mobius_add(0.3 * torch.eye(dim, dtype=torch.float64)[0], ball.exp0(length / 2 * directions), k=k)
        mean = hierarchy.prototypes(points, np.zeros(n, dtype=int), 1, ball)[0]
        centre = torch.zeros(dim, dtype=torch.float64)
        for step in range(n_steps + 1):
            left = float(ball.between(centre, mean))
            rows.append({"length": length, "step": step, "left": left})
            centre = gyro.expmap(centre, gyro.logmap(centre, points, k=k).mean(0), k=k)
    return pd.DataFrame(rows)


# The published tables


def hf1_and_top1() -> pd.DataFrame:
    """LT-4: HF1 of a set of predictions is at least its Top-1; 36 rows have both.

    Columns dataset, method, top1, hf1, difference (HF1 − Top-1), verdict.
    """
    rows = published.results().dropna(subset="Top-1")
    difference = rows["HF1"] - rows["Top-1"]
    table = rows[["dataset", "method"]].assign(top1=rows["Top-1"], hf1=rows["HF1"], difference=difference)
    return table.assign(verdict=np.where(difference >= -2 * ROUNDING, YES, NO)).reset_index(drop=True)


def breakhis() -> pd.DataFrame:
    """LT-4 and LT-5 on Table 1, whose tree is printed: what HF1 has to be, given H-Acc and Top-1.

    With L = 2 the share s of sibling mistakes makes H-Acc = Top-1 + s/2 and HF1 without the root the same; with the
    root HF1 = 1/3 + 2/3 H-Acc. With L = 3 even the worst answer has H-Acc 1/3: it is 4 edges away, of 2L = 6.

    Columns method, top1, h_acc, hf1 (printed), hf1_below_root, hf1_with_root (what they would have to be), siblings
    (s), least_l3 (the least H-Acc if L were 3), verdict (of HF1), verdict_l3.
    """
    rows = published.results().query("dataset == 'breakhis'").reset_index(drop=True)
    top1, h_acc, hf1 = rows["Top-1"], rows["H-Acc"], rows["HF1"]
    with_root, least = (1 + 2 * h_acc) / 3, top1 + (1 - top1) / 3
    fits = ((hf1 - h_acc).abs() <= 2 * ROUNDING) | ((hf1 - with_root).abs() <= 2 * ROUNDING)
    table = rows[["method"]].assign(top1=top1, h_acc=h_acc, hf1=hf1, hf1_below_root=h_acc, hf1_with_root=with_root)
    table = table.assign(siblings=2 * (h_acc - top1), least_l3=least, verdict=np.where(fits, YES, NO))
    return table.assign(verdict_l3=np.where(h_acc >= least - 2 * ROUNDING, YES, NO))


def sums() -> pd.DataFrame:
    """LT-6: PC-Order and Violations are shares of right and wrong answers to one question, so they add up to 1.

    Columns dataset, method, order, violations, sum, verdict. A sum above 1 can come from ties, if there are many; a sum
    below 1 from nothing.
    """
    rows = published.results()
    total = rows["PC-Order"] + rows["Violations"]
    verdict = np.select([total < 1 - 2 * ROUNDING, total > 1 + 2 * ROUNDING], [NO, TIES], YES)
    table = rows[["dataset", "method"]].assign(order=rows["PC-Order"], violations=rows["Violations"], sum=total)
    return table.assign(verdict=verdict)


def gains() -> pd.DataFrame:
    """LT-7 and LT-8: what HWC+LAM gains over SimCLR (Euclidean), for each space, and what the other space adds.

    Columns dataset, metric, euclidean, hyperbolic (percentage points; of Violations the drop in percent), and step: the
    hyperbolic value minus the Euclidean one in points, positive where hyperbolic space is better.
    """
    rows = published.results().melt(["dataset", "method"], var_name="metric").dropna(subset="value")
    wide = rows.pivot(index=["dataset", "metric"], columns="method", values="value")
    base, (flat, curved) = wide[published.BASE], (wide[name] for name in published.OURS)
    drop = wide.index.get_level_values("metric") == "Violations"
    gain = {
        name: np.where(drop, 100 * (base - value) / base, 100 * (value - base))
        for name, value in {"euclidean": flat, "hyperbolic": curved}.items()
    }
    step = np.where(drop, 100 * (flat - curved), 100 * (curved - flat))
    table = pd.DataFrame(gain | {"step": step}, index=wide.index)
    order = pd.MultiIndex.from_product([published.DATASETS, published.METRICS])
    return table.reindex(order[order.isin(table.index)]).rename_axis(["dataset", "metric"]).reset_index()


def ranges() -> pd.DataFrame:
    """LT-7: the ranges of the prose beside those of the tables.

    Columns section, metric, datasets, stated, euclidean, hyperbolic (as text, lowest to highest), low, high: in which
    space the tables have that end of the range, rounded as the text rounds it; and verdict.
    """
    table, parts = gains(), []
    for row in published.ranges().itertuples():
        part = table[table["metric"].eq(row.metric) & table["dataset"].isin(row.datasets)]
        one = len(row.datasets) == 1
        where = PANELS[row.datasets[0]] if one else ("all five" if len(row.datasets) == 5 else "all but InShop")
        ends = {space: (part[space].min(), part[space].max()) for space in ("euclidean", "hyperbolic")}
        text = {space: f"{low:.1f}" if one else f"{low:.1f} to {high:.1f}" for space, (low, high) in ends.items()}
        low, high = ({name for name, pair in ends.items() if _rounds(pair[i], end)} for i, end in enumerate(row[4:6]))
        verdict = YES if low & high else "**two spaces mixed**" if low and high else NO.replace("impossible", "wrong")
        about = {"section": row.section, "metric": row.metric, "datasets": where}
        about["stated"] = f"{row.low:g}" if one else f"{row.low:g} to {row.high:g}"
        spaces = {"low": " or ".join(sorted(low)) or "neither", "high": " or ".join(sorted(high)) or "neither"}
        parts.append(about | text | spaces | {"verdict": verdict})
    return pd.DataFrame(parts)


def _rounds(value: float, stated: float) -> bool:
    """Whether ``value`` is ``stated`` after rounding to as many decimals, give or take the rounding of the tables."""
    digits = 0 if stated == round(stated) else 1
    return abs(value - stated) <= 0.5 * 10**-digits + 1e-6


def panels(rows: pd.DataFrame, value: str, form: str) -> str:
    """A value of every method (rows) and dataset (columns) as Markdown; what is impossible is marked ✗, ties only ~."""
    signs = {YES: "", NO: " ✗", TIES: " ~"}
    text = rows[value].map(form.format) + rows["verdict"].map(signs)
    wide = rows.assign(text=text).pivot(index="method", columns="dataset", values="text")
    wide = wide.loc[list(published.METHODS), [name for name in PANELS if name in wide]].rename(columns=PANELS)
    return markdown_table(wide.reset_index().rename_axis(columns=None))


def _percent(value: float) -> str:
    return f"{100 * round(value, 4):.1f}"


def _step(value: float) -> str:
    return f"{value:+.1f}" + (" ✗" if value < 0 else "")


PRINTED = {"top1": "Top-1", "h_acc": "H-Acc", "hf1": "HF1, printed"}
HAS_TO_BE = {
    "hf1_below_root": "HF1 without root has to be",
    "hf1_with_root": "with root",
    "least_l3": "L = 3: H-Acc from",
}
RANGES = ("section", "metric", "datasets", "stated", "euclidean", "hyperbolic", "low", "high", "verdict")
LAYOUTS = {
    "table_mistakes": Layout(
        [
            *map(Column, ("tree", "right", "answer")),
            Column("deepest common group", "common"),
            *(Column(name, form="0") for name in ("edges", "pairs")),
            *(Column(title, name, "3") for name, title in MEASURES.items()),
        ],
        by=("tree", "right", "answer"),
    ),
    "table_hf1": partial(panels, value="difference", form="{:+.3f}"),
    "table_sums": partial(panels, value="sum", form="{:.3f}"),
    "table_breakhis": Layout(
        [
            Column("method"),
            *(Column(title, name, "3") for name, title in (PRINTED | HAS_TO_BE).items()),
            Column("siblings (% of images)", "siblings", _percent),
            *(Column(title, name) for name, title in {"verdict": "HF1", "verdict_l3": "L = 3"}.items()),
        ]
    ),
    "table_gains": Layout(
        [
            Column("dataset", form=lambda name: PANELS[name]),
            *(Column(name, form="1") for name in ("metric", "euclidean", "hyperbolic")),
            Column("hyperbolic − Euclidean, points", "step", _step),
        ],
        by=("dataset", "metric"),
    ),
    "table_ranges": Layout(
        [Column(name, form="{:g}") for name in RANGES],
        by=("section", "metric", "datasets"),
    ),
}
