"""Numbers about label trees: what a mistake costs in each measure, random classifiers, prototypes in three steps."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from lib.geometry import Euclidean, PoincareBall
from lib.metrics import hierarchy
from lib.metrics.retrieval import PerQuery
from lib.papers.label_tree import published
from lib.results.markdown import markdown_table
from lib.taxonomy import Taxonomy

with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # geoopt's use of torch.jit
    from geoopt.manifolds.stereographic import math as gyro

MEASURES = {"hf1": "HF1, with root", "hf1_below_root": "HF1, without", "h_acc": "H-Acc"}
"""The columns of :func:`lib.metrics.hierarchy.of_predictions` that say how bad an answer is, and their names."""


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
        found = hierarchy.of_predictions(right, answer, tree).rename(columns={"shared_depth": "shared"})
        depths, names = tree.leaf_depths(), np.array(tree.leaves)
        found["upper"], found["lower"] = np.sort(np.stack([depths[right], depths[answer]]), axis=0)
        found["right"], found["answer"] = names[right], names[answer]
        found["edges"] = tree.distance()[right, answer]
        # A right answer is one kind, however deep its class ends.
        found.loc[found["top1"] == 1, ["upper", "lower", "shared"]] = tree.depth
        kinds = found.groupby(["top1", "upper", "lower", "shared"], sort=False)
        first = kinds.head(1).assign(pairs=kinds["top1"].transform("size"), tree=tree.name)
        first["common"] = [_meeting(tree, *pair) for pair in zip(first["right"], first["answer"], strict=True)]
        parts.append(first.sort_values(["top1", "h_acc", "hf1"], ascending=False, kind="stable"))
    columns = ["tree", "right", "answer", "common", "edges", "pairs", *MEASURES]
    return pd.concat(parts, ignore_index=True)[columns]


def _meeting(tree: Taxonomy, one: str, other: str) -> str:
    shared = [node for node in tree.ancestors(one) if node in tree.ancestors(other)]
    return shared[-1]


def mistakes_layout(rows: pd.DataFrame) -> str:
    """The rows of :func:`mistakes` as Markdown."""
    shown = rows.rename(columns={"common": "deepest common group", **MEASURES})
    for name in MEASURES.values():
        shown[name] = shown[name].map("{:.3f}".format)
    shown["tree"] = shown["tree"].where(~shown["tree"].duplicated(), "")
    return markdown_table(shown)


def classifiers(trees: Sequence[Taxonomy], n: int = 120, images: int = 400, seed: int = 0) -> pd.DataFrame:
    """Made-up classifiers, good and bad ones, judged on ``images`` made-up answers each.

    A classifier is right with a probability of its own; where it is wrong, it prefers near classes to far ones, as
    strongly as it does, or far ones.

    Returns:
        A row for each: columns tree, depth, balanced, top1, and :data:`MEASURES`, as fractions.
    """
    rng = np.random.default_rng(seed)
    parts = []
    for tree in trees:
        distance = tree.distance()
        for _ in range(n):
            right = rng.integers(len(tree.leaves), size=images)
            pull = np.exp(-rng.uniform(-1.5, 1.5) * distance[right]) * (distance[right] > 0)
            # A draw by the weights of each row: the first column whose running sum passes a uniform number.
            chance = (pull / pull.sum(axis=1, keepdims=True)).cumsum(axis=1)
            wrong = (chance < rng.random((images, 1))).sum(axis=1).clip(max=len(tree.leaves) - 1)
            answer = np.where(rng.random(images) < rng.uniform(0.2, 0.95), right, wrong)
            means = hierarchy.of_predictions(right, answer, tree).drop(columns="shared_depth").mean()
            parts.append({"tree": tree.name, "depth": tree.depth, "balanced": tree.is_balanced} | means.to_dict())
    return pd.DataFrame(parts)


def beside_parents() -> tuple[torch.Tensor, torch.Tensor, pd.DataFrame]:
    """Five points of the plane beside the prototypes of two groups: the points, the prototypes and what is measured.

    Returns:
        z (5, 2), prototypes (2, 2), and a row per point: columns point, group, to_own, to_other, order, violation.
    """
    training = torch.tensor([[-2.0, 0.5], [-1.0, -0.5], [1.0, 0.5], [2.0, -0.5]])
    centres = hierarchy.prototypes(training, [0, 0, 1, 1], 2, Euclidean())
    z = torch.tensor([[-1.5, 0.8], [-0.4, -0.7], [0.0, 0.4], [0.7, 0.6], [1.8, -0.2]])
    own = np.array([0, 0, 0, 0, 1])
    distance = Euclidean().pairwise(z, centres)
    found = hierarchy.parent_order(distance, own)
    rows = pd.DataFrame({"point": list("abcde"), "group": np.array(["benign", "malignant"])[own]})
    rows["to_own"], rows["to_other"] = (distance[range(5), torch.from_numpy(at)].numpy() for at in (own, 1 - own))
    return z, centres, rows.assign(order=found.order, violation=found.violation)


def chance(trees: Sequence[Taxonomy], images: int = 50, k: int = 5) -> pd.DataFrame:
    """What each measure gives to who knows nothing: every class answered, and every order of groups, equally often.

    Args:
        images: of each class in the archive, for R@k: is the query's class among the first k of a random order?

    Returns:
        Columns tree, classes, groups (of level 1), top1, :data:`MEASURES`, order, violation, hit_rate, as fractions.
    """
    rows = []
    for tree in trees:
        classes, groups = len(tree.leaves), len(tree.level(1))
        right, answer = (codes.ravel() for codes in np.indices((classes, classes)))
        means = hierarchy.of_predictions(right, answer, tree).drop(columns="shared_depth").mean()
        # A row of distances for each rank that the own group, number 0, can have.
        ranks = np.stack([np.roll(np.arange(groups, dtype=float), place) for place in range(groups)])
        beside = hierarchy.parent_order(ranks, np.zeros(groups, dtype=int))
        blank = pd.DataFrame([[0.0]], columns=pd.MultiIndex.from_tuples([("hit_rate", k)], names=["metric", "k"]))
        found = PerQuery(blank, np.array([0]), np.array([images]), np.array([images * classes])).chance
        known = {"tree": tree.name, "classes": classes, "groups": groups} | means.to_dict()
        known |= {"order": beside.order.mean(), "violation": beside.violation.mean()}
        rows.append(known | {"hit_rate": found.iloc[0, 0]})
    return pd.DataFrame(rows)


def chance_layout(rows: pd.DataFrame, k: int = 5) -> str:
    """The rows of :func:`chance` as Markdown, percent."""
    names = {"top1": "Top-1", **MEASURES, "order": "PC-Order", "violation": "Violations", "hit_rate": f"R@{k}"}
    shown = rows.rename(columns={"groups": "groups of level 1", **names})
    for name in names.values():
        shown[name] = (100 * shown[name]).map("{:.1f}".format)
    return markdown_table(shown)


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


def matrix_rows(trees: Sequence[Taxonomy]) -> pd.DataFrame:
    """ρ and the edges between every two leaves: columns tree, one, other, rho, edges."""
    parts = []
    for tree in trees:
        n = len(tree.leaves)
        one, other = (np.array(tree.leaves)[codes.ravel()] for codes in np.indices((n, n)))
        rho, edges = tree.rho().ravel(), tree.distance().ravel()
        parts.append(pd.DataFrame({"tree": tree.name, "one": one, "other": other, "rho": rho, "edges": edges}))
    return pd.concat(parts, ignore_index=True)


def printed_breakhis() -> pd.DataFrame:
    """Table 1 beside :func:`classifiers`: columns method, top1, hf1, h_acc."""
    rows = published.results()
    rows = rows[rows["dataset"] == "breakhis"]
    return rows[["method", "Top-1", "HF1", "H-Acc"]].set_axis(["method", "top1", "hf1", "h_acc"], axis=1)
