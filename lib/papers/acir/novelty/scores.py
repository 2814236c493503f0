"""How novel every image is by every score, and how well known and novel ones are separated."""

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
    Coder,
)
from lib.papers.acir.novelty.scene import ASIDE, FAR, HELD_OUT, KNOWN, LEARNT, NEAR, PARTS, Scene
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
"""Which score is tested against which: the decoder against opponents without one, with codes and alone, and codes."""


def of_all(
    scene: Scene, coders: Mapping[str, Sequence[Coder]], decoders: Sequence[Rebuilder], *, workers: int = -1
) -> dict[str, np.ndarray]:
    """Every score of every image; those that nothing was trained for are the same in all trainings.

    coders: name → one per training; decoders: one per training. workers: processes, -1 for all. A score of two
    parts is the larger of both, each in standard deviations of the patients set aside: either may raise the alarm.
    """
    n = len(decoders)
    scores = {
        name: np.stack([one.distances(scene).min(axis=1) for one in trainings]).astype(np.float64)
        for name, trainings in coders.items()
    }
    rows = scene.rows(*PARTS)
    lost = experiment.residuals(scene, decoders, KINDS, rows, workers=workers)
    plain = experiment.blur_residuals(scene, KINDS)
    scores |= {RESIDUAL: lost["ms-ssim"], L1: lost["l1"]}
    aside = scene.rows(ASIDE)
    scores[TWO_SIDED] = np.stack([np.abs(experiment.standard(one, aside)) for one in scores[L1]])
    fixed = {BLUR: plain["ms-ssim"], BLUR_L1: plain["l1"]}
    fixed |= {NEAREST: experiment.nearest_feature(scene), MAHALANOBIS: experiment.mahalanobis(scene)}
    scores |= {name: np.tile(score, (n, 1)) for name, score in fixed.items()}
    for name, (code, other) in PARTS_OF.items():
        pairs = zip(scores[code], scores[other], strict=True)
        scores[name] = np.stack([_larger(first, second, aside) for first, second in pairs])
    return scores


def _larger(code: np.ndarray, score: np.ndarray, aside: np.ndarray) -> np.ndarray:
    return np.maximum(experiment.standard(code, aside, HALF_A_BIT), experiment.standard(score, aside))


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
        for name in (*scores, COIN):
            for repeat in range(n):
                values = (
                    placements(scores[name][repeat, known], scores[name][repeat, scene.rows(part)])
                    if name != COIN
                    else 0.5
                )
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
    """Above which value of ``score`` an image counts as novel: mean and ``sigmas`` deviations over the part ``of``."""

    score: str
    of: str = ASIDE
    sigmas: float = 3.0

    def values(self, scene: Scene, scores: Scores) -> np.ndarray:
        """One value for each training, (trainings,)."""
        rows = scene.rows(self.of)
        return np.array([novelty.threshold(score[rows], self.sigmas) for score in scores[self.score]])

    def exceeded(self, scene: Scene, scores: Scores) -> np.ndarray:
        """Which images exceed it in which training, (trainings, n) bool."""
        return scores[self.score] > self.values(scene, scores)[:, None]


SHOWN = ("CSQ", ACIR, RESIDUAL, L1, TWO_SIDED, BLUR_L1, NEAREST, MAHALANOBIS, BOTH_L1, INSTEAD)
"""Of the picture kind by kind."""
LIMITED = (RESIDUAL, L1, BLUR, BLUR_L1, NEAREST, MAHALANOBIS)


def limits(scene: Scene, scores: Scores, sigmas: float = 3.0) -> pd.DataFrame:
    """Equation 19 from the images learnt from, from others of the same patients, and from patients set aside (AC-7).

    Columns score, part, repeat; mean and deviation of the part, limit; and how many exceed it, percent: own (of the
    part), known (false alarms), near, far.
    """
    rows = []
    for name in LIMITED:
        for part in (LEARNT, HELD_OUT, ASIDE):
            limit = Limit(name, part, sigmas)
            values, beyond = limit.values(scene, scores), limit.exceeded(scene, scores)
            for repeat, score in enumerate(scores[name]):
                own = score[scene.rows(part)]
                cells = {"score": name, "part": part, "repeat": repeat, "mean": own.mean(), "deviation": own.std()}
                cells |= {"limit": values[repeat], "own": 100 * beyond[repeat, scene.rows(part)].mean()}
                shares = {of: 100 * beyond[repeat, scene.rows(of)].mean() for of in (KNOWN, *NOVEL)}
                rows.append(cells | shares)
    return pd.DataFrame(rows)


def by_kind(scene: Scene, scores: Scores, names: Sequence[str], bits: int, sigmas: float = 3.0) -> pd.DataFrame:
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
        beyond = alarms(scene, scores, name, bits, sigmas)
        for kind, of in (rows_of | {"known images": known}).items():
            aurocs = [novelty.separation(score[known], score[of])["auroc"] for score in scores[name]]
            cells = {"score": name, "kind": kind, "n": len(of), "detected": 100 * beyond[:, of].mean()}
            rows.append(cells | {"auroc": np.nan if of is known else 100 * float(np.mean(aurocs))})
    return pd.DataFrame(rows)


def alarms(scene: Scene, scores: Scores, name: str, bits: int, sigmas: float = 3.0) -> np.ndarray:
    """Which images a score calls novel in which training, (trainings, n) bool: a code's by the rule of the balls."""
    if name in PARTS_OF:
        first, second = (alarms(scene, scores, part, bits, sigmas) for part in PARTS_OF[name])
        return first | second
    if name == TWO_SIDED:
        return scores[name] > sigmas
    if name in (*experiment.HEADS, ACIR):
        return scores[name] > novelty.ball_radius(bits)
    return Limit(name, ASIDE, sigmas).exceeded(scene, scores)
