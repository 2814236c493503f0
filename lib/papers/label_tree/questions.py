"""Which differences are tested, each by the question that it answers."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

from lib.papers.label_tree.end_to_end import BEFORE, END, PLACES
from lib.papers.label_tree.experiment import BY_CLASS
from lib.papers.label_tree.names import (
    AS_PRINTED,
    AS_TOLD,
    BALL,
    BOTH,
    BY_COSINE,
    CONSTANT,
    CONSTANT_COSINE,
    FLAT,
    HXE,
    MARGIN,
    MARGIN_ALONE,
    NO_TREE,
    NO_TREE_COSINE,
    NONE,
    OUTSIDE,
    SIMCLR,
    SUPCON,
    SUPCON_COSINE,
    TOGETHER,
)
from lib.papers.label_tree.results import CLASS_MEANS, COLUMNS, All, scores_of
from lib.papers.label_tree.tuning import AT_THEIRS, TUNED
from lib.study import differences, paired

Pairs = Mapping[str, Sequence[tuple[str, str]]]
"""Question → which method is compared with which."""
TESTED = {name: COLUMNS[name] for name in ("hf1", "order", "top1", "hit5")}
TESTED |= {name + BY_CLASS: title for name, title in CLASS_MEANS.items()}
"""What is tested, and what it is called."""
SAYS = paired.SAYS.replace("all tests of this table", "all tests of one question")
"""What the paired tests say about themselves."""
ABOUT = f"A cell left empty is as above; heads are on the sphere where no space is named. {SAYS}"
"""What they say where :data:`lib.papers.label_tree.results.BY_QUESTION` lays them out."""
NAMES = paired.METHODS | {"measure": "measure"}
"""What names a test, for :func:`lib.study.paired.tests_layout`."""
IN_THE_BALL = "is the ball better than the sphere?"
CURVED = (SUPCON, AS_TOLD, MARGIN, BOTH)
ON_THE_SPHERE: Pairs = {
    "does a head help?": [(SUPCON, NONE), (BOTH, NONE)],
    "is HWC better than SupCon, with the same values?": [
        (AS_TOLD, SUPCON),
        (AS_PRINTED, SUPCON),
        (BY_COSINE, SUPCON_COSINE),
    ],
    "is HWC better than SupCon, each with values of its own choice?": [
        (TUNED[AS_TOLD], TUNED[SUPCON]),
        (TUNED[BY_COSINE], TUNED[SUPCON_COSINE]),
    ],
    "is it the tree? (HWC against ω by role, same values)": [(AS_TOLD, NO_TREE), (BY_COSINE, NO_TREE_COSINE)],
    "is it the tree? (same values, those that HWC has chosen)": [(TUNED[name], it) for name, it in AT_THEIRS.items()],
    "is it the tree? (each with values of its own choice)": [
        (TUNED[AS_TOLD], TUNED[NO_TREE]),
        (TUNED[BY_COSINE], TUNED[NO_TREE_COSINE]),
    ],
    "are weights more than a temperature? (HWC against constant ω)": [
        (AS_TOLD, CONSTANT),
        (AS_PRINTED, CONSTANT),
        (BY_COSINE, CONSTANT_COSINE),
    ],
    "what do temperature and average do? (constant ω against SupCon)": [(CONSTANT, SUPCON)],
    "does it matter where similarity is zero? (HWC against HWC as printed)": [(AS_TOLD, AS_PRINTED)],
    "does the margin help? (LAM)": [(MARGIN, SUPCON), (BOTH, AS_TOLD)],
    "is the margin enough? (LAM alone against SupCon)": [(MARGIN_ALONE, SUPCON)],
    "do weights help beside the margin? (HWC+LAM against SupCon+LAM)": [(BOTH, MARGIN)],
    **{f"is HWC+LAM better than {rival}?": [(BOTH, rival)] for rival in (SUPCON, SIMCLR, OUTSIDE, HXE)},
}
"""What the paper claims, and what explains it, as comparisons on the sphere; each comparison answers one question."""


def pairs(trained: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Question → first against second, of the methods that were ``trained``.

    >>> pairs(["no head", "SupCon (Euclidean)", "SupCon (Hyperbolic)"])  # doctest: +NORMALIZE_WHITESPACE
    {'does a head help?': [('SupCon (Euclidean)', 'no head')],
     'is the ball better than the sphere?': [('SupCon (Hyperbolic)', 'SupCon (Euclidean)')]}
    """
    every = {
        question: [tuple(name if name == NONE else name + FLAT for name in pair) for pair in row]
        for question, row in ON_THE_SPHERE.items()
    }
    every[IN_THE_BALL] = [(name + BALL, name + FLAT) for name in CURVED]
    made = {question: [pair for pair in row if set(pair) <= set(trained)] for question, row in every.items()}
    return {question: row for question, row in made.items() if row}


def end_pairs(curved: bool = False) -> dict[str, list[tuple[str, str]]]:
    """Of trainings end to end: HWC+LAM against SupCon, head and encoder; both against the encoder before training.

    curved: they were trained in the ball as well, and are compared with themselves on the sphere.
    """
    spaces = (FLAT, BALL)[: 1 + curved]

    def both(first: str, second: str) -> list[tuple[str, str]]:
        return [(f"{first}{END}, {place}", f"{second}{END}, {place}") for place in PLACES]

    trained = [name + space + END for space in spaces for name in (BOTH, SUPCON)]
    every = {
        "is HWC+LAM better than SupCon?": [pair for space in spaces for pair in both(BOTH + space, SUPCON + space)],
        "does training the encoder help?": [(f"{kind}, {place}", BEFORE) for kind in trained for place in PLACES],
    }
    if curved:
        every[IN_THE_BALL] = [pair for name in TOGETHER for pair in both(name + BALL, name + FLAT)]
    return every


def tests(scores: All, between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """Paired tests over groups and trainings, a row per pair and measure; :func:`lib.study.differences.together`."""
    lines, queries = [], scores_of(scores)
    for first, second in between:
        for measure, title in TESTED.items():
            a, b = (queries.of(name, measure.removesuffix(BY_CLASS), 0) for name in (first, second))
            if a.notna().any():
                test = differences.of_queries(a, b, measure.endswith(BY_CLASS), seed)
                lines.append({"first": first, "second": second, "measure": title} | test)
    return differences.together(lines)


def by_question(scores: All, questions: Pairs, seed: int = 0) -> pd.DataFrame:
    """:func:`tests` of every question; p is corrected for the tests of a question."""
    parts = [tests(scores, between, seed).assign(question=question) for question, between in questions.items()]
    return pd.concat(parts, ignore_index=True)


def by_depth(cuts: Mapping[int, All], between: Sequence[tuple[str, str]], seed: int = 0) -> pd.DataFrame:
    """The tests of each depth that the tree was cut at; columns as :func:`tests`, and depth. Corrected together."""
    parts = [tests(scores, between, seed).assign(depth=depth) for depth, scores in cuts.items()]
    lines = pd.concat(parts, ignore_index=True).drop(columns=["n_tests", "p_holm"])
    twice = (lines["depth"] == 1) & lines["measure"].isin([TESTED["hf1"], CLASS_MEANS["hf1"]])  # there (1 + Top-1)/2
    return differences.together(lines[~twice].to_dict("records"))


def overview(tested: Mapping[str, pd.DataFrame]) -> str:
    """The clear differences of each question by measure, on each dataset (title → rows of :func:`by_question`)."""
    return paired.sizes(tested, ["question"], "measure")
