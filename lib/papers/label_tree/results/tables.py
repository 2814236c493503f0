"""Tables 1 to 3 in the paper's layout, and what the numbers say."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.metrics.classes import over_classes
from lib.papers.label_tree.experiment import BY_CLASS, SHARES, Images, Scored
from lib.papers.label_tree.names import (
    AS_PRINTED,
    AS_TOLD,
    BY_COSINE,
    CONSTANT,
    FLAT,
    NO_TREE,
    NONE,
    SUPCON,
)
from lib.results import answers, differences, paired
from lib.results.markdown import markdown_table, percent
from lib.taxonomy import Taxonomy
from lib.training.splits import Split

COLUMNS = {
    "hf1": "HF1",
    "h_acc": "H-Acc",
    "order": "PC-Order",
    "violation": "Violations",
    "top1": "Top-1",
    "hit5": "R@5",
}
"""Ours → the columns of the published tables."""
Found = Mapping[str, Sequence[Scored]]
CLASS_MEANS = {"hf1": "HF1, class mean", "top1": "Top-1, class mean"}
"""Measures that are shown and tested with each leaf counting alike as well."""
TESTED = {"hf1": "HF1", "order": "PC-Order", "top1": "Top-1", "hit5": "R@5"} | {
    measure + BY_CLASS: title for measure, title in CLASS_MEANS.items()
}
"""What is tested, and what it is called."""
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


def rows(found: Found) -> pd.DataFrame:
    """A row per method and measure: columns method, measure, ours (mean over splits, percent), class_mean (over the
    leaves, :func:`lib.metrics.classes.over_classes` of each training), seeds_spread (over trainings), n_seeds,
    n_queries, and the health of the training as first_loss, loss, rim, steps.
    """
    lines = []
    for method, several in found.items():
        health = {
            "first_loss": np.mean([one.history[0] if one.history else np.nan for one in several]),
            "loss": np.mean([one.health.loss for one in several]),
            "rim": np.max([one.health.rim for one in several]),
            "steps": max(one.health.steps for one in several),
        }
        first = [one for one in several if one.split.repeat == 0]
        all_of = pd.concat([one.values.assign(repeat=one.split.repeat) for one in several])
        by_leaf = all_of.groupby("repeat").apply(lambda part: over_classes(part[SHARES], part["leaf"])).mean()
        for measure in SHARES:
            of_training = _by_training(several, measure)
            lines.append(
                {
                    "method": method,
                    "measure": measure,
                    "ours": of_training.mean(),
                    "class_mean": 100 * by_leaf[measure],
                    "seeds_spread": of_training.std() if len(of_training) > 1 else np.nan,
                    "n_seeds": len(of_training),
                    "n_queries": sum(len(one.values) for one in first),
                }
                | health
            )
    return pd.DataFrame(lines)


def _by_training(several: Sequence[Scored], measure: str) -> pd.Series:
    """The mean over folds of each training, percent."""
    means = [(one.split.repeat, 100 * one.values[measure].mean()) for one in several]
    return pd.DataFrame(means, columns=["repeat", "value"]).groupby("repeat")["value"].mean()


def with_blind(table: pd.DataFrame, blind: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """:func:`rows`, then those of answers that do not look, of :func:`lib.papers.label_tree.experiment.blind`."""
    lines = [
        {"method": name, "measure": measure, "ours": 100 * value, "class_mean": 100 * values[measure + BY_CLASS]}
        for name, values in blind.items()
        for measure, value in values.items()
        if measure in COLUMNS
    ]
    return pd.concat([table, pd.DataFrame(lines)], ignore_index=True)


def layout(table: pd.DataFrame, theirs: pd.DataFrame | None = None) -> str:
    """Published rows, of :func:`lib.papers.label_tree.published.of`, then ours, of :func:`with_blind`, as Markdown."""
    theirs = pd.DataFrame(columns=["method", "Recall@5"]) if theirs is None else theirs
    lines = []
    for row in theirs.rename(columns={"Recall@5": "R@5"}).to_dict("records"):
        values = 100 * pd.Series({title: row[title] for title in COLUMNS.values()}, dtype=float)
        cells = _cells(values, {name: name for name in values.index})
        cells |= {title: cells[title] + sign for title, sign in marked(values).items()}
        lines.append({"method": row["method"], "whose": "published"} | cells)
    for method, part in table.groupby("method", sort=False):
        of_measure = part.set_index("measure")
        first = of_measure.loc["hf1"]
        cells = {"method": method, "whose": "ours"} | _cells(of_measure["ours"], COLUMNS)
        spread = "–" if np.isnan(first["steps"]) or not first["steps"] else percent(first["seeds_spread"])
        cells |= {"± HF1": spread} | _cells(of_measure["class_mean"], CLASS_MEANS)
        begun = "–" if np.isnan(first["first_loss"]) else f"{first['first_loss']:.3f}"
        health = {} if np.isnan(first["steps"]) else answers.health(first)  # who does not look has not learnt
        lines.append(cells | {"first loss": begun} | health)
    columns = max(lines, key=len)
    return markdown_table(pd.DataFrame(lines, columns=list(columns), dtype=object).fillna("–"))


def _cells(values: pd.Series, titles: Mapping[str, str]) -> dict[str, str]:
    return {title: percent(values[name]) for name, title in titles.items() if name in values}


def tests(found: Found, between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings: a row per pair and measure.

    Columns as :func:`lib.results.differences.together`.
    """
    lines = []
    for first, second in between:
        a, b = (
            pd.concat([one.values.assign(repeat=one.split.repeat) for one in found[name]]) for name in (first, second)
        )
        groups, repeats, leaves = (a[name].to_numpy() for name in ("group", "repeat", "leaf"))
        for measure, title in TESTED.items():
            column, classes = measure.removesuffix(BY_CLASS), leaves if measure.endswith(BY_CLASS) else None
            if a[column].notna().any():
                test = differences.of_shares(a[column].to_numpy(), b[column].to_numpy(), groups, repeats, classes, seed)
                lines.append({"first": first, "second": second, "measure": title} | test)
    return differences.together(lines)


def who(seen: Images, several: Sequence[Split]) -> str:
    """How many images learn and ask, and how many leaves that ask were never learnt from."""
    first = [split for split in several if split.repeat == 0]
    unseen = [len(set(seen.leaves[split.test]) - set(seen.leaves[split.train])) for split in first]
    n_groups = [len(set(seen.groups[split.test])) for split in first]
    return (
        f"{len(first)} folds: {', '.join(str(len(split.train)) for split in first)} images learn, "
        f"{', '.join(str(len(split.test)) for split in first)} ask ({', '.join(map(str, n_groups))} groups); "
        f"leaves that ask without a training image: {', '.join(map(str, unseen))}"
    )


TEST_NAMES = paired.METHODS | {"measure": "measure"}
"""What names a test of :func:`tests`, for :func:`lib.results.paired.tests_layout`."""


def apart(found: Found, tree: Taxonomy) -> pd.DataFrame:
    """How far leaves that part at each depth are from each other: columns method, depth, apart (share of the mean
    distance between leaves), spread (standard deviation over trainings, NaN of one).
    """
    lines = []
    for method, several in found.items():
        each = pd.DataFrame([one.apart for one in several]).groupby([one.split.repeat for one in several]).mean()
        lines += [
            {"method": method, "depth": depth, "apart": each[depth].mean(), "spread": each[depth].std()}
            for depth in range(tree.depth)
        ]
    return pd.DataFrame(lines)


def apart_sentences(table: pd.DataFrame) -> list[str]:
    """Whether LT-1 is to be seen on images: siblings under each form of HWC, beside its controls and no head."""
    deepest = table[table["depth"] == table["depth"].max()].set_index("method")["apart"]
    shown = [NONE, *(name + FLAT for name in (SUPCON, CONSTANT, NO_TREE, AS_PRINTED, AS_TOLD, BY_COSINE))]
    told = "; ".join(f"{name} {deepest[name]:.2f}" for name in shown if name in deepest)
    return [f"siblings, over the mean of all classes: {told}"]


def apart_layout(table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """The same as Markdown, a column per depth; beside it HF1 and violations of :func:`rows`, each ± over trainings."""
    beside = scores[scores["measure"].isin(["hf1", "violation"])].set_index(["method", "measure"])
    lines = []
    for method, part in table.groupby("method", sort=False):
        cells = {
            f"leaves that part at level {one.depth + 1}": f"{one.apart:.2f}" + _spread(one.spread, ".3f")
            for one in part.itertuples()
        }
        for measure in ("hf1", "violation"):
            row = beside.loc[(method, measure)]
            cells[COLUMNS[measure]] = percent(row["ours"]) + _spread(row["seeds_spread"], ".2f")
        lines.append({"method": method} | cells)
    return markdown_table(pd.DataFrame(lines))


def _spread(value: float, digits: str) -> str:
    """± and a standard deviation; nothing where nothing was trained (0), or one training alone (NaN)."""
    return f" ± {value:{digits}}" if value > 0 else ""


def by_depth(cuts: Mapping[int, Found], between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """The tests of each depth that the tree was cut at; columns as :func:`tests`, and depth. Corrected together."""
    parts = [tests(found, between, seed).assign(depth=depth) for depth, found in cuts.items()]
    lines = pd.concat(parts, ignore_index=True).drop(columns=["n_tests", "p_holm"])
    twice = (lines["depth"] == 1) & lines["measure"].isin([TESTED["hf1"], CLASS_MEANS["hf1"]])  # there (1 + Top-1)/2
    return differences.together(lines[~twice].to_dict("records"))


def depth_layout(table: pd.DataFrame) -> str:
    """The tests by depth as Markdown."""
    return paired.tests_layout(table, {"depth": "levels"} | TEST_NAMES)


def probe_layout(table: pd.DataFrame) -> str:
    """Three ways to read a class from embeddings, as Markdown: rows of :func:`rows`."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    lines = [
        {"method": method, "classifier, standardised": percent(row["top1"])}
        | {"classifier, as they are": percent(row["top1_unscaled"]), "nearest image": percent(row["hit1"])}
        for method, row in wide.iterrows()
    ]
    return markdown_table(pd.DataFrame(lines))


def probe_sentences(table: pd.DataFrame) -> list[str]:
    """What reading embeddings as they are costs and gains, and how far HWC is from SupCon by each reading."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    gain = (wide["top1_unscaled"] - wide["top1"]).sort_values()
    apart = wide.loc[AS_TOLD + FLAT] - wide.loc[SUPCON + FLAT]
    return [
        f"Top-1 read as they are, less standardised: from {gain.iloc[0]:+.1f} ({gain.index[0]}) to "
        f"{gain.iloc[-1]:+.1f} ({gain.index[-1]}), median {gain.median():+.1f}",
        f"{AS_TOLD} less {SUPCON}: {apart['top1']:+.1f} standardised, {apart['top1_unscaled']:+.1f} as they are, "
        f"{apart['hit1']:+.1f} by the nearest image",
    ]


def identities(table: pd.DataFrame) -> list[str]:
    """Whether our rows keep what the definitions demand (LT-4, LT-6), in words."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    below = int((wide["hf1"] < wide["top1"] - 1e-9).sum())
    lines = [f"HF1 below Top-1: in {below} of {len(wide)} rows (published: 29 of 36)"]
    if "order" in wide:
        off = (wide["order"] + wide["violation"] - 100).abs().max()
        lines.append(f"PC-Order + Violations: at most {off:.3f} points from 100 (published: up to 3.5)")
    return lines
