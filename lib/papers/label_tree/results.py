"""Tables 1 to 3: every objective on the same splits, its measures and its mistakes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.datasets.table import ImageTable
from lib.errors import InputError
from lib.figures import style
from lib.metrics import hierarchy
from lib.papers.label_tree import names, tuning
from lib.papers.label_tree.experiment import BY_CLASS, SHARES, Images, Scored
from lib.study import paired
from lib.study.columns import Column, Layout
from lib.study.markdown import percent
from lib.study.scores import Scores, of_values
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
    fold = "fold" if len(first) == 1 else "folds"
    return (
        f"{len(first)} {fold}: {', '.join(str(len(split.train)) for split in first)} training images, "
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
    "mean: per leaf first, folds together (of answers without looking: fold by fold). ±: over trainings. Losses, steps "
    "and the share at the rim are in the csv. Chance: an answer drawn without looking, each leaf as often as in "
    "training; PC-Order of its parent, R@5 of five training images drawn."
)
NOT_THEIRS = (
    " Published HF1 is not to be compared with ours. ✗ at HF1: below its Top-1, which no predictions can do (LT-4). At "
    "Violations: with PC-Order they add up to less than 100 (✗), or to more, as only ties could (~, LT-6)."
)
ROUNDING = 0.1
"""How far off two printed values may bring their sum, percent."""


def scores_of(scores: All) -> Scores:
    """What every query and every training of every method got."""
    values, trainings = [], []
    for method, scored in scores.items():
        for part in scored:
            at = {"method": method, "fold": part.split.fold, "repeat": part.split.repeat}
            queries = part.values[[*SHARES, "group"]].assign(query=part.split.test, label=part.values["leaf"])
            values.append(queries.assign(**at))
            first = part.history[0] if part.history else np.nan
            trainings.append(at | vars(part.health) | {"first_loss": first})
    return of_values(pd.concat(values, ignore_index=True), pd.DataFrame(trainings))


def rows(scores: All) -> pd.DataFrame:
    """:meth:`lib.study.scores.Scores.means`: a row per method and measure, with the health of the trainings."""
    health = ["first_loss", "loss", "rim", "steps"]
    columns = ["method", "measure", "ours", "class_mean", "seeds_spread", "n_seeds", "n_queries", *health]
    return scores_of(scores).means().rename(columns={"metric": "measure"})[columns]


def with_blind(table: pd.DataFrame, blind: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """:func:`rows`, then those of answers that do not look, of :func:`lib.papers.label_tree.experiment.blind`."""
    lines = [
        {"method": name, "measure": measure, "ours": 100 * value, "class_mean": 100 * values[measure + BY_CLASS]}
        for name, values in blind.items()
        for measure, value in values.items()
        if measure in COLUMNS
    ]
    return pd.concat([table, pd.DataFrame(lines)], ignore_index=True)


def _of_training(rows: pd.DataFrame) -> pd.DataFrame:
    """``rows`` without the spread of what is not trained, which is 0."""
    return rows.assign(seeds_spread=rows["seeds_spread"].where(rows["seeds_spread"].round(4) > 0))


def _grouped(tests: pd.DataFrame) -> pd.DataFrame:
    """Paired tests with each question and each comparison named once; heads on the sphere without their space."""
    curved = (tests["first"] + tests["second"]).str.contains(names.BALL, regex=False)
    shown = paired.outcomes(tests)
    for name in ("first", "second"):
        shown[name] = shown[name].where(curved, shown[name].str.replace(names.FLAT, "", regex=False))
    named = shown[["question", "first", "second"]]
    same = named.eq(named.shift()).cumprod(axis=1).astype(bool)  # a comparison only below its own question
    same["first"] = same["second"]
    return shown.assign(**named.mask(same, ""))


RESULTS = Layout(
    [
        Column("method"),
        *(
            Column(title, "ours", pm="seeds_spread" * (name == "hf1"), at=("measure", name))
            for name, title in COLUMNS.items()
        ),
        *(Column(title, "class_mean", at=("measure", name)) for name, title in CLASS_MEANS.items()),
    ],
    prepare=_of_training,
)
PROBE = {"top1": "classifier, standardised", "top1_unscaled": "classifier, as they are", "hit1": "nearest image"}
SAID = ("p", "groups", "seeds")
"""What the table of tests leaves to its caption and its csv, since it is wide enough."""
OF_TESTS = {"question": "question"} | paired.METHODS | {"measure": "measure"}
BY_QUESTION = replace(paired.tests_layout(OF_TESTS, without=SAID), prepare=_grouped)
LAYOUTS = {
    "table_results": RESULTS,
    "table_longer": RESULTS,
    "table_end_to_end": RESULTS,
    **{f"table_{name}": BY_QUESTION for name in ("tests", "longer_tests", "tests_end_to_end", "other_tree_tests")},
    "table_depth": paired.tests_layout({"depth": "levels"} | paired.METHODS | {"measure": "measure"}),
    "table_chosen": tuning.LAYOUT,
    "table_probe": Layout([Column("method"), *(Column(t, "ours", at=("measure", m)) for m, t in PROBE.items())]),
}


def layout(theirs: pd.DataFrame) -> Layout:
    """Published rows, of :func:`lib.papers.label_tree.published.of`, above those of :data:`RESULTS`."""
    return replace(RESULTS, prepare=partial(_beside, theirs))


def _beside(theirs: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    lines = []
    for row in theirs.rename(columns={"Recall@5": "R@5"}).to_dict("records"):
        values = {name: 100 * row[title] for name, title in COLUMNS.items()}
        signs, of = marked(values), {"method": f"{row['method']}, published"}
        lines += [of | {"measure": name, "ours": percent(values[name]) + signs.get(name, "")} for name in COLUMNS]
    return pd.concat([pd.DataFrame(lines), _of_training(rows)], ignore_index=True)


def marked(row: Mapping[str, float]) -> dict[str, str]:
    """The signs of a published row, percent, where it breaks what must hold; as :data:`NOT_THEIRS` says.

    >>> marked({"hf1": 60.0, "top1": 70.0, "order": 80.0, "violation": 19.0})
    {'hf1': ' ✗', 'violation': ' ✗'}
    """
    total = row["order"] + row["violation"] - 100
    signs = {"hf1": " ✗"} if row["hf1"] < row["top1"] else {}
    if abs(total) > ROUNDING + 1e-9:
        signs["violation"] = " ✗" if total < 0 else " ~"
    return signs


DRAWN = {
    "without": [names.NONE],
    "rivals": [name + names.FLAT for name in (names.SIMCLR, names.SUPCON, names.OUTSIDE, names.HXE)],
    "weights and margin": [
        *(name + names.FLAT for name in (names.AS_PRINTED, names.AS_TOLD, names.MARGIN, names.BOTH)),
        names.BOTH + names.BALL,
    ],
    "values of their own choice": [tuning.TUNED[name] + names.FLAT for name in (names.SUPCON, names.AS_TOLD)],
}
"""The groups of bars: the rows of the published tables, the features below them, and the two whose values are tuned."""
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
    titles = []
    for level in range(1, tree.depth):
        if set(tree.level(level)) & set(tree.leaves):  # a class that hangs there has no group to stay in
            titles.append(f"wrong from branching {level} on: another group, or a class without one")
            continue
        groups = [node.rpartition("/")[2].replace("_", " ") for node in tree.level(level)]
        listed = f" ({', '.join(groups)})" if len(groups) <= NAMED else f" (of {len(groups)})"
        titles.append(f"wrong group of level {level}{listed}")
    return [*titles, "right group, wrong class"]


def mistakes_figure(table: pd.DataFrame, titles: Sequence[str]) -> Figure:
    """Stacked bars of those rows of :func:`mistakes` that :data:`DRAWN` has; titles: of :func:`levels`."""
    shares = table.pivot(index="method", columns="depth", values="share")
    groups = [[method for method in group if method in shares.index] for group in DRAWN.values()]
    methods = [method for group in groups for method in group]
    places = [row + 0.6 * number for number, group in enumerate(groups) for row in map(methods.index, group)]
    with style.house():
        figure, axis = plt.subplots(figsize=(style.WIDTH, 1.2 + 0.27 * len(methods)))
        left = np.zeros(len(methods))
        for number, depth in enumerate(shares.columns):  # the worst first, on one base line
            part = shares.loc[methods, depth].to_numpy()
            grey = DARK + (LIGHT - DARK) * number / max(1, len(shares.columns) - 1)
            look = {"color": str(grey), "hatch": HATCHES[number % len(HATCHES)], "edgecolor": "black", "linewidth": 0.4}
            axis.barh(places, part, left=left, label=titles[depth], **look)
            left += part
        axis.set_yticks(places, methods)
        axis.grid(False, axis="y")
        axis.invert_yaxis()
        axis.set(xlabel="wrong answers, share of all queries (%)", ylabel="objective")
        figure.legend(loc="outside lower center", ncols=1 if max(map(len, titles)) > 40 else 2)
        plt.close(figure)
    return figure
