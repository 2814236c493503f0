"""Which differences are tested, each by the question that it answers."""

from collections.abc import Collection, Mapping, Sequence

import pandas as pd

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
from lib.papers.label_tree.results import tables
from lib.papers.label_tree.results.chosen import AT_THEIRS, CHOSEN
from lib.papers.label_tree.results.end_to_end import BEFORE, END, PLACES
from lib.papers.label_tree.results.tables import Found
from lib.results import paired

SAYS = paired.SAYS.replace("all tests of this table", "all tests of one question")
"""What the paired tests say about themselves."""
NAMES = {"question": "question"} | tables.TEST_NAMES
"""What names a test, for :func:`lib.results.paired.tests_layout`."""
Pairs = Mapping[str, Sequence[tuple[str, str]]]

ON_THE_SPHERE: Pairs = {
    "does a head help?": [(SUPCON, NONE), (BOTH, NONE)],
    "is HWC better than SupCon, with the same values?": [
        (AS_TOLD, SUPCON),
        (AS_PRINTED, SUPCON),
        (BY_COSINE, SUPCON_COSINE),
    ],
    "is HWC better than SupCon, each with values of its own choice?": [
        (CHOSEN[AS_TOLD], CHOSEN[SUPCON]),
        (CHOSEN[BY_COSINE], CHOSEN[SUPCON_COSINE]),
    ],
    "is it the tree? (HWC against ω by role, same values)": [(AS_TOLD, NO_TREE), (BY_COSINE, NO_TREE_COSINE)],
    "is it the tree? (same values, those that HWC has chosen)": [
        (CHOSEN[name], without) for name, without in AT_THEIRS.items()
    ],
    "is it the tree? (each with values of its own choice)": [
        (CHOSEN[AS_TOLD], CHOSEN[NO_TREE]),
        (CHOSEN[BY_COSINE], CHOSEN[NO_TREE_COSINE]),
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
IN_THE_BALL = "is the ball better than the sphere?"
CURVED = (SUPCON, AS_TOLD, MARGIN, BOTH)


def pairs(found: Collection[str]) -> dict[str, list[tuple[str, str]]]:
    """Question → first against second, of the methods that were ``found``.

    >>> pairs(["no head", "SupCon (Euclidean)", "SupCon (Hyperbolic)"])  # doctest: +NORMALIZE_WHITESPACE
    {'does a head help?': [('SupCon (Euclidean)', 'no head')],
     'is the ball better than the sphere?': [('SupCon (Hyperbolic)', 'SupCon (Euclidean)')]}
    """
    asked = {
        question: [tuple(name if name == NONE else name + FLAT for name in pair) for pair in several]
        for question, several in ON_THE_SPHERE.items()
    }
    asked[IN_THE_BALL] = [(name + BALL, name + FLAT) for name in CURVED]
    made = {question: [pair for pair in several if set(pair) <= set(found)] for question, several in asked.items()}
    return {question: several for question, several in made.items() if several}


def end_pairs(curved: bool = False) -> dict[str, list[tuple[str, str]]]:
    """Of trainings end to end: HWC+LAM against SupCon, head and encoder; both against the encoder before training.

    curved: they were trained in the ball as well, and are compared with themselves on the sphere.
    """
    spaces = (FLAT, BALL)[: 1 + curved]

    def both(one: str, other: str) -> list[tuple[str, str]]:
        return [(f"{one}{END}, {place}", f"{other}{END}, {place}") for place in PLACES]

    trained = [name + space + END for space in spaces for name in (BOTH, SUPCON)]
    asked = {
        "is HWC+LAM better than SupCon?": [pair for space in spaces for pair in both(BOTH + space, SUPCON + space)],
        "does training the encoder help?": [(f"{kind}, {place}", BEFORE) for kind in trained for place in PLACES],
    }
    if curved:
        asked[IN_THE_BALL] = [pair for name in TOGETHER for pair in both(name + BALL, name + FLAT)]
    return asked


def tests(found: Found, asked: Pairs, seed: int = 0) -> pd.DataFrame:
    """Paired tests of what is ``asked``: rows of :func:`.tables.tests`; p is corrected for the tests of a question."""
    frames = [tables.tests(found, between, seed).assign(question=question) for question, between in asked.items()]
    return pd.concat(frames, ignore_index=True)


def layout(tested: pd.DataFrame) -> str:
    """The tests as Markdown, a row each."""
    return paired.tests_layout(tested, NAMES)
