"""Table 3: codes, balls and limits together say which class a query has, or none; and what the balls alone do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.metrics import novelty
from lib.papers.acir.novelty.experiment import ACIR, L1, MAHALANOBIS, NEAREST, RESIDUAL, Coder, nearest_shares
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, LEARNT, NEAR, Scene
from lib.papers.acir.novelty.scores import Limit, Scores

OOD = "OOD"


@dataclass(frozen=True)
class Rule:
    """A row of Table 3: the class is that of the nearest centre of ``code``; none outside of all balls, and none beyond
    ``limit`` where there is one. always: the trivial rules, True refuses everything and False nothing, whatever the
    balls and the limit say."""

    code: str
    limit: Limit | None = None
    always: bool | None = None

    @property
    def name(self) -> str:
        """Code and what counts next to the balls."""
        if self.always is not None:
            return "everything refused" if self.always else f"{self.code}, nothing refused"
        if self.limit is None:
            return f"{self.code}, balls"
        of = {LEARNT: "images learnt from", ASIDE: "groups set aside"}[self.limit.of]
        return f"{self.code}, balls and {self.limit.score} (limit: {of})"


PUBLISHED_RULE = Rule(ACIR, Limit(RESIDUAL, LEARNT))
"""ACIR with the threshold of Equation 19, as read here: of the training images, and MS-SSIM for colour."""

CODES = ("CSQ", "DPN", "DCH", ACIR)
TRIVIAL = (Rule(ACIR, always=True), *(Rule(code, always=False) for code in CODES))
"""What needs no score: everything is novel, and nothing is, by every code."""

RULES = (
    *TRIVIAL,
    *(Rule(code) for code in CODES),
    PUBLISHED_RULE,
    Rule(ACIR, Limit(L1, LEARNT)),
    *(Rule(ACIR, Limit(score)) for score in (RESIDUAL, L1, NEAREST, MAHALANOBIS)),
    *(Rule("CSQ", Limit(score)) for score in (L1, NEAREST, MAHALANOBIS)),
)
"""The decoder sees the frozen stem alone, so that any code may have it; and any code may have its opponents."""

OURS = Rule(ACIR, Limit(L1))
SHOWN = (OURS, Rule("CSQ"))
"""Of Fig. 5."""


def refused(scene: Scene, scores: Scores, rule: Rule, bits: int) -> np.ndarray:
    """Which images get no class in which training, (trainings, n) bool."""
    if rule.always is not None:
        return np.full(scores[rule.code].shape, rule.always)
    beyond = scores[rule.code] > novelty.ball_radius(bits)
    return beyond if rule.limit is None else beyond | rule.limit.exceeded(scene, scores)


def confusion(scene: Scene, coder: Coder, none: np.ndarray, parts: Sequence[str] = (KNOWN, FAR)) -> np.ndarray:
    """Which class each query gets: (C + 1, C + 1) counts, rows the query's class, last OOD; t nearest centres share.

    none: (n,) bool, who gets no class. parts: of the queries; novel images are of the class OOD.
    """
    rows, n = scene.rows(*parts), len(scene.classes)
    shares = nearest_shares(coder.distances(scene)[rows]) * ~none[rows, None]
    given = np.concatenate([shares, none[rows, None]], axis=1)
    own = np.where(scene.labels[rows] < 0, n, scene.labels[rows])
    counts = np.zeros((n + 1, n + 1))
    np.add.at(counts, own, given)
    return counts


def macro(counts: np.ndarray) -> dict[str, float]:
    """Mean over the classes of queries of precision and recall of ``counts: (C, C)``, rows true.

    The precision of a class that nothing is given to counts 0.

    >>> macro(np.array([[3.0, 1.0], [0.0, 4.0]]))
    {'precision': 0.9, 'recall': 0.875}
    """
    hits, given, queries = counts.diagonal(), counts.sum(axis=0), counts.sum(axis=1)
    precision = np.divide(hits, given, out=np.zeros_like(hits), where=given > 0)
    there = queries > 0
    return {"precision": float(precision[there].mean()), "recall": float((hits[there] / queries[there]).mean())}


def table_3(
    scene: Scene, coders: Mapping[str, Sequence[Coder]], scores: Scores, bits: int, rules: Sequence[Rule] = RULES
) -> pd.DataFrame:
    """A row per rule and training.

    Columns rule, code, repeat; precision and recall (macro, over known classes and OOD, which is the far pictures, as
    in the paper); far and near (how many are refused), known (how many known images are), all percent; n_far, n_near,
    n_known.
    """
    rows = []
    for rule in rules:
        none = refused(scene, scores, rule, bits)
        for repeat, coder in enumerate(coders[rule.code]):
            values = macro(confusion(scene, coder, none[repeat]))
            values |= {part: none[repeat, scene.rows(part)].mean() for part in (FAR, NEAR, KNOWN)}
            counts = {f"n_{part}": len(scene.rows(part)) for part in (FAR, NEAR, KNOWN)}
            cells = {"rule": rule.name, "code": rule.code, "repeat": repeat}
            rows.append(cells | {name: 100 * value for name, value in values.items()} | counts)
    return pd.DataFrame(rows)


def balls(scene: Scene, by_bits: Mapping[int, Sequence[Coder]]) -> pd.DataFrame:
    """What the rule r = bits/4 + 1 does at each length (AC-21), of one kind of code.

    Columns bits, radius, chance_16 and chance (how many random codes lie in a ball around 16 independent centres, and
    around as many as there are classes here), and how many images lie outside of all balls, percent, means over
    trainings: known, near, far; far_auroc of the distance itself.
    """
    rows = []
    for bits, coders in by_bits.items():
        distance = np.stack([one.distances(scene).min(axis=1) for one in coders])
        outside = distance > novelty.ball_radius(bits)
        chances = {"chance_16": novelty.chance_in_a_ball(bits, 16)}
        chances["chance"] = novelty.chance_in_a_ball(bits, len(scene.classes))
        shares = {part: outside[:, scene.rows(part)].mean() for part in (KNOWN, NEAR, FAR)}
        known, far = scene.rows(KNOWN), scene.rows(FAR)
        aurocs = [novelty.separation(one[known], one[far])["auroc"] for one in distance]
        values = chances | shares | {"far_auroc": float(np.mean(aurocs))}
        cells = {"bits": bits, "radius": novelty.ball_radius(bits)}
        rows.append(cells | {name: 100 * value for name, value in values.items()})
    return pd.DataFrame(rows)


def total(scene: Scene, coders: Mapping[str, Sequence[Coder]], scores: Scores, rule: Rule, bits: int) -> np.ndarray:
    """The sum over trainings of :func:`confusion`: (C + 2, C + 1), the last two rows the left-out class and OOD."""
    none = refused(scene, scores, rule, bits)
    known, near, far = (
        sum(confusion(scene, coder, none[repeat], [part]) for repeat, coder in enumerate(coders[rule.code]))
        for part in (KNOWN, NEAR, FAR)
    )
    return np.concatenate([known[:-1], near[-1:], far[-1:]])
