"""What earns how many points: the table of all methods, the tests of the factors, and sentences made from them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from lib.metrics.significance import paired_permutation
from lib.papers.beyond.factors import figures, health
from lib.papers.beyond.factors.experiment import BALL, COMPARED, FLAT, NONE, PROBABILITY, Results, with_margin
from lib.results import answerable, answers, denominators, differences, intervals, paired
from lib.results.answers import values
from lib.results.markdown import markdown_table
from lib.results.own_group import asked as own_group_asked
from lib.results.shown import Figure, Table
from lib.training.methods import Answer
from lib.training.splits import has_own

ABOUT = (
    "MAP: AP divided by min(k, relevant), percent, means over folds and trainings. closed: the archive is the training "
    "images; open: images of other groups that nothing was fitted on."
)


TEXTURE = "texture"
CLASSIFIER = "linear classifier (probability)"
"""How a factor calls the classifier, which ranks by its class probabilities."""


def factors(encoder: str, beside: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Factor → what is compared with what: one thing changes, everything else stays.

    The linear classifier ranks by its class probabilities, by which it is the stronger opponent over a list.
    beside: the other encoders; one that has learnt nothing is compared with without a head and below the ball, as a
    head may make up for it, and the descriptor of texture, whose numbers are not of one scale, below a linear
    classifier on both.

    >>> factors("network", ["texture"])["encoder: pretrained, not texture (linear classifier on both)"]
    ('network, linear classifier, probability', 'texture, linear classifier, probability')
    """
    pairs = {
        f"labels: {CLASSIFIER}, not none": (PROBABILITY, NONE),
        "head: ball, not none": (BALL, NONE),
        f"head: ball, not {CLASSIFIER}": (BALL, PROBABILITY),
        "curvature: ball, not flat": (BALL, FLAT),
    }
    found = {factor: (f"{encoder}, {first}", f"{encoder}, {second}") for factor, (first, second) in pairs.items()}
    rivals = {}
    for untrained in (name for name in beside if name.endswith("-untrained")):
        for method, how in ((NONE, "no head on either"), (BALL, "ball on both")):
            both = (f"{encoder}, {method}", f"{untrained}, {method}")
            rivals[f"encoder: pretrained, not untrained ({how})"] = both
    if TEXTURE in beside:
        both = (f"{encoder}, {PROBABILITY}", f"{TEXTURE}, {PROBABILITY}")
        rivals["encoder: pretrained, not texture (linear classifier on both)"] = both
    return rivals | found


def all_values(found: Results) -> pd.DataFrame:
    """:func:`lib.results.answers.values` of AP@k, with the encoder apart: archive, encoder, method, k ...

    n_classes: of how many classes a query has an answer there.
    """
    rows = values(found).query("metric == 'ap_min'").drop(columns="metric").rename(columns={"rule": "archive"})
    names = rows.pop("method").str.partition(", ")
    rows.insert(1, "encoder", names[0])
    rows.insert(2, "method", names[2])
    return answerable.counted(rows, found, "archive")


def factors_layout(rows: pd.DataFrame) -> str:
    """A row per encoder and method, a column per archive and k: the mean ± over folds, in brackets over classes first.

    The last row is chance: a gallery in random order, over queries and over classes as well.
    """
    lines = []
    for (encoder, method), part in rows.groupby(["encoder", "method"], sort=False):
        cells = {"encoder": encoder, "method": method}
        for row in part.sort_values(["k"], kind="stable").itertuples():
            cells[f"MAP@{row.k}, {row.archive}"] = f"{_mean(row)} ({row.class_mean:.1f})"
        lines.append(cells | health.cells(part))
    lines.append(dict.fromkeys(lines[0], "–") | {"encoder": "chance"} | answers.chance_cells(rows))
    return markdown_table(pd.DataFrame(lines))


def _mean(row: Any) -> str:
    """The mean ± over folds, where there are several."""
    return f"{row.ours:.1f}" + ("" if np.isnan(row.spread) else f" ± {row.spread:.1f}")


def strict(found: Mapping[str, object]) -> list[str]:
    """Archives without any image of a query's own group: those of the last fold rule.

    >>> strict(dict.fromkeys(["closed, by image", "closed, by patient", "open, by patient"]))
    ['closed, by patient', 'open, by patient']
    """
    rule = list(found)[-1].partition(", ")[2]
    return [archive for archive in found if archive.endswith(rule)]


def fair(found: Results) -> Results:
    """Those of :func:`strict` that :func:`lib.results.answerable.fair` lets be tested."""
    return answerable.fair({archive: found[archive] for archive in strict(found)})


def tested(
    found: Results,
    encoder: str,
    beside: Sequence[str],
    groups: np.ndarray,
    ks: Sequence[int],
    *,
    kind: str = "group",
    by_class: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """The paired test of every factor in the archives of :func:`fair`, and what the query's own group is worth.

    Args:
        found: archives as :func:`.experiment.archives` has them, of "encoder, method".
        encoder, beside: the leading encoder, and those beside it.
        groups: (n,) of all images, ``kind`` what they are.
        ks: list lengths.
        by_class: compare means over classes; what the own group is worth is left out then.
        seed: of the random sign flips.

    Returns:
        factor and archive, then as :func:`lib.results.denominators.compare`; p is corrected for all factors, and apart
        from them for the own group, which is another question, by min(k, R) alone.
    """
    pairs, fairly = factors(encoder, beside), fair(found)
    names = {pair: factor for factor, pair in pairs.items()}
    tests = denominators.compare(fairly, groups, list(pairs.values()), ks, by_class=by_class, seed=seed)
    tests = tests.rename(columns={"rule": "archive"})
    tests.insert(0, "factor", [names[pair] for pair in zip(tests["first"], tests["second"], strict=True)])
    if len(strict(found)) < len(found) and not by_class:
        ball, known, unknown = f"{encoder}, {BALL}", next(iter(found)), next(iter(fairly))
        with_own, without = (found[archive][ball] for archive in (known, unknown))
        named = {"factor": f"own {kind} in the archive (ball)", "archive": unknown, "first": known, "second": unknown}
        named |= {"metric": "ap_min", "group_kind": kind}
        own = differences.together([named | {"k": k} | own_group(with_own, without, groups, k, seed) for k in ks])
        tests = pd.concat([tests, own], ignore_index=True)
    return tests


def own_group(
    with_own: Sequence[Answer], without: Sequence[Answer], groups: np.ndarray, k: int, seed: int = 0
) -> dict[str, float]:
    """What images of the query's own group are worth: the same images ask an archive with and without them.

    Only images that have another one of their group in the archive ``with_own`` ask: it can touch no others.
    Returns n_queries, how many these are, and the fields of :class:`lib.metrics.significance.PairedTest`, in points of
    MAP@``k``.
    """
    touched = np.concatenate([has_own(answer.split, groups) for answer in with_own])
    both = pd.concat([_asked(with_own, k)[touched], _asked(without, k)], axis=1, keys=["with", "without"]).dropna()
    images, repeats = (both.index.get_level_values(name).to_numpy() for name in ("image", "repeat"))
    test = paired_permutation(both["with"], both["without"], groups[images], repeats, seed=seed)
    return {"n_queries": len(np.unique(images))} | asdict(test)


def _asked(several: Sequence[Answer], k: int) -> pd.Series:
    """AP@k in percent of every image and training."""
    parts = [
        pd.Series(
            100 * answer.per_query.values["ap_min", k].to_numpy(),
            pd.MultiIndex.from_product([answer.split.test, [answer.split.repeat]], names=["image", "repeat"]),
        )
        for answer in several
    ]
    return pd.concat(parts)


def table_factors(rows: pd.DataFrame) -> Table:
    """:func:`all_values` as a table."""
    text = (
        f"{ABOUT} ± over folds; in brackets the class mean. Chance: an archive in random order, of the same two "
        f"means. {answers.CLASS_MEAN} {health.SAID}"
    )
    return Table("every method on every encoder", rows, text, markdown=factors_layout(rows))


def table_tests(tests: pd.DataFrame, of: str = "") -> Table:
    """:func:`tested` as a table; ``of``: what is added to its text."""
    rows = [
        {"factor": test.factor, "archive": test.archive, "k": test.k} | paired.cells(test, "points earned")
        for test in denominators.named(tests).itertuples()
    ]
    layout = markdown_table(pd.DataFrame(rows))
    own = own_group_asked(tests)
    apart = f"The own group is another question, corrected apart, and tested {own}." if own else ""
    text = " ".join(part for part in (ABOUT, of, paired.SAYS, denominators.SAYS, apart) if part)
    return Table("what earns how many points", tests, text, markdown=layout)


def figure_earned(tests: pd.DataFrame) -> Figure:
    """What one change earns, in one panel: the longest list by min(k, R), in the first archive of the tests."""
    tests = denominators.by_min(tests)
    k, archive = tests["k"].max(), tests["archive"].iloc[0]
    part = tests[(tests["k"] == k) & (tests["archive"] == archive)]
    kept = part[["factor", "k", "archive", "difference", "low", "high", "p_holm"]]
    text = (
        f"Points of MAP@{k} that one change earns, with all else the same ({archive}). Lines: 95 % interval over "
        f"groups and trainings. Full bars and dots are clear after Holm's correction. {ABOUT}"
    )
    drawn = figures.earned(part)
    return Figure("what one change earns", kept, text, figure=drawn)


def figure_factors(rows: pd.DataFrame, tests: pd.DataFrame, encoder: str) -> Figure:
    """The leading encoder's methods above, what each factor earns by min(k, R) below."""
    tests = denominators.by_min(tests)
    shown = rows[(rows["encoder"] == encoder) & rows["method"].isin(COMPARED)]
    text = (
        f"Above: MAP of {encoder} without and with a head, bars: standard deviation over folds, upright ticks: "
        "class means; dotted and dashed: what chance gives of either; below: what one change "
        "earns, with all else the same, bars: 95 % interval over groups and trainings. "
        f"{intervals.UNCORRECTED} {ABOUT}"
    )
    kept = ["archive", "method", "k", "ours", "spread", "class_mean", "chance", "class_chance"]
    drawn = figures.factors(shown, tests)
    return Figure("what earns how many points", shown[kept], text, figure=drawn)


def margin_rows(found: Results, m0s: Sequence[float]) -> pd.DataFrame:
    """The ball and the flat head at every margin: archive, head, m0, k, ours ... rim, norm (median of the gallery)."""
    names = {with_margin(head, m0): (head, m0) for m0 in m0s for head in (BALL, FLAT)}
    rows = values(found).query("metric == 'ap_min' and method in @names").drop(columns="metric")
    norms = {
        (archive, name): np.mean([np.median(answer.norms) for answer in found[archive][name]])
        for archive in found
        for name in names
    }
    places = list(zip(rows["rule"], rows["method"], strict=True))
    rows = rows.assign(norm=[norms[place] for place in places], head=[names[name][0] for _, name in places])
    rows = rows.assign(m0=[names[name][1] for _, name in places])
    return rows.rename(columns={"rule": "archive"}).drop(columns="method").sort_values("head", kind="stable")


def with_rim(tests: pd.DataFrame, found: Results) -> pd.DataFrame:
    """The ``tests`` with at_rim: percent of the training images, of the worst training of either head (NaN: no rim)."""
    rims = [
        np.fmax.reduce([answer.health.rim for name in (test.first, test.second) for answer in found[test.rule][name]])
        for test in tests.itertuples()
    ]
    return tests.assign(at_rim=rims)


ENDED = {BALL: ("last loss", "at the rim", "steps"), FLAT: ("last loss",)}
"""What of the health of each head stands in the table of margins."""


def table_margins(rows: pd.DataFrame) -> Table:
    """:func:`margin_rows` as a table: a row per margin, the ball beside the flat head with half of it."""
    lines = []
    for (archive, m0), part in rows.groupby(["archive", "m0"], sort=False):
        cells: dict[str, object] = {"archive": archive, "m0": f"{m0:g}"}
        for head, of_head in part.groupby("head"):
            cells |= {f"{head}, MAP@{row.k}": f"{_mean(row)} ({row.class_mean:.1f})" for row in of_head.itertuples()}
            cells |= {f"{head}, norm": f"{of_head['norm'].iloc[0]:.2f}"}
            cells |= {f"{head}, {what}": answers.health(of_head.iloc[0])[what] for what in ENDED[head]}
        lines.append(cells)
    text = (
        f"{ABOUT} In brackets: {answers.CLASS_MEAN} The flat head has half the margin, and half the ball's "
        "loss where both do equally well. Norm: median over the archive. A large margin is a longer way, so look "
        f"whether a head has arrived before you blame the curvature. {health.SAID}"
    )
    return Table("a margin that lets the curvature act", rows, text, markdown=markdown_table(pd.DataFrame(lines)))


def figure_margins(rows: pd.DataFrame, archive: str) -> Figure:
    """MAP over the margin in one ``archive``, and where embeddings rest."""
    part = rows[rows["archive"] == archive]
    text = (
        f"MAP and median norm (the ball ends at 1) over the margin, {archive}; bars: standard deviation over folds. "
        f"{ABOUT}"
    )
    drawn = figures.margins(part, sorted(part["k"].unique()))
    kept = ["head", "m0", "k", "ours", "spread", "norm"]
    return Figure("a margin that lets the curvature act", part[kept], text, figure=drawn)
