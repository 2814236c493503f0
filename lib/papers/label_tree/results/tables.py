"""Tables 1 to 3 in the paper's layout, and what the numbers say."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics import hierarchy
from lib.metrics.significance import paired_permutation
from lib.papers.label_tree.experiment import SHARES, Images, Scored
from lib.papers.label_tree.names import (
    AS_PRINTED,
    AS_TOLD,
    BALL,
    BOTH,
    BY_COSINE,
    CHANCE,
    CONSTANT,
    FLAT,
    MARGIN,
    MARGIN_ALONE,
    NONE,
    SUPCON,
    SUPCON_COSINE,
)
from lib.papers.label_tree.results.end_to_end import BEFORE, END, PLACES
from lib.results import answers, paired
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
TESTED = ("hf1", "order", "top1", "hit5")
ABOUT = (
    "Percent. HF1 with the root among the ancestors; H-Acc, Top-1: of one balanced logistic regression on the "
    "standardised embeddings. PC-Order, Violations: nearest parent prototype. R@5: an image of the own leaf among the "
    "five nearest training images. Class mean: of Top-1, per leaf first. ±: of HF1, over trainings. At the rim: "
    "points at the edge of the ball; steps: of the optimiser."
)


def rows(found: Found) -> pd.DataFrame:
    """A row per method and measure: columns method, measure, ours (mean over splits, percent), class_mean (per leaf
    first), seeds_spread (over trainings), n_seeds, n_queries, and the health of the training as loss, rim, steps.
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
        for measure in SHARES:
            of_training = _by_training(several, measure)
            by_leaf = np.mean([one.values.groupby("leaf")[measure].mean().mean() for one in several])
            lines.append(
                {
                    "method": method,
                    "measure": measure,
                    "ours": of_training.mean(),
                    "class_mean": 100 * by_leaf,
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


def layout(table: pd.DataFrame, theirs: pd.DataFrame, chance: Mapping[str, float]) -> str:
    """Published rows, then ours, then chance, as Markdown.

    theirs: of :func:`lib.papers.label_tree.published.of`; chance: of :func:`lib.papers.label_tree.experiment.chance`.
    """
    lines = []
    for row in theirs.rename(columns={"Recall@5": "R@5"}).to_dict("records"):
        values = 100 * pd.Series({title: row[title] for title in COLUMNS.values()}, dtype=float)
        lines.append(
            {"method": row["method"], "whose": "published"} | _cells(values, {name: name for name in values.index})
        )
    for method, part in table.groupby("method", sort=False):
        values, first = part.set_index("measure")["ours"], part.set_index("measure").loc["hf1"]
        cells = {"method": method, "whose": "ours"} | _cells(values, COLUMNS)
        cells |= {"± HF1": percent(first["seeds_spread"])}
        cells |= {"class mean": percent(part.set_index("measure").loc["top1", "class_mean"])}
        begun = "–" if np.isnan(first["first_loss"]) else f"{first['first_loss']:.3f}"
        lines.append(cells | {"first loss": begun} | answers.health(first))
    lines.append({"method": CHANCE, "whose": "ours"} | _cells(pd.Series(chance) * 100, COLUMNS))
    columns = max(lines, key=len)
    return markdown_table(pd.DataFrame(lines, columns=list(columns), dtype=object).fillna("–"))


def _cells(values: pd.Series, titles: Mapping[str, str]) -> dict[str, str]:
    return {title: percent(values[name]) for name, title in titles.items() if name in values}


def pairs(found: Found) -> list[tuple[str, str]]:
    """What the paper claims, as comparisons: first against second, as far as both were trained."""
    flat = [
        (SUPCON, NONE),
        (AS_TOLD, SUPCON),
        (AS_PRINTED, SUPCON),
        (AS_TOLD, AS_PRINTED),
        (AS_TOLD, CONSTANT),
        (BY_COSINE, SUPCON_COSINE),
        (MARGIN, SUPCON),
        (MARGIN_ALONE, SUPCON),
        (BOTH, SUPCON),
    ]
    named = [(first + FLAT, second if second == NONE else second + FLAT) for first, second in flat]
    curved = [(name + BALL, name + FLAT) for name in (SUPCON, AS_TOLD, MARGIN, BOTH)]
    return [(first, second) for first, second in [*named, *curved] if first in found and second in found]


def end_pairs(found: Found) -> list[tuple[str, str]]:
    """Of trainings end to end: HWC+LAM against SupCon, head and encoder; each encoder against no training."""
    kinds = [name + END for name in (BOTH + FLAT, SUPCON + FLAT)]
    between = [(f"{kinds[0]}, {place}", f"{kinds[1]}, {place}") for place in PLACES]
    return [*between, *((f"{kind}, encoder", BEFORE) for kind in kinds)]


def tests(found: Found, between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings: a row per pair and measure, as :func:`lib.results.paired.together`."""
    lines = []
    for first, second in between:
        for measure in TESTED:
            a, b = (np.concatenate([100 * one.values[measure] for one in found[name]]) for name in (first, second))
            if np.isnan(a).all():
                continue
            groups = np.concatenate([one.values["group"] for one in found[first]])
            repeats = np.concatenate([[one.split.repeat] * len(one.values) for one in found[first]])
            test = asdict(paired_permutation(a, b, groups, repeats, seed=seed))
            lines.append({"first": first, "second": second, "measure": COLUMNS[measure]} | test)
    return paired.together(lines)


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


def tests_layout(table: pd.DataFrame) -> str:
    """The paired tests as Markdown."""
    lines = [
        {"first": test.first, "second": test.second, "measure": test.measure}
        | paired.cells(test, "first − second, points")
        for test in table.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def mistakes(found: Found, tree: Taxonomy) -> pd.DataFrame:
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
    """What a mistake is called whose lowest common ancestor has the depth 0, 1, ..."""
    names = [f"wrong from level {depth + 1} on" for depth in range(tree.depth)]
    return [*names[:-1], "right parent, wrong class"] if tree.depth > 1 else ["wrong class"]


def mistakes_layout(table: pd.DataFrame) -> str:
    """The same as Markdown, a row per method."""
    lines = []
    for method, part in table.groupby("method", sort=False):
        of_mistakes = part.set_index("depth")["of_mistakes"]
        cells = {"method": method, "wrong": percent(part["share"].sum())}
        depths = sorted(of_mistakes.index)
        cells |= {f"leaves the way at level {depth + 1}": percent(of_mistakes[depth]) for depth in depths}
        lines.append(cells)
    return markdown_table(pd.DataFrame(lines))


def apart(found: Found, tree: Taxonomy) -> pd.DataFrame:
    """How far leaves that part at each depth are from each other: columns method, depth, apart (share of the mean
    distance between leaves), spread (over trainings).
    """
    lines = []
    for method, several in found.items():
        each = np.array([one.apart for one in several])
        for depth in range(tree.depth):
            lines.append(
                {"method": method, "depth": depth, "apart": each[:, depth].mean(), "spread": each[:, depth].std()}
            )
    return pd.DataFrame(lines)


def apart_sentence(table: pd.DataFrame) -> str:
    """Whether LT-1 is to be seen on images: siblings under each form of HWC, beside SupCon and no head."""
    deepest = table[table["depth"] == table["depth"].max()].set_index("method")["apart"]
    shown = [NONE, *(name + FLAT for name in (SUPCON, AS_PRINTED, AS_TOLD, BY_COSINE))]
    return "siblings, over the mean of all classes: " + "; ".join(
        f"{name} {deepest[name]:.2f}" for name in shown if name in deepest
    )


def apart_layout(table: pd.DataFrame) -> str:
    """The same as Markdown, a column per depth."""
    wide = table.assign(cell=[f"{one.apart:.2f}" for one in table.itertuples()]).pivot_table(
        index="method", columns="depth", values="cell", aggfunc="first", sort=False
    )
    return markdown_table(wide.rename(columns="leaves that part at depth {}".format).reset_index())


def by_depth(cuts: Mapping[int, Found], between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """The tests of each depth that the tree was cut at; columns as :func:`tests`, and depth. Corrected together."""
    parts = [tests(found, between, seed).assign(depth=depth) for depth, found in cuts.items()]
    lines = pd.concat(parts, ignore_index=True).drop(columns=["n_tests", "p_holm"])
    return paired.together(lines.to_dict("records"))


def depth_layout(table: pd.DataFrame) -> str:
    """The tests by depth as Markdown."""
    lines = [
        {"levels": test.depth, "first": test.first, "second": test.second, "measure": test.measure}
        | paired.cells(test, "first − second, points")
        for test in table.itertuples()
    ]
    return markdown_table(pd.DataFrame(lines))


def probe_layout(table: pd.DataFrame) -> str:
    """Three ways to read a class from embeddings, as Markdown: rows of :func:`rows`."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    lines = [
        {"method": method, "classifier, standardised": percent(row["top1"])}
        | {"classifier, as they are": percent(row["top1_unscaled"]), "nearest image": percent(row["hit1"])}
        for method, row in wide.iterrows()
    ]
    return markdown_table(pd.DataFrame(lines))


def probe_sentence(table: pd.DataFrame) -> str:
    """Where the penalty on short vectors costs most."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    cost = (wide["top1"] - wide["top1_unscaled"]).sort_values()
    return (
        f"read as they are, {cost.index[-1]} loses {cost.iloc[-1]:.1f} points of Top-1 and {cost.index[-2]} "
        f"{cost.iloc[-2]:.1f}; the median over all methods is {cost.median():.1f}"
    )


def identities(table: pd.DataFrame) -> list[str]:
    """Whether our rows keep what the definitions demand (LT-4, LT-6), in words."""
    wide = table.pivot_table(index="method", columns="measure", values="ours", sort=False)
    below = int((wide["hf1"] < wide["top1"] - 1e-9).sum())
    lines = [f"HF1 below Top-1: in {below} of {len(wide)} rows (published: 29 of 36)"]
    if "order" in wide:
        off = (wide["order"] + wide["violation"] - 100).abs().max()
        lines.append(f"PC-Order + Violations: at most {off:.3f} points from 100 (published: up to 3.5)")
    return lines
