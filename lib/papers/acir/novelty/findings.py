"""What the numbers say, in sentences."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.metrics.hashing import pack
from lib.papers.acir import published
from lib.papers.acir.choices import few
from lib.papers.acir.novelty.experiment import ACIR, L1, MAHALANOBIS, NEAREST, RESIDUAL, Coder
from lib.papers.acir.novelty.figures import NONE, ODD
from lib.papers.acir.novelty.maps import Page
from lib.papers.acir.novelty.rules import PUBLISHED_RULE, TRIVIAL, Rule
from lib.papers.acir.novelty.scene import ASIDE, FAR, KNOWN, LEARNT, NEAR, SORTS, Scene
from lib.papers.acir.novelty.scores import Limit
from lib.results import paired
from lib.search.recommend import Archive
from lib.search.refusal import Gate

FIRST = 10
"""Answers of an example."""


def limits(rows: pd.DataFrame, names: Sequence[str] = (RESIDUAL, L1)) -> list[str]:
    """How much smaller the residuals of learnt images are, and what that does to the limit (AC-7)."""
    lines = []
    for name in names:
        table = rows[rows["score"] == name].groupby("part").mean(numeric_only=True)
        learnt, aside = table.loc[LEARNT], table.loc[ASIDE]
        change = 100 * (aside["mean"] / learnt["mean"] - 1)
        more = "larger" if change > 0 else "smaller"
        lines += [
            f"{name}: that of groups set aside is {abs(change):.1f} % {more} than that of images learnt from "
            f"({aside['mean']:.3f}, {learnt['mean']:.3f})",
            f"  limit from images learnt from: {learnt[KNOWN]:.1f} % false alarms, {learnt[FAR]:.1f} % of OOD "
            f"detected; from groups set aside: {aside[KNOWN]:.1f} %, {aside[FAR]:.1f} %",
        ]
        if name == RESIDUAL and min(learnt["limit"], aside["limit"]) >= 1:
            lines.append(
                f"  both limits ({learnt['limit']:.2f}, {aside['limit']:.2f}) lie above 1, the most that 1 − MS-SSIM "
                "can be: they refuse nothing"
            )
    return lines


def balls(rows: pd.DataFrame) -> list[str]:
    """The rule of the balls at every length: random codes, and codes of real images."""
    return [
        f"{int(row.bits)} bits, radius {int(row.radius)}: of random codes {row.chance_16:.3g} % lie in one of 16 "
        f"balls; outside of all balls are {row.known:.1f} % of known images and {row.far:.1f} % of OOD"
        for row in rows.itertuples()
    ]


def table_3(rows: pd.DataFrame) -> list[str]:
    """What the residual adds to ACIR's balls, what it adds to CSQ's, and what a nearest feature would have added."""
    means = rows.groupby("rule").mean(numeric_only=True)
    theirs = published.novelty().query("method == 'ACIR'")["detected"] / 5
    plain, printed = means.loc[Rule(ACIR).name], means.loc[PUBLISHED_RULE.name]
    lines = [
        f"ACIR with the balls alone detects {plain[FAR]:.1f} % of OOD, with MS-SSIM at a limit from training images "
        f"{printed[FAR]:.1f} % (published: {theirs.min():.1f} and {theirs.max():.1f} %); "
        f"false alarms {plain[KNOWN]:.1f} and {printed[KNOWN]:.1f} %"
    ]
    for code in (ACIR, "CSQ"):
        head, *beside = _with_limits(means, code)
        lines += [head, *(f"  {line}" for line in beside)]
    return lines


def _with_limits(means: pd.DataFrame, code: str) -> list[str]:
    """A heading, and what each score adds to the balls of a code; means: over trainings, by rule."""
    lines = [f"{code}'s balls and, at limits of groups set aside (OOD, left-out class, false alarms):"]
    for score in (L1, NEAREST, MAHALANOBIS):
        told = means.loc[Rule(code, Limit(score)).name]
        lines.append(f"{score}: {told[FAR]:.1f} %, {told[NEAR]:.1f} %, {told[KNOWN]:.1f} %")
    return lines


def trivial(rows: pd.DataFrame) -> list[str]:
    """What refusing everything and refusing nothing come to in Table 3, and the best rule beside them.

    Nothing is said of a table that lacks these rows.
    """
    means, names = rows.groupby("rule", sort=False)[["precision", "recall"]].mean(), [rule.name for rule in TRIVIAL]
    if not set(names) <= set(means.index):
        return []
    told = ", ".join(f"{name} {means.loc[name, 'precision']:.1f} / {means.loc[name, 'recall']:.1f}" for name in names)
    others = means.drop(names)
    return [
        f"macro precision / recall: {told}; best precision "
        f"{others['precision'].max():.1f} ({others['precision'].idxmax()}), best recall {others['recall'].max():.1f} "
        f"({others['recall'].idxmax()})"
    ]


def refusals(rows: pd.DataFrame) -> list[str]:
    """Who was refused, by rule: the classes of which most queries were, the left-out class and OOD; rows: of Fig. 5.

    >>> rows = [("balls", "duct", "refused", 4.0), ("balls", "fat", "fat", 100.0), ("balls", "OOD", "refused", 30.0)]
    >>> refusals(pd.DataFrame(rows, columns=["rule", "query_class", "given_class", "share"]))
    ['balls: of the known classes duct 4.0 %; left-out class 0.0 %, OOD 30.0 %']
    """
    lines = []
    for rule, part in rows.groupby("rule", sort=False):
        share = part[part["given_class"] == NONE].set_index("query_class")["share"]
        known = share.drop(list(ODD), errors="ignore").sort_values(ascending=False)
        told = ", ".join(f"{name} {value:.1f} %" for name, value in known.items()) or "none"
        odd = ", ".join(f"{name} {share.get(name, 0.0):.1f} %" for name in ODD)
        lines.append(f"{rule}: of the known classes {told}; {odd}")
    return lines


def refused_most(rows: pd.DataFrame) -> list[str]:
    """Which known images were refused by most trainings; rows: of :func:`.rules.most_refused`.

    >>> refused_most(pd.DataFrame({"label": ["duct", "duct", "fat"], "refused": [5, 4, 0]}))
    ['known images refused most often: duct (by 5, 4 trainings)']
    """
    by = rows[rows["refused"] > 0].groupby("label", sort=False)["refused"].agg(lambda n: ", ".join(map(str, n)))
    told = "; ".join(f"{label} (by {times} trainings)" for label, times in by.items())
    return [f"known images refused most often: {told or 'none'}"]


def kinds(rows: pd.DataFrame) -> list[str]:
    """The kind that the residual misses most, and what others make of it; the kind that all miss."""
    novel = rows[rows["auroc"].notna()]
    wide = novel.pivot_table(index="kind", columns="score", values="auroc", sort=False)
    lines = []
    for name in (RESIDUAL, L1):
        worst = wide[name].idxmin()
        below = [kind for kind in wide.index if wide.loc[kind, name] < 50]
        lines.append(
            f"{name} is worst on {worst}: AUROC {wide.loc[worst, name]:.1f}; the nearest feature has "
            f"{wide.loc[worst, NEAREST]:.1f} there"
        )
        if below:
            lines.append(f"  rebuilt better than known images, AUROC below 50: {', '.join(below)}")
    best = wide.max(axis=1)
    hardest, score = best.idxmin(), wide.loc[best.idxmin()].idxmax()
    lines.append(f"hardest for all scores: {hardest} (best AUROC {best.min():.1f}, {score})")
    return lines


def turns(rows: pd.DataFrame, left_out: str) -> list[str]:
    """How much rests on the class that was left out: every score's place for it among all classes."""
    lines = []
    for name, part in rows.groupby("score", sort=False):
        by = part.set_index("class")["auroc"]
        place = int((by > by[left_out]).sum()) + 1
        lines.append(
            f"{name}: {left_out} {by[left_out]:.1f}, place {place} of {len(by)}; all classes {by.min():.1f} "
            f"({by.idxmin()}) to {by.max():.1f} ({by.idxmax()}), mean {by.mean():.1f}{few(1)}"
        )
    return lines + agreement(rows)


def agreement(rows: pd.DataFrame) -> list[str]:
    """In how many classes, each left out in turn, the decoder is ahead; nothing where none was trained anew."""
    wide = rows.pivot(index="class", columns="score", values="auroc")
    if L1 not in wide:
        return []
    return [f"{L1} is above the {NEAREST} in {(wide[L1] > wide[NEAREST]).sum()} of {len(wide)} classes"]


def passed_over(rows: pd.DataFrame, classes: Sequence[str]) -> list[str]:
    """The classes that could not be left out, since nobody asks with them; nothing where there are none."""
    missing = [name for name in classes if name not in set(rows["class"])]
    return [f"not left out, as none of their groups asks: {', '.join(missing)}"] if missing else []


def verdict(tested: pd.DataFrame) -> list[str]:
    """Whether the decoder earns anything over the distance to the nearest feature, for each sort of novelty."""
    lines = []
    for part, title in SORTS.items():
        of_part = tested[tested["gallery"] == part]
        named = of_part["left_out"].iloc[:1] if part == NEAR and "left_out" in of_part else []
        title = " ".join([title, *(f"({name})" for name in named)])
        for name in (RESIDUAL, L1):
            pair = of_part[(of_part["first"] == name) & (of_part["second"] == NEAREST)]
            for test in pair.itertuples():
                told, by = paired.relation(test), paired.size(test).replace(" points", " points of AUROC", 1)
                lines.append(f"{title}: the decoder's {name} {told} the nearest feature ({by})")
    return lines


def answered(
    held: pd.DataFrame,
    sources: pd.DataFrame,
    tested: pd.DataFrame,
    turned: pd.DataFrame,
    by_kind: pd.DataFrame,
    rule_rows: pd.DataFrame,
    drawn: Mapping[str, Page],
) -> list[str]:
    """The six questions of the notebook, each with what was measured.

    held: of :func:`.rules.balls`; sources: of :func:`.scores.limits`; tested: of :func:`.scores.tests`; turned: of
    :func:`.experiment.each_class`; by_kind: of :func:`.scores.by_kind`; rule_rows: of :func:`.rules.table_3`.
    """
    of_balls, of_limits = balls(held), limits(sources, [L1])
    head, *beside = _with_limits(rule_rows.groupby("rule").mean(numeric_only=True), "CSQ")
    return [
        f"1. {of_balls[0]}; {of_balls[-1]}",
        "2. " + "; ".join(line.strip() for line in of_limits),
        "3. " + "; ".join([*verdict(tested), *agreement(turned)]),
        "4. " + "; ".join(line.strip() for line in kinds(by_kind)),
        f"5. {head} {'; '.join(beside)}",
        "6. " + "; ".join(pages(drawn)),
    ]


def sentences(tested: pd.DataFrame) -> list[str]:
    """Every paired test in words, by sort of novelty, but for those of :func:`verdict`."""
    others = tested[tested["second"] != NEAREST]
    named = others.assign(gallery=others["gallery"].map(SORTS))
    return paired.sentences(named)


def pages(drawn: Mapping[str, Page]) -> list[str]:
    """How many true neighbours each t-SNE keeps."""
    return [
        f"t-SNE, {name}: {100 * one.kept:.0f} % of the 10 nearest neighbours kept (at random {100 * one.chance:.1f} %)"
        for name, one in drawn.items()
    ]


def examples(scene: Scene, coder: Coder, gates: Sequence[Gate], rows: np.ndarray, scores: np.ndarray) -> list[str]:
    """Algorithm 1 for each query: what it is, and the classes of its first answers or the reason why it has none.

    The archive is what the ``coder`` learnt from. rows: (q,) of the queries; scores: (gates, q).
    """
    learnt, codes = scene.rows(LEARNT), pack(coder.h)
    archive = Archive(codes[learnt], [level[learnt] for level in coder.levels], gates)
    lines = []
    for row, values in zip(rows, scores.T, strict=True):
        found = archive.recommend(codes[row], [level[row] for level in coder.levels], values.tolist(), FIRST)
        counts = Counter(scene.kind[learnt[found.images]]).most_common()
        told = ", ".join(f"{n} {name}" for name, n in counts)
        lines.append(f"{scene.kind[row]}: " + (f"refused, {found.reason}" if found.reason else f"answered, {told}"))
    return lines
