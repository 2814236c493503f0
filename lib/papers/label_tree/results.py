"""Tables 1 to 3: every objective on the same splits, its measures and its mistakes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures import style
from lib.metrics import hierarchy
from lib.metrics.classes import over_classes
from lib.papers.label_tree import tuning
from lib.papers.label_tree.experiment import BY_CLASS, SHARES, Images, Scored
from lib.study.columns import HEALTH, Column, Layout
from lib.study.markdown import percent
from lib.taxonomy import Taxonomy
from lib.training.splits import Split

All = Mapping[str, Sequence[Scored]]
"""Method → its scores on each split."""

LEARNT = {"in_shop": "train"}
"""Dataset → the part of its column ``split`` that is learnt from, as published."""


def known(table: ImageTable, leaves: np.ndarray, splits: Sequence[Split]) -> list[Split]:
    """The same splits; of In-Shop without query images of a garment that the fold does not learn (LT-14).

    Its published split learns from other garments than it tests, so a classifier can answer with none of the latter and
    HF1 is undefined; folds are by image there. Every other dataset keeps its queries, and a leaf without a training
    image counts as not found. Raises InputError if no query of a split remains.
    """
    learnt = table.rows["split"].to_numpy() == LEARNT[table.name] if table.name in LEARNT else None
    if learnt is None or set(leaves[learnt]) & set(leaves[~learnt]):
        return list(splits)
    kept = []
    for split in splits:
        test = split.test[np.isin(leaves[split.test], leaves[split.train])]
        if not len(test):
            raise InputError(
                f"{table.name}, fold {split.fold}: no class of the query images has a training image, and HF1 needs "
                "that (LT-14). Take folds by image, and at least two images of a class."
            )
        kept.append(replace(split, test=test, held_out=test if split.held_out is split.test else split.held_out))
    return kept


def who(seen: Images, splits: Sequence[Split]) -> str:
    """How many images are trained on and are queries, and how many leaves of queries were never learnt."""
    first = [split for split in splits if split.repeat == 0]
    unseen = [len(set(seen.leaves[split.test]) - set(seen.leaves[split.train])) for split in first]
    n_groups = [len(set(seen.groups[split.test])) for split in first]
    return (
        f"{len(first)} folds: {', '.join(str(len(split.train)) for split in first)} training images, "
        f"{', '.join(str(len(split.test)) for split in first)} queries ({', '.join(map(str, n_groups))} groups); "
        f"leaves of queries without a training image: {', '.join(map(str, unseen))}"
    )


COLUMNS = {
    "hf1": "HF1",
    "h_acc": "H-Acc",
    "order": "PC-Order",
    "violation": "Violations",
    "top1": "Top-1",
    "hit5": "R@5",
}
"""Ours → the columns of the published tables."""
CLASS_MEANS = {"hf1": "HF1, class mean", "top1": "Top-1, class mean"}
ABOUT = (
    "Percent. HF1 with the root among the ancestors; H-Acc, Top-1: of one balanced logistic regression on the "
    "standardised embeddings. PC-Order, Violations: nearest parent prototype; a class that hangs on "
    "the root is its own parent there. R@5: an image of the own leaf among the five nearest training images. Class "
    "mean: per leaf first, folds together (of answers without looking: fold by fold). ±: of HF1, over trainings. At "
    "the rim: points at the edge of the ball, worst training; steps: of the optimiser. Chance: an answer drawn without "
    "looking, each leaf as often as in training; PC-Order of its parent, R@5 of five training images drawn."
)
NOT_THEIRS = (
    " Published HF1 is not to be compared with ours. ✗ at HF1: below its Top-1, which no predictions can do (LT-4). At "
    "Violations: with PC-Order they add up to less than 100 (✗), or to more, as only ties could (~, LT-6)."
)
ROUNDING = 0.1
"""How far off two printed values may bring their sum, percent."""


def rows(scores: All) -> pd.DataFrame:
    """A row per method and measure: columns method, measure, ours (mean over splits, percent), class_mean (over the
    leaves, :func:`lib.metrics.classes.over_classes` of each training), seeds_spread (over trainings), n_seeds,
    n_queries, and the health of the training as first_loss, loss, rim, steps.
    """
    parts = []
    for method, scored in scores.items():
        values = pd.concat([part.values.assign(fold=part.split.fold, repeat=part.split.repeat) for part in scored])
        by_leaf = values.groupby("repeat").apply(lambda part: over_classes(part[SHARES], part["leaf"])).mean()
        of_training = 100 * values.groupby(["repeat", "fold"])[SHARES].mean().groupby("repeat").mean()
        columns = {"ours": of_training.mean(), "class_mean": 100 * by_leaf[SHARES], "seeds_spread": of_training.std()}
        table = pd.DataFrame(columns).rename_axis("measure").reset_index()
        table.insert(0, "method", method)
        parts.append(
            table.assign(
                n_seeds=len(of_training),
                n_queries=int((values["repeat"] == 0).sum()),
                first_loss=np.mean([part.history[0] if part.history else np.nan for part in scored]),
                loss=np.mean([part.health.loss for part in scored]),
                rim=np.max([part.health.rim for part in scored]),
                steps=max(part.health.steps for part in scored),
            )
        )
    return pd.concat(parts, ignore_index=True)


def with_blind(table: pd.DataFrame, blind: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """:func:`rows`, then those of answers that do not look, of :func:`lib.papers.label_tree.experiment.blind`."""
    lines = [
        {"method": name, "measure": measure, "ours": 100 * value, "class_mean": 100 * values[measure + BY_CLASS]}
        for name, values in blind.items()
        for measure, value in values.items()
        if measure in COLUMNS
    ]
    return pd.concat([table, pd.DataFrame(lines)], ignore_index=True)


def _trained(spread: float) -> str:
    return percent(spread) if round(spread, 4) else "–"  # without training there is none


RESULTS = Layout(
    [
        Column("method"),
        Column("whose", "measure", lambda _: "ours"),
        *(Column(title, "ours", at=("measure", name)) for name, title in COLUMNS.items()),
        Column("± HF1", "seeds_spread", _trained, at=("measure", "hf1")),
        *(Column(title, "class_mean", at=("measure", name)) for name, title in CLASS_MEANS.items()),
        Column("first loss", "first_loss", "3"),
        *HEALTH,
    ]
)
PROBE = {"top1": "classifier, standardised", "top1_unscaled": "classifier, as they are", "hit1": "nearest image"}
LAYOUTS = {
    "table_results": RESULTS,
    "table_alone": RESULTS,
    "table_longer": RESULTS,
    "table_end_to_end": RESULTS,
    "table_chosen": tuning.layout,
    "table_probe": Layout([Column("method"), *(Column(t, "ours", at=("measure", m)) for m, t in PROBE.items())]),
    "table_apart": Layout([Column("method"), Column("parting at depth {}", "apart", over="depth", pm="spread")]),
}


def layout(table: pd.DataFrame, theirs: pd.DataFrame) -> str:
    """Published rows, of :func:`lib.papers.label_tree.published.of`, above those of :data:`RESULTS`, as Markdown."""
    head, rule, *ours = RESULTS(table).splitlines()
    lines = []
    for row in theirs.rename(columns={"Recall@5": "R@5"}).to_dict("records"):
        values = {title: 100 * row[title] for title in COLUMNS.values()}
        signs = marked(values)
        cells = [
            row["method"],
            "published",
            *(percent(value) + signs.get(title, "") for title, value in values.items()),
        ]
        lines.append(f"| {' | '.join([*cells, *['–'] * (head.count(' | ') + 1 - len(cells))])} |")
    return "\n".join([head, rule, *lines, *ours])


def marked(row: Mapping[str, float]) -> dict[str, str]:
    """The signs of a published row, percent, where it breaks what must hold; as :data:`NOT_THEIRS` says.

    >>> marked({"HF1": 60.0, "Top-1": 70.0, "PC-Order": 80.0, "Violations": 19.0})
    {'HF1': ' ✗', 'Violations': ' ✗'}
    """
    total = row["PC-Order"] + row["Violations"] - 100
    signs = {"HF1": " ✗"} if row["HF1"] < row["Top-1"] else {}
    if abs(total) > ROUNDING + 1e-9:
        signs["Violations"] = " ✗" if total < 0 else " ~"
    return signs


def apart(scores: All, tree: Taxonomy) -> pd.DataFrame:
    """How far leaves that part at each depth are from each other: columns method, depth, apart (share of the mean
    distance between leaves), spread (standard deviation over trainings, NaN of a single one).
    """
    lines = []
    for method, scored in scores.items():
        each = pd.DataFrame([part.apart for part in scored]).groupby([part.split.repeat for part in scored]).mean()
        lines += [
            {"method": method, "depth": depth, "apart": each[depth].mean(), "spread": each[depth].std()}
            for depth in range(tree.depth)
        ]
    return pd.DataFrame(lines)


LIGHT, DARK = 0.85, 0.2
HATCHES = ("", "//", "xx", "..")
NAMED = 4
"""The groups of a level are named where they are no more than these."""


def mistakes(scores: All, tree: Taxonomy) -> pd.DataFrame:
    """How far up wrong answers go: columns method, depth, share, of_mistakes.

    depth: of the lowest common ancestor; share: of all answers, of_mistakes: of the wrong ones, percent.
    """
    lines = []
    for method, scored in scores.items():
        values = pd.concat([part.values for part in scored])
        counted = hierarchy.severity(values["leaf"].to_numpy(), values["predicted"].to_numpy(), tree)
        for row in counted[::-1].itertuples():
            share, of_mistakes = 100 * row.mistakes / len(values), 100 * row.share
            lines.append({"method": method, "depth": row.depth, "share": share, "of_mistakes": of_mistakes})
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


def mistakes_figure(table: pd.DataFrame, names: Sequence[str]) -> Figure:
    """Stacked bars of the rows of :func:`mistakes`; names: of :func:`levels`."""
    methods, depths = list(table["method"].unique()), sorted(table["depth"].unique())
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 0.9 + 0.24 * len(methods)))
        left = pd.Series(0.0, index=methods)
        for number, depth in enumerate(depths):  # the worst first, on one base line
            part = table[table["depth"] == depth].set_index("method")["share"].loc[methods]
            grey = DARK + (LIGHT - DARK) * number / max(1, len(depths) - 1)
            look = {"color": str(grey), "hatch": HATCHES[number % len(HATCHES)], "edgecolor": "black", "linewidth": 0.4}
            axis.barh(methods, part, left=left, label=names[depth], **look)
            left += part
        axis.invert_yaxis()
        axis.set(xlabel="wrong answers, share of all (%)", ylabel="objective")
        figure.legend(loc="outside lower center", ncols=1 if max(map(len, names)) > 40 else 2)
        plt.close(figure)
    return figure
