"""What earns how many points: scores of all methods, the tests of the factors, and the two figures."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from lib.figures.forest import forest
from lib.figures.lines import lines
from lib.papers.beyond.factors import experiment as names
from lib.papers.beyond.factors import heads
from lib.papers.beyond.factors.experiment import BALL, FLAT, NONE, PROBABILITY, Results
from lib.study import answers, differences, measures, paired
from lib.study.columns import HEALTH, Column, Layout
from lib.study.scores import of_answers
from lib.study.shown import Figure, Table
from lib.training import hashing
from lib.training.methods import Method
from lib.training.splits import has_own

ABOUT = (
    "MAP: AP divided by min(k, relevant), percent, means over folds and trainings. closed: the archive is the training "
    "images; open: images of other groups that nothing was fitted on."
)
SCORED = f"{ABOUT} ± over folds. Class mean: over all queries of all folds, averaged per class first."
BYTES = "Bytes of a stored image: two for each number (float16), one for eight bits of a code."
HELD = f"With more than {paired.MOST_AT_RIM:g} % of the training images at the rim, a head enters no count."
PUSHED = (
    "Even push: the negative part of Hyper-DINO's loss times C - 1 of C equal classes, (1 - S)/S where S is the share "
    "of pairs that are of one class."
)
TEXTURE, CLASSIFIER = "texture", "linear classifier (probability)"
RIVALS = (  # which head of the other papers is compared with which
    *((name, PROBABILITY) for name in heads.PAPERS),
    (heads.HYPERBOLIC, BALL),
    (heads.TREE, BALL),
    (heads.TREE, heads.SUPCON),
    (heads.HYPERBOLIC, heads.SPHERICAL),
    (heads.ACIR, heads.CENTRES),
    (heads.ACIR, NONE),
)
EVENED = (  # the same of trainings with an even push, or for longer
    (names.EVEN_BALL, BALL),
    (names.EVEN_FLAT, FLAT),
    (names.LONG_BALL, BALL),
    (names.LONG_EVEN, names.LONG_BALL),
    (names.EVEN_BALL, NONE),
    (names.EVEN_BALL, PROBABILITY),
    (names.LONG_EVEN, PROBABILITY),
    (names.EVEN_BALL, names.EVEN_FLAT),
)
SHOWN = (NONE, PROBABILITY, FLAT, BALL, names.EVEN_FLAT, names.EVEN_BALL, names.LONG_BALL, names.LONG_EVEN)


def _scores(*columns: Column, block: str = "archive") -> Layout:
    """A block per archive, a line per method, chance last."""
    shown = (
        Column("archive", block),
        *columns,
        Column("MAP@{}", "ours", "1", pm="spread", over="k", chance="chance"),
        Column("class mean@{}", "class_mean", "1", over="k", chance="class_chance"),
        Column("median norm", "norm", optional=True),
        Column("queries", "n_queries", "0"),
        Column("left out", "n_without_relevant", "0"),
        *HEALTH,
    )
    return Layout(shown, [column.key for column in columns], block)


TESTED = paired.tests_layout({name: name for name in ("factor", "archive", "k")}, "points earned")
LAYOUTS = {
    "table_factors": _scores(Column("encoder"), Column("method")),
    "table_costs": _scores(Column("method"), Column("bytes per image", "bytes", "0")),
    "table_push": _scores(Column("method"), block="rule"),
    "table_tree": _scores(Column("method"), block="rule"),
    "table_margins": _scores(Column("head"), Column("m0", form="{:g}")),
    "table_factors_tests": TESTED,
    "table_factors_tests_by_class": TESTED,
    **{f"table_{name}_tests": paired.by_length("archive") for name in ("costs", "margins", "push", "tree")},
}


def scores(results: Results, place: str = "archive", **measures: object) -> pd.DataFrame:
    """AP@k of every method in every archive, as :meth:`lib.study.scores.Scores.means`."""
    rows = of_answers(results, **measures).means().query("metric == 'ap_min'")
    return rows.rename(columns={"rule": place}) if place != "rule" else rows


def of_encoders(results: Results) -> pd.DataFrame:
    """The scores with the encoder apart, and n_classes, of how many classes a query has an answer there."""
    rows = scores(results).drop(columns="metric")
    apart = rows.pop("method").str.partition(", ")
    rows.insert(1, "encoder", apart[0])
    rows.insert(2, "method", apart[2])
    return answers.counted(rows, results, "archive")


def stored(method: Method) -> int:
    """Bytes of one image in the archive of a method.

    >>> from lib.training.recipes import Recipe
    >>> stored(Method("code", Recipe("PCA", 128, 64), hashing.Settings()))
    8
    """
    numbers = method.recipe.dim_out or method.recipe.dim_in
    packed = isinstance(method.head, hashing.Settings) and method.head.binary
    return -(-numbers // 8) if packed else 2 * numbers


def costs(results: Results) -> pd.DataFrame:
    """The scores with the bytes of a stored image, the largest first."""
    rows = scores(results).drop(columns="metric")
    bytes_of = {name: stored(answers[0].method) for methods in results.values() for name, answers in methods.items()}
    rows.insert(2, "bytes", rows["method"].map(bytes_of))
    return rows.sort_values("bytes", kind="stable", ascending=False).reset_index(drop=True)


def of_margins(results: Results) -> pd.DataFrame:
    """The scores of the ball and the flat head at every margin, with norm, the median of the gallery."""
    rows = scores(results, measure=lambda answer: {"norm": np.median(answer.norms)}).drop(columns="metric")
    apart = rows.pop("method").str.partition(", m0 = ")
    return rows.assign(head=apart[0], m0=apart[2].astype(float)).sort_values("head", kind="stable")


def strict(results: Mapping[str, object]) -> list[str]:
    """Archives without any image of a query's own group: those of the last fold rule.

    >>> strict(dict.fromkeys(["closed, by image", "closed, by patient", "open, by patient"]))
    ['closed, by patient', 'open, by patient']
    """
    rule = list(results)[-1].partition(", ")[2]
    return [archive for archive in results if archive.endswith(rule)]


def fair(results: Results) -> Results:
    """Those of :func:`strict` that :func:`lib.study.answers.fair` lets be tested."""
    return answers.fair({archive: results[archive] for archive in strict(results)})


def factors(encoder: str, beside: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Factor → what is compared with what: one thing changes, everything else stays.

    beside: the other encoders. Networks are compared without a head and below the ball, as a head may make up for a
    poor one; the descriptor of texture, whose numbers are not of one scale, below a linear classifier on both.

    >>> factors("network", ["texture"])["encoder: pretrained, not texture (linear classifier on both)"]
    ('network, linear classifier, probability', 'texture, linear classifier, probability')
    """
    rivals = {}
    for other in (name for name in beside if name != TEXTURE):
        change = "pretrained, not untrained" if other.endswith("-untrained") else f"{encoder}, not {other}"
        for method, how in ((NONE, "no head on either"), (BALL, "ball on both")):
            rivals[f"encoder: {change} ({how})"] = (encoder, method), (other, method)
    if TEXTURE in beside:
        both = (encoder, PROBABILITY), (TEXTURE, PROBABILITY)
        rivals["encoder: pretrained, not texture (linear classifier on both)"] = both
    of_methods = {
        f"labels: {CLASSIFIER}, not none": (PROBABILITY, NONE),
        "head: ball, not none": (BALL, NONE),
        f"head: ball, not {CLASSIFIER}": (BALL, PROBABILITY),
        "curvature: ball, not flat": (BALL, FLAT),
    }
    rivals |= {factor: tuple((encoder, method) for method in pair) for factor, pair in of_methods.items()}
    return {factor: tuple(map(", ".join, pair)) for factor, pair in rivals.items()}


def tested(
    results: Results,
    pairs: Mapping[str, tuple[str, str]],
    groups: np.ndarray,
    ks: Sequence[int],
    *,
    by_class: bool = False,
    seed: int = 0,
) -> pd.DataFrame:
    """The paired test of every factor of ``pairs`` in the archives of :func:`fair`, both ways to divide AP."""
    factor_of = {pair: factor for factor, pair in pairs.items()}
    tests = measures.compare(fair(results), groups, list(factor_of), ks, by_class=by_class, seed=seed)
    tests = tests.rename(columns={"rule": "archive"})
    tests.insert(0, "factor", [factor_of[pair] for pair in zip(tests["first"], tests["second"], strict=True)])
    return tests


def of_own_group(
    results: Results, method: str, groups: np.ndarray, kind: str, ks: Sequence[int], seed: int = 0
) -> pd.DataFrame:
    """What images of the query's own group are worth to a method: the same images search with and without them.

    Only images count that have another one of their group (``kind``) in the archive with them: it can touch no others.
    p is corrected apart from that of the factors, as this is another question. Empty where folds have one rule.
    """
    known, unknown = next(iter(results)), next(iter(fair(results)))
    if len(strict(results)) == len(results):
        return pd.DataFrame()
    scores = of_answers({archive: {method: results[archive][method]} for archive in (known, unknown)}, groups)
    touched = np.concatenate([a.split.test[has_own(a.split, groups)] for a in results[known][method]])
    about = {"factor": f"own {kind} in the archive (ball)", "archive": unknown, "first": known, "second": unknown}
    about |= {"metric": "ap_min", "group_kind": kind}
    tests = []
    for k in ks:
        both = scores.beside({archive: (archive, method) for archive in (known, unknown)}, "ap_min", k)
        both = both[both.index.get_level_values("query").isin(touched)]
        test = differences.of_queries(both[known], both[unknown], seed=seed)
        tests.append(about | {"k": k, "n_queries": both.index.unique("query").size} | test)
    return differences.together(tests)


def table_tests(tests: pd.DataFrame, further: str = "") -> Table:
    """The tests of the factors; ``further``: what is added to the text."""
    own = paired.of_own_group(tests)
    apart = f"The own group is another question, corrected apart, and tested {own}." if own else ""
    text = " ".join(part for part in (ABOUT, further, measures.SAYS, apart) if part)
    return Table("what earns how many points", tests, text)


def with_rim(tests: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The ``tests`` with at_rim: percent of the training images, of the worst training of either head (NaN: no rim)."""
    rims = [
        np.fmax.reduce([answer.health.rim for name in (test.first, test.second) for answer in results[test.rule][name]])
        for test in tests.itertuples()
    ]
    return tests.assign(at_rim=rims)


def figure_earned(tests: pd.DataFrame) -> Figure:
    """What one change earns, the largest gain first: the longest list by min(k, R), first archive of the tests."""
    tests = measures.by(tests)
    k, archive = tests["k"].max(), tests["archive"].iloc[0]
    part = tests[(tests["k"] == k) & (tests["archive"] == archive)]
    text = (
        f"Points of MAP@{k} that one change earns, with all else the same ({archive}). Lines: 95 % interval over "
        f"groups and trainings. Filled: clear after Holm's correction. {ABOUT}"
    )
    rows = part.sort_values("difference", ascending=False, kind="stable").rename(columns={"factor": "name"})
    figure = forest(rows, xlabel=f"points of MAP@{k} that it earns", row_height=0.36, width=34)
    kept = part[["factor", "k", "archive", "difference", "low", "high", "p_holm"]]
    return Figure("what one change earns", kept, text, figure=figure)


def figure_margins(rows: pd.DataFrame, archive: str) -> Figure:
    """MAP over the margin in one ``archive``."""
    kept = rows[rows["archive"] == archive][["head", "m0", "k", "ours", "spread", "norm"]]
    drawn = kept.rename(columns={"head": "line", "m0": "x", "ours": "y"}).assign(panel=kept["k"].map("MAP@{}".format))
    figure = lines(drawn.sort_values("k", kind="stable"), xlabel="margin m0 of the ball", ylabel="MAP (%)", log=True)
    text = f"MAP over the margin, {archive}; bars: standard deviation over folds. {ABOUT}"
    return Figure("a margin that lets the curvature act", kept, text, figure=figure)


def overview(tested: Mapping[str, pd.DataFrame]) -> str:
    """What each change clearly earns at each k, AP ÷ min(k, R), on each dataset (title → its tests), as Markdown."""
    of_min = {title: measures.by(rows, "ap_min") for title, rows in tested.items()}
    kinds = {title: rows.assign(archive=rows["archive"].str.partition(",")[0]) for title, rows in of_min.items()}
    return paired.sizes(kinds, ["factor", "archive"], by="k")
