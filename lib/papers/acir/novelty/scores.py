"""How novel every image is by every score, how well that separates, and who is refused (Table 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lib.metrics import novelty
from lib.papers.acir.novelty import experiment
from lib.papers.acir.novelty.experiment import (
    ACIR,
    BLUR,
    BLUR_L1,
    BOTH,
    BOTH_L1,
    INSTEAD,
    L1,
    MAHALANOBIS,
    NEAREST,
    RESIDUAL,
    TWO_SIDED,
    distances,
    nearest_shares,
)
from lib.papers.acir.novelty.scene import ASIDE, FAR, HELD_OUT, KNOWN, LEARNT, NEAR, PARTS, Scene
from lib.papers.acir.training import Codes
from lib.study import scores as study
from lib.training.rebuild import Rebuilder

Scores = Mapping[str, np.ndarray]
"""Score → (trainings, n images), more for what is more novel; NaN, if anything, for unused images."""

HALF_A_BIT = 0.5
NOVEL = (NEAR, FAR)
KINDS = ("ms-ssim", "l1")
"""Section 3.4 names both for colour, in two places (AC-7)."""
PARTS_OF = {BOTH: (ACIR, RESIDUAL), BOTH_L1: (ACIR, L1), INSTEAD: (ACIR, NEAREST)}

PAIRS = (
    (RESIDUAL, NEAREST),
    (L1, NEAREST),
    (L1, MAHALANOBIS),
    (RESIDUAL, BLUR),
    (L1, BLUR_L1),
    (BOTH_L1, ACIR),
    (BOTH_L1, INSTEAD),
    (ACIR, "CSQ"),
)
"""Which score is tested against which: the decoder against opponents without one, with codes and without, and codes."""


def of_all(
    scene: Scene, coders: Mapping[str, Sequence[Codes]], decoders: Sequence[Rebuilder], *, workers: int = -1
) -> dict[str, np.ndarray]:
    """Every score of every image; those that nothing was trained for are the same in all trainings.

    coders: name → one per training; decoders: one per training. workers: processes, -1 for all. A score of two
    parts is the larger of both, each in standard deviations of the patients set aside: either may raise the alarm.
    """
    n = len(decoders)
    scores = {
        name: np.stack([distances(codes, scene).min(axis=1) for codes in trainings]).astype(np.float64)
        for name, trainings in coders.items()
    }
    rows = scene.rows(*PARTS)
    lost = experiment.residuals(scene, decoders, KINDS, rows, workers=workers)
    plain = experiment.blur_residuals(scene, KINDS)
    scores |= {RESIDUAL: lost["ms-ssim"], L1: lost["l1"]}
    aside = scene.rows(ASIDE)
    scores[TWO_SIDED] = np.stack([np.abs(experiment.standard(score, aside)) for score in scores[L1]])
    fixed = {BLUR: plain["ms-ssim"], BLUR_L1: plain["l1"]}
    fixed |= {NEAREST: experiment.nearest_feature(scene), MAHALANOBIS: experiment.mahalanobis(scene)}
    scores |= {name: np.tile(score, (n, 1)) for name, score in fixed.items()}
    for name, (code, other) in PARTS_OF.items():
        pairs = zip(scores[code], scores[other], strict=True)
        both = ((experiment.standard(c, aside, HALF_A_BIT), experiment.standard(o, aside)) for c, o in pairs)
        scores[name] = np.stack([np.maximum(*pair) for pair in both])
    return scores


def separations(scene: Scene, scores: Scores) -> pd.DataFrame:
    """How well each score tells the known query images from novel ones.

    Columns score, novel (near or far), repeat, auroc, fpr95 (both of :func:`lib.metrics.novelty.separation`, percent).
    """
    known, rows = scene.rows(KNOWN), []
    for name, trainings in scores.items():
        for part in NOVEL:
            for repeat, score in enumerate(trainings):
                values = novelty.separation(score[known], score[scene.rows(part)])
                cells = {"score": name, "novel": part, "repeat": repeat}
                rows.append(cells | {key: 100 * value for key, value in values.items()})
    return pd.DataFrame(rows)


def placements(known: np.ndarray, novel: np.ndarray) -> np.ndarray:
    """Of each known image the share of novel ones that score higher, ties half: their mean is the AUROC.

    >>> placements(np.array([0.0, 1.0]), np.array([1.0, 3.0])).tolist()
    [1.0, 0.75]
    """
    ordered = np.sort(novel)
    higher = len(novel) - np.searchsorted(ordered, known, side="right")
    equal = len(novel) - np.searchsorted(ordered, known, side="left") - higher
    return (higher + equal / 2) / len(novel)


COIN = "a coin"


def placed(scene: Scene, scores: Scores) -> study.Scores:
    """The placement of every known image by every score against either sort of novelty, and :data:`COIN`."""
    known, parts = scene.rows(KNOWN), []
    index = {"query": known, "group": scene.groups[known], "label": scene.labels[known], "fold": 0}
    n = len(next(iter(scores.values())))
    for part in NOVEL:
        novel = scene.rows(part)
        auroc = {(name, r): placements(s[known], s[novel]) for name, ones in scores.items() for r, s in enumerate(ones)}
        for (name, repeat), values in (auroc | {(COIN, repeat): 0.5 for repeat in range(n)}).items():
            parts.append(pd.DataFrame(index | {"gallery": part, "method": name, "repeat": repeat, "auroc": values}))
    rows = pd.concat(parts, ignore_index=True)
    trainings = rows[["gallery", "method", "fold", "repeat"]].drop_duplicates()
    return study.of_values(rows, trainings, ("gallery", "method"))


def intervals(scene: Scene, scores: Scores, seed: int = 0) -> pd.DataFrame:
    """Score, novel; AUROC averaged over patients, and its 95 % interval over them and trainings: mean, low, high."""
    tested = placed(scene, scores).tests([(name, COIN) for name in scores], [0], metric="auroc", seed=seed)
    ends = {"mean": 50 + tested["difference"], "low": 50 + tested["low"], "high": (50 + tested["high"]).clip(upper=100)}
    return pd.DataFrame({"score": tested["first"], "novel": tested["gallery"]} | ends)


def tests(scene: Scene, scores: Scores, pairs: Sequence[tuple[str, str]] = PAIRS, seed: int = 0) -> pd.DataFrame:
    """Paired tests of AUROC, over patients of the known images and trainings, corrected together.

    Columns gallery (near or far), first, second, those of :func:`lib.study.differences.together`, and left_out (the
    class that is near).
    """
    tested = placed(scene, scores).tests(pairs, [0], metric="auroc", seed=seed).drop(columns="k")
    return tested.assign(left_out=scene.kind[scene.rows(NEAR)[0]])


@dataclass(frozen=True)
class Limit:
    """Above which ``score`` an image counts as novel: mean and 3 deviations over the ``part`` (Equation 19)."""

    score: str
    part: str = ASIDE

    def values(self, scene: Scene, scores: Scores) -> np.ndarray:
        """One value for each training, (trainings,)."""
        rows = scene.rows(self.part)
        return np.array([novelty.threshold(score[rows]) for score in scores[self.score]])

    def exceeded(self, scene: Scene, scores: Scores) -> np.ndarray:
        """Which images exceed it in which training, (trainings, n) bool."""
        return scores[self.score] > self.values(scene, scores)[:, None]


SHOWN = ("CSQ", ACIR, RESIDUAL, L1, TWO_SIDED, BLUR_L1, NEAREST, MAHALANOBIS, BOTH_L1, INSTEAD)
"""Of the picture kind by kind."""
LIMITED = (RESIDUAL, L1, BLUR, BLUR_L1, NEAREST, MAHALANOBIS)


def limits(scene: Scene, scores: Scores) -> pd.DataFrame:
    """Equation 19 from the images learnt from, from others of the same patients, and from patients set aside (AC-7).

    Columns score, part, repeat; mean and deviation of the part, limit; and how many exceed it, percent: own (of the
    part), known (false alarms), near, far.
    """
    rows = []
    for name in LIMITED:
        for part in (LEARNT, HELD_OUT, ASIDE):
            limit = Limit(name, part)
            values, beyond = limit.values(scene, scores), limit.exceeded(scene, scores)
            for repeat, score in enumerate(scores[name]):
                own = score[scene.rows(part)]
                cells = {"score": name, "part": part, "repeat": repeat, "mean": own.mean(), "deviation": own.std()}
                cells |= {"limit": values[repeat], "own": 100 * beyond[repeat, scene.rows(part)].mean()}
                shares = {other: 100 * beyond[repeat, scene.rows(other)].mean() for other in (KNOWN, *NOVEL)}
                rows.append(cells | shares)
    return pd.DataFrame(rows)


def by_kind(scene: Scene, scores: Scores, names: Sequence[str], bits: int) -> pd.DataFrame:
    """Detection and AUROC of each kind of novel picture, and how many known images raise an alarm.

    names: of scores; codes by the rule of the balls of ``bits``, others by the limit of patients set aside. Columns
    score, kind (the left-out class first, then the odd pictures, known images last), n, detected, auroc: percent, means
    over trainings; auroc is NaN for known images.
    """
    known, near = scene.rows(KNOWN), scene.rows(NEAR)
    rows_of = {scene.kind[near[0]]: near}
    rows_of |= {kind: scene.rows(FAR)[scene.kind[scene.rows(FAR)] == kind] for kind in scene.kinds()}
    rows = []
    for name in names:
        beyond = alarms(scene, scores, name, bits)
        for kind, images in (rows_of | {"known images": known}).items():
            aurocs = [novelty.separation(score[known], score[images])["auroc"] for score in scores[name]]
            cells = {"score": name, "kind": kind, "n": len(images), "detected": 100 * beyond[:, images].mean()}
            rows.append(cells | {"auroc": np.nan if images is known else 100 * float(np.mean(aurocs))})
    return pd.DataFrame(rows)


def alarms(scene: Scene, scores: Scores, name: str, bits: int) -> np.ndarray:
    """Which images a score calls novel in which training, (trainings, n) bool: a code's by the rule of the balls."""
    if name in PARTS_OF:
        first, second = (alarms(scene, scores, part, bits) for part in PARTS_OF[name])
        return first | second
    if name == TWO_SIDED:
        return scores[name] > 3
    if name in (*experiment.HEADS, ACIR):
        return scores[name] > novelty.ball_radius(bits)
    return Limit(name).exceeded(scene, scores)


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
        part = {LEARNT: "images learnt from", ASIDE: "groups set aside"}[self.limit.part]
        return f"{self.code}, balls and {self.limit.score} (limit: {part})"


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
CONFUSED = (OURS, Rule("CSQ"))
"""Of Fig. 5."""


def refused(scene: Scene, scores: Scores, rule: Rule, bits: int) -> np.ndarray:
    """Which images get no class in which training, (trainings, n) bool."""
    if rule.always is not None:
        return np.full(scores[rule.code].shape, rule.always)
    beyond = scores[rule.code] > novelty.ball_radius(bits)
    return beyond if rule.limit is None else beyond | rule.limit.exceeded(scene, scores)


def confusion(scene: Scene, codes: Codes, none: np.ndarray, parts: Sequence[str] = (KNOWN, FAR)) -> np.ndarray:
    """Which class each query gets: (C + 1, C + 1) counts, rows the query's class, last OOD; t nearest centres share.

    none: (n,) bool, who gets no class. parts: of the queries; novel images are of the class OOD.
    """
    rows, n = scene.rows(*parts), len(scene.classes)
    shares = nearest_shares(distances(codes, scene)[rows]) * ~none[rows, None]
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
    scene: Scene, coders: Mapping[str, Sequence[Codes]], scores: Scores, bits: int, rules: Sequence[Rule] = RULES
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


def balls(scene: Scene, by_bits: Mapping[int, Sequence[Codes]]) -> pd.DataFrame:
    """What the rule r = bits/4 + 1 does at each length (AC-21), of one kind of code.

    Columns bits, radius, chance_16 and chance (how many random codes lie in a ball around 16 independent centres, and
    around as many as there are classes here), and how many images lie outside of all balls, percent, means over
    trainings: known, near, far; far_auroc of the distance itself.
    """
    rows = []
    for bits, coders in by_bits.items():
        distance = np.stack([distances(codes, scene).min(axis=1) for codes in coders])
        outside = distance > novelty.ball_radius(bits)
        chances = {"chance_16": novelty.chance_in_a_ball(bits, 16)}
        chances["chance"] = novelty.chance_in_a_ball(bits, len(scene.classes))
        shares = {part: outside[:, scene.rows(part)].mean() for part in (KNOWN, NEAR, FAR)}
        known, far = scene.rows(KNOWN), scene.rows(FAR)
        aurocs = [novelty.separation(score[known], score[far])["auroc"] for score in distance]
        values = chances | shares | {"far_auroc": float(np.mean(aurocs))}
        cells = {"bits": bits, "radius": novelty.ball_radius(bits)}
        rows.append(cells | {name: 100 * value for name, value in values.items()})
    return pd.DataFrame(rows)


def total(scene: Scene, coders: Mapping[str, Sequence[Codes]], scores: Scores, rule: Rule, bits: int) -> np.ndarray:
    """The sum over trainings of :func:`confusion`: (C + 2, C + 1), the last two rows the left-out class and OOD."""
    none = refused(scene, scores, rule, bits)
    known, near, far = (
        sum(confusion(scene, coder, none[repeat], [part]) for repeat, coder in enumerate(coders[rule.code]))
        for part in (KNOWN, NEAR, FAR)
    )
    return np.concatenate([known[:-1], near[-1:], far[-1:]])
