"""Which wrong answers are left: how far up the tree they go, and which class is taken for which."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from lib.metrics import hierarchy
from lib.papers.label_tree.experiment import Images, Scored
from lib.papers.label_tree.names import BOTH, FLAT, NONE, SUPCON
from lib.papers.label_tree.results.tables import Found
from lib.results.markdown import markdown_table, percent
from lib.taxonomy import Taxonomy

COMPARED = (NONE, SUPCON + FLAT, BOTH + FLAT)
"""Whose confusions are shown."""
FEWEST = 2
"""A confusion of fewer images in a training is an accident."""
NAMED = 4
"""The groups of a level are named where they are no more than these."""


def rows(found: Found, tree: Taxonomy) -> pd.DataFrame:
    """How far up wrong answers go: columns method, depth, share, of_mistakes.

    depth: of the lowest common ancestor; share: of all answers, of_mistakes: of the wrong ones, percent.
    """
    lines = []
    for method, several in found.items():
        values = pd.concat([one.values for one in several])
        counted = hierarchy.severity(values["leaf"].to_numpy(), values["predicted"].to_numpy(), tree)
        for one in counted[::-1].itertuples():
            share, of_mistakes = 100 * one.mistakes / len(values), 100 * one.share
            lines.append({"method": method, "depth": one.depth, "share": share, "of_mistakes": of_mistakes})
    return pd.DataFrame(lines)


def levels(tree: Taxonomy) -> list[str]:
    """What a mistake is called whose lowest common ancestor has the depth 0, 1, ..., for who does not know the tree."""
    if tree.depth == 1:
        return ["wrong class"]
    names = []
    for level in range(1, tree.depth):
        if set(tree.level(level)) & set(tree.leaves):  # a class that hangs there has no group to stay in
            names.append(f"wrong from branching {level} on: another group, or a class without one")
            continue
        groups = [node.rpartition("/")[2].replace("_", " ") for node in tree.level(level)]
        listed = f" ({', '.join(groups)})" if len(groups) <= NAMED else f" (of {len(groups)})"
        names.append(f"wrong group of level {level}{listed}")
    return [*names, "right group, wrong class"]


def layout(table: pd.DataFrame) -> str:
    """:func:`rows` as Markdown, a row per method."""
    lines = []
    for method, part in table.groupby("method", sort=False):
        of_mistakes = part.set_index("depth")["of_mistakes"]
        cells = {"method": method, "wrong": percent(part["share"].sum())}
        depths = sorted(of_mistakes.index)
        cells |= {f"goes wrong at level {depth + 1}": percent(of_mistakes[depth]) for depth in depths}
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


def confusions(found: Found, seen: Images, each: int = 4) -> pd.DataFrame:
    """The commonest confusions, by their mean over :data:`COMPARED`: ``each`` of two groups, and as many inside of one.

    Images whose leaf has no training image are left out, as no answer to them can be right; and so is what happens to
    fewer than :data:`FEWEST` images of a training. Columns method, true, answered, kin (whether both are below one
    group under the root), share (percent of all answers), spread (over trainings).
    """
    tree, shown = seen.tree, {name: [_learnt(one, seen) for one in found[name]] for name in COMPARED if name in found}
    counts = {name: _by_training(several, len(tree.leaves)) for name, several in shown.items()}
    n_asked = sum(len(one.values) for one in next(iter(shown.values())) if one.split.repeat == 0)
    mean = np.mean([np.mean(several, axis=0) for several in counts.values()], axis=0)
    kin = tree.lca_depth() > 0
    ordered = sorted(itertools.permutations(range(len(tree.leaves)), 2), key=lambda pair: -mean[pair])
    likely = [pair for pair in ordered if mean[pair] * n_asked / 100 >= FEWEST]
    ordered = [pair for inside in (False, True) for pair in [p for p in likely if kin[p] == inside][:each]]
    lines = []
    for (true, answered), (name, several) in itertools.product(ordered, counts.items()):
        each = np.array([one[true, answered] for one in several])
        named = {"method": name, "true": tree.leaves[true], "answered": tree.leaves[answered]}
        lines.append(named | {"kin": bool(kin[true, answered]), "share": each.mean(), "spread": pd.Series(each).std()})
    return pd.DataFrame(lines)


def _learnt(one: Scored, seen: Images) -> Scored:
    """The same, of images whose leaf has a training image."""
    known = np.isin(one.values["leaf"], seen.leaves[one.split.train])
    return replace(one, values=one.values[known])


def _by_training(several: Sequence[Scored], n: int) -> list[np.ndarray]:
    """Percent of all answers of each training, of all its folds, by true class (rows) and answered class (columns)."""
    found = []
    for repeat in sorted({one.split.repeat for one in several}):
        values = pd.concat([one.values for one in several if one.split.repeat == repeat])
        table = np.zeros((n, n))
        np.add.at(table, (values["leaf"], values["predicted"]), 100 / len(values))
        found.append(table)
    return found
