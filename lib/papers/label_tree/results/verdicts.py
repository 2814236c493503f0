"""What the tables say, in words: every verdict with its p after Holm's correction."""

from collections.abc import Mapping

import pandas as pd

from lib.papers.label_tree.names import CHANCE, COMMONEST, LONGER, NONE
from lib.results import paired
from lib.results.markdown import markdown_table


def clear(tested: pd.DataFrame) -> list[str]:
    """What is clear after Holm's correction, and how much is not."""
    found = [test for test in tested.itertuples() if paired.relation(test) in paired.CLEAR]
    lines = [f"{one.first} {paired.relation(one)} {one.second} in {one.measure} ({paired.size(one)})" for one in found]
    few = sum("cannot" in paired.relation(test) for test in tested.itertuples())
    why = (
        f"; with so few groups and so many tests p cannot reach 0.05 in {few} of them, whatever the methods do"
        if few
        else ""
    )
    rest = f"not clear: {len(tested) - len(found)} of {len(tested)} comparisons{paired.unclear(tested)}{why}"
    return [*lines, rest]


def answered(tested: pd.DataFrame) -> list[str]:
    """What is clear of each question; rows of :func:`.comparisons.tests`."""
    lines = []
    for question, part in tested.groupby("question", sort=False):
        told = [
            f"{test.first} {paired.OUTCOMES[paired.relation(test)]} than {test.second} in {test.measure} "
            f"({test.difference:+.1f})"
            for test in part.itertuples()
            if paired.relation(test) in paired.CLEAR
        ]
        untold = {paired.outcome(test) for test in part.itertuples()} if not told else set()
        nothing = untold.pop() if len(untold) == 1 else "nothing clear"
        of = paired.tally(part)[2] if paired.could_tell(part).any() else f"{len(part)} tests"
        lines.append(f"{question} {'; '.join(told) or nothing}, of {of}{paired.unclear(part)}")
    return lines


def overview(tested: Mapping[str, pd.DataFrame]) -> str:
    """How many tests of each question are clear on each dataset (title → rows of :func:`.comparisons.tests`).

    As Markdown, a row per question, a column per dataset: "3 better, 1 worse of 12 tests".
    """
    lines: dict[str, dict[str, str]] = {}
    for title, table in tested.items():
        for question, part in table.groupby("question", sort=False):
            better, worse, of = paired.tally(part)
            nothing = f"nothing clear{paired.unclear(part)}" if paired.could_tell(part).any() else "cannot be told"
            told = f"{better} better, {worse} worse of {of}" if better or worse else nothing
            lines.setdefault(question, {"question": question})[title] = told
    return markdown_table(pd.DataFrame(lines.values()).fillna("–"))


def clear_by_depth(table: pd.DataFrame) -> list[str]:
    """The same of trees of several depths; rows of :func:`.tables.by_depth`."""
    titles = [
        f"{measure}, {n} level{'s' * (n > 1)}" for n, measure in zip(table["depth"], table["measure"], strict=True)
    ]
    return clear(table.assign(measure=titles))


def trained(table: pd.DataFrame) -> str:
    """Whether trainings end to end have come anywhere: the first and the last loss; rows of :func:`rows`."""
    each = table[table["steps"] > 0].drop_duplicates("loss")
    lines = []
    for one in each.itertuples():
        name = one.method.removesuffix(", head").removesuffix(", encoder")
        fell = one.loss < one.first_loss
        verdict = "" if fell else ": it did not fall, which shows that this runs, and nothing about the method"
        lines.append(
            f"{name}: loss {one.first_loss:.2f} at first, {one.loss:.2f} at the end of {one.steps} steps{verdict}"
        )
    return "\n".join(lines)


def longer(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """What more epochs change, a line for each method that was trained longer and one for each measure.

    before, after: of :func:`.tables.rows`.
    """
    methods = [method for method in after["method"].drop_duplicates() if method != NONE]
    wide = (rows.pivot_table(index="method", columns="measure", values="ours") for rows in (before, after))
    short, long = (rows.loc[methods] for rows in wide)
    each = [
        f"{method}: "
        + ", ".join(f"{title} {short[m][method]:.1f} → {long[m][method]:.1f}" for m, title in SHOWN.items())
        for method in methods
    ]
    return each + [_order(title, short[m], long[m]) for m, title in SHOWN.items()]


def second_chances(table: pd.DataFrame) -> list[str]:
    """How often the other four of five nearest images have the right leaf where the nearest has not; rows as above.

    (R@5 - R@1)/(100 - R@1), R@1: the nearest image is of the own leaf. Near 0 the five are of one leaf, right or wrong.
    """
    wide = table.pivot_table(index="method", columns="measure", values="ours")
    lines = []
    for method in [name for name in LONGER if name in wide.index]:
        first, five = wide.loc[method, ["hit1", "hit5"]]
        saved = f"{100 * (five - first) / (100 - first):.0f} %" if first < 100 else "none to help"
        both = f"nearest right {first:.1f} %, one of five {five:.1f} %"
        lines.append(f"{method}: {both}; of wrong firsts helped: {saved}")
    return lines


SHOWN = {"hf1": "HF1", "top1": "Top-1", "hit5": "R@5"}
"""What :func:`longer` says."""


def _order(title: str, short: pd.Series, long: pd.Series) -> str:
    """Whether methods are in the same order, and how many have fallen.

    >>> _order("HF1", pd.Series({"a": 2.0, "b": 1.0}), pd.Series({"a": 1.0, "b": 3.0}))
    'HF1: lower after longer training in 1 of 2; the order is another one, best first b, a'
    """
    before, after = (list(rows.sort_values(ascending=False, kind="stable").index) for rows in (short, long))
    order = "the order stays" if before == after else f"the order is another one, best first {', '.join(after)}"
    return f"{title}: lower after longer training in {(long < short).sum()} of {len(long)}; {order}"


def beside_features(table: pd.DataFrame) -> list[str]:
    """How many heads are above the features without a head, by image and with every class counting alike."""
    told = []
    for values, how in (("ours", ""), ("class_mean", ", every class counting alike")):
        heads, plain, _ = _apart(table, values)
        above = {name: int((heads[name] > plain[name]).sum()) for name in ("hit5", "hit1", "top1", "hf1")}
        told.append(
            f"of {len(heads)} heads, above the features without a head{how}: {above['hit5']} in R@5, {above['hit1']} "
            f"by the nearest image, {above['top1']} in Top-1, {above['hf1']} in HF1"
        )
    return told


def beside_chance(table: pd.DataFrame) -> list[str]:
    """How many heads are below chance in R@5 and PC-Order; rows of :func:`.tables.with_blind`.

    Raises KeyError where chance has no such row.
    """
    heads, plain, _ = _apart(table, "ours")
    chance = table[table["method"] == CHANCE].set_index("measure")["ours"]
    return [
        f"{title} of chance: {chance[measure]:.1f}, of the features without a head: {plain[measure]:.1f}; "
        f"{int((heads[measure] < chance[measure]).sum())} of {len(heads)} heads are below chance"
        for measure, title in {"hit5": "R@5", "order": "PC-Order"}.items()
    ]


def beside_commonest(table: pd.DataFrame) -> list[str]:
    """How many heads have a lower HF1 than the commonest class as every answer; rows of :func:`.tables.with_blind`.

    Raises KeyError where that answer is no row.
    """
    told = []
    if not table["method"].eq(COMMONEST).any():
        raise KeyError(COMMONEST)
    for values, how in (("ours", ""), ("class_mean", ", every class counting alike")):
        heads, _, commonest = _apart(table, values)
        n = int((heads["hf1"] < commonest["hf1"]).sum())
        told.append(
            f"HF1 of always the commonest class{how}: {commonest['hf1']:.1f}; {n} of {len(heads)} heads are below"
        )
    return told


def _apart(table: pd.DataFrame, values: str) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Of each head a row with a column for each measure, and those of no head and of the commonest class."""
    wide = table.pivot_table(index="method", columns="measure", values=values, sort=False)
    wide = wide.reindex([*wide.index, *{COMMONEST, CHANCE}.difference(wide.index)])
    return wide.drop(index=[NONE, COMMONEST, CHANCE]), wide.loc[NONE], wide.loc[COMMONEST]
