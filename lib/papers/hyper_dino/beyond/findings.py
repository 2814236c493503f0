"""What came out of notebook 16: sentences made from its tables."""

from typing import Any

import numpy as np
import pandas as pd

from lib.papers.hyper_dino.beyond.experiment import LOGITS
from lib.results import denominators, own_group, paired
from lib.results.markdown import points


def switches(rows: pd.DataFrame, k: int) -> list[str]:
    """How many switches change MAP@k clearly, and which; from the rows of a switch table."""
    tested = rows[(rows["k"] == k) & rows["difference"].notna()]
    clear = [test for test in tested.itertuples() if paired.relation(test) in paired.CLEAR]
    return [
        f"k = {k}: {len(clear)} of {_of_switches(tested)} change the score clearly{paired.unclear(tested)}",
        *(f"k = {k}: {test.method} {_by(test, 'the default')}" for test in clear),
    ]


def _of_switches(tested: pd.DataFrame) -> str:
    """How many switches there are that could tell."""
    return paired.tally(tested, "switch")[2].replace("switchs", "switches")


def printed(rows: pd.DataFrame) -> list[str]:
    """Where heads end that begin as printed, beside the default; from the rows of a switch table."""
    ends = rows.drop_duplicates("method")
    ends = ends[ends["method"].str.contains("default|as printed")]
    return [
        f"{row.method}: last loss {row.loss:.2f}, {row.rim:.0f} % of the training images end at the rim"
        for row in ends.itertuples()
    ]


def knowing(lost: pd.DataFrame, method: str) -> list[str]:
    """What knowing the query's group is worth to a method, and to whom; from the rows of a leakage table."""
    tests = list(lost[lost["method"] == method].itertuples())
    return [
        *(
            f"k = {test.k}, {method}: the score with folds by {test.group_kind} {_by(test, 'that with folds by image')}"
            for test in tests
        ),
        f"tested {own_group.asked(lost)}",
    ]


def sentences(tests: pd.DataFrame) -> list[str]:
    """:func:`lib.results.denominators.sentences`, of the classifier by its probabilities only, as everywhere."""
    return denominators.sentences(tests[tests["second"] != LOGITS])


def definitions(rows: pd.DataFrame, k: int) -> list[str]:
    """How large the same gain looks under each definition; from the rows of a table of definitions."""
    lines = []
    for rule, part in rows.groupby("rule", sort=False):
        gains = ", ".join(f"{points(row.gain)} ({row.definition})" for row in part.itertuples())
        lines.append(f"k = {k}, folds {rule}: the mapper's gain is {gains}")
    return lines


def choice(chosen: pd.DataFrame, on_test: str, on_validation: str, unchosen: str) -> list[str]:
    """How much more a length reports that was chosen on the test folds; from the rows of a table of choices.

    unchosen: the row of the length that was fixed beforehand; where it scores the same, the gain is no luck.
    """
    value = chosen.set_index(["choice", "k"])["value"]
    lines = [
        f"k = {k}: choosing on the test folds reports {points(value[on_test, k] - value[on_validation, k])} points "
        "over choosing on validation images"
        for k in chosen["k"].unique()
    ]
    if all(np.isclose(value[on_test, k], value[unchosen, k]) for k in chosen["k"].unique()):
        lines.append("This is no luck of the test folds: the longest, fixed beforehand, scores the same.")
    return lines


def plain(tests: pd.DataFrame, first: str, second: str) -> str:
    """The outcome of paired tests of two methods at several k: one clause for each outcome.

    There is no number but what could have been shown where nothing is clear. tests: a row per k; first, second: what
    the two are called.
    """
    told: dict[str, list[str]] = {}
    for test in tests.itertuples():
        found = paired.relation(test)
        clause = f"{first} {found} {second}"
        if found.startswith("cannot"):
            clause = f"too few groups to tell {first} from {second}"
        elif found not in paired.CLEAR:
            clause = f"no clear difference between {first} and {second}"
        told.setdefault(clause, []).append(str(test.k))
    said = "; ".join(f"{clause} at k = {_listed(ks, clause)}" for clause, ks in told.items())
    return f"{said}{paired.unclear(tests)}" if told else "not tested"


def _listed(ks: list[str], clause: str) -> str:
    """Several k in words: "1 or 20" where there is no difference at either, else "1 and 20"."""
    return (" or " if clause.startswith("no ") else " and ").join(ks)


def largest_switch(rows: pd.DataFrame, k: int) -> str:
    """How many switches change MAP@k clearly, and which of these most; from the rows of a switch table."""
    tested = rows[(rows["k"] == k) & rows["difference"].notna()]
    clear = [test for test in tested.itertuples() if paired.relation(test) in paired.CLEAR]
    if not clear:
        return f"none of {_of_switches(tested)} changes MAP@{k} clearly{paired.unclear(tested)}"
    most = max(clear, key=lambda test: abs(test.difference))
    told = "changes MAP@{} clearly:" if len(clear) == 1 else "change MAP@{} clearly, most of all"
    size = f"'{most.method}', by {points(most.difference)} points"
    return f"{len(clear)} of {_of_switches(tested)} {told.format(k)} {size}"


def kindest(rows: pd.DataFrame, k: int) -> str:
    """Which definition of MAP@k makes the gain look largest, by fold rule; from the rows of a table of definitions."""
    told: dict[str, list[str]] = {}
    for rule, part in rows.groupby("rule", sort=False):
        gains = part.set_index("definition")["gain"]
        most = [name for name, gain in gains.items() if np.isclose(gain, gains.max(), atol=0.005)]
        clause = f"the gain at k = {k} looks largest by {' and '.join(most)}, smallest by {gains.idxmin()}"
        clause = f"the gain at k = {k} is the same by all definitions" if len(most) == len(gains) else clause
        told.setdefault(clause, []).append(rule)
    return "; ".join(f"{clause} (folds {' and '.join(rules)})" for clause, rules in told.items())


def luck(chosen: pd.DataFrame, on_test: str, on_validation: str) -> str:
    """How many points a length chosen on the test folds adds; from the rows of a table of choices."""
    value = chosen.set_index(["choice", "k"])["value"]
    added = [f"{points(value[on_test, k] - value[on_validation, k])} points at k = {k}" for k in chosen["k"].unique()]
    return f"choosing on the test folds instead of on validation images adds {', '.join(added)}"


def _by(test: Any, other: str) -> str:
    """How something compares with ``other``, and by how many points."""
    return f"{paired.relation(test)} {other} ({paired.size(test)})"
