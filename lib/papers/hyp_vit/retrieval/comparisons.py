"""Which differences are tested, each by the question that it answers, and at which learning rates."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.papers.hyp_vit import verdicts
from lib.papers.hyp_vit.names import (
    BEFORE,
    END,
    FLAT,
    HYP,
    INSIDE,
    LINEAR,
    NCA,
    NONE,
    ONE,
    PRINTED,
    SPH,
    UNCLIPPED,
    UNTRAINED,
)
from lib.papers.hyp_vit.retrieval import tables, warmth
from lib.papers.hyp_vit.retrieval.frozen import BY_COSINE
from lib.papers.hyp_vit.retrieval.tables import METRIC, UNSEEN
from lib.results import answers, paired
from lib.training.methods import Answer

SAYS = tables.SAYS.replace("all tests of this table", "all tests of one question")
"""What the paired tests say about themselves."""
HEAD, BALL = "does a head help?", "ball or sphere?"
CLIP, START = "does clipping help?", "does it matter where the head begins?"
PRETRAINED = "what does pretraining give?"
END_TO_END, ALONE = "does training the encoder help?", "without pretraining?"
NAMES = {"question": "question"} | paired.METHODS | {"k": "K"}
"""What names a test, for :func:`lib.results.paired.tests_layout`."""
PLACES = ("head", "encoder")


def pairs(found: Mapping[str, object]) -> dict[str, list[tuple[str, str]]]:
    """Question → what is compared with what, of the methods that were ``found``.

    Further networks are known by their ``"..., Hyp"``, and answer the same questions as the first.

    >>> pairs({HYP: 0, NONE: 0, SPH: 0})
    {'does a head help?': [('Hyp', 'no head')], 'ball or sphere?': [('Hyp', 'Sph')]}
    """
    others = [name.removesuffix(HYP) for name in found if name.endswith(f", {HYP}") and name != f"{UNTRAINED}{HYP}"]
    asked: dict[str, list[tuple[str, str]]] = {
        HEAD: [(HYP, name) for name in (NONE, NCA, LINEAR)] + [(f"{one}{HYP}", f"{one}{NONE}") for one in others],
        BALL: [(HYP, name) for name in (SPH, PRINTED, FLAT)] + [(f"{one}{HYP}", f"{one}{SPH}") for one in others],
        CLIP: [(HYP, name) for name in (UNCLIPPED, f"{UNCLIPPED}{BY_COSINE}")],
        START: [(HYP, INSIDE)],
        END_TO_END: [],
        PRETRAINED: [(name, f"{UNTRAINED}{name}") for name in (NONE, HYP, *(f"{HYP}{END}{place}" for place in PLACES))],
        ALONE: [(f"{UNTRAINED}{HYP}", f"{UNTRAINED}{name}") for name in (NONE, SPH)],
    }
    tried = f"{ONE}{END}head" in found
    rivals = (ONE, SPH, FLAT) if tried else ()  # then each at its own τ and rate, and Sph at those of Hyp
    pairs = [(HYP, rival) for rival in rivals] + [(SPH, ONE)] * tried
    asked[warmth.QUESTION] = [(f"{one}{END}{place}", f"{it}{END}{place}") for one, it in pairs for place in PLACES]
    for one in ("", *others):
        if one or not tried:
            asked[BALL] += [(f"{one}{HYP}{END}{place}", f"{one}{SPH}{END}{place}") for place in PLACES]
        asked[END_TO_END] += [(f"{one}{kind}{END}encoder", f"{one}{BEFORE}") for kind in (HYP, SPH)]
    asked[ALONE].append((f"{UNTRAINED}{HYP}{END}encoder", f"{UNTRAINED}{BEFORE}"))
    made = {question: [pair for pair in several if set(pair) <= set(found)] for question, several in asked.items()}
    return {question: several for question, several in made.items() if several}


def tests(
    found: Mapping[str, Sequence[Answer]],
    names: np.ndarray,
    ks: Sequence[int],
    lr: Mapping[str, float],
    seed: int = 0,
) -> pd.DataFrame:
    """Paired tests of Recall@K over categories (``names: (n,)`` of all images) and trainings, question by question.

    lr: learning rates of the heads, and of the encoder in trainings end to end, as "Hyp, end to end".

    Columns question, first_rate and second_rate (NaN of what has none), else as :func:`lib.results.answers.compare`,
    with p corrected for the tests of a question.
    """
    frames = []
    for question, several in pairs(found).items():
        table = answers.compare({UNSEEN: found}, names, several, ks, metric=METRIC, seed=seed).drop(columns="rule")
        rates = {f"{side}_rate": [_rate(name, lr) for name in table[side]] for side in paired.METHODS}
        frames.append(table.assign(question=question, **rates))
    return pd.concat(frames, ignore_index=True)


def _rate(name: str, lr: Mapping[str, float]) -> float:
    """The learning rate that a method, or the head or the encoder of a training end to end, was trained at.

    >>> _rate("Sph, by D_cos", {"Sph": 0.1}), _rate("Sph, end to end, head", {"Sph, end to end": 0.3})
    (0.1, 0.3)
    """
    kind, trained, _ = name.partition(END)
    return lr.get(f"{kind}{END.rstrip(', ')}" if trained else name.removesuffix(BY_COSINE), np.nan)


def marked(tests: pd.DataFrame) -> pd.DataFrame:
    """The tests with the learning rate behind both names where the two were trained at different ones.

    >>> one = {"first": "Hyp", "second": "Sph", "first_rate": 0.001, "second_rate": 0.0003}
    >>> marked(pd.DataFrame([one]))[["first", "second"]].iloc[0].tolist()
    ['Hyp (rate 0.001)', 'Sph (rate 0.0003)']
    """
    apart = tests[["first_rate", "second_rate"]].notna().all(axis=1) & (tests["first_rate"] != tests["second_rate"])
    told = {
        side: tests[side].mask(apart, tests[side] + " (rate " + tests[f"{side}_rate"].map("{:g}".format) + ")")
        for side in paired.METHODS
    }
    return tests.assign(**told)


def sentences(tests: pd.DataFrame) -> list[str]:
    """The verdicts of :func:`tests` at the smallest K, under their questions."""
    at_k = marked(tests[tests["k"] == tests["k"].min()])
    lines = []
    for question, part in at_k.groupby("question", sort=False):
        lines += [question, *(f"  {line}" for line in paired.sentences(part))]
    return [verdicts.NOTE, *lines]
