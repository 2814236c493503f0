"""How sure is a gain? Every comparison of the linear prototypes with its interval, effect sizes and corrected p."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from lib.metrics.significance import Evidence, corrected, evidence
from lib.papers.linear_prototypes.published import TL
from lib.papers.linear_prototypes.retrieval.experiment import PAPER
from lib.results import denominators, differences, paired
from lib.results.markdown import markdown_table, points
from lib.results.shown import Table
from lib.results.store import Run

ROW = ["fold", "image_id", "group", "repeat"]


def encoders(methods: Sequence[str]) -> list[str]:
    """Those whose trained features are among the methods.

    >>> encoders([f"texture, {TL}", "texture, NCA", PAPER])
    ['texture']
    """
    return [name.removesuffix(f", {TL}") for name in methods if name.endswith(f", {TL}")]


def comparisons(methods: Sequence[str]) -> list[tuple[str, str]]:
    """TL against every other method of its encoder, then other heads against the paper's.

    >>> comparisons([f"texture, {TL}", "texture, NCA", PAPER, "another head"])
    [('texture, TL', 'texture, NCA'), ('another head', "the paper's head (squared Euclidean, cosine search)")]
    """
    pairs, heads = [], list(methods)
    for encoder in encoders(methods):
        own = [name for name in heads if name.startswith(f"{encoder}, ")]
        pairs += [(f"{encoder}, {TL}", name) for name in own if name != f"{encoder}, {TL}"]
        heads = [name for name in heads if name not in own]
    return pairs + [(name, PAPER) for name in heads if name != PAPER]


def pick(scores: pd.DataFrame, gallery: str, k: int) -> pd.DataFrame:
    """AP@k in percent, a row per query and training (index fold, image_id, group, repeat), a column per method."""
    part = scores[(scores["gallery"] == gallery) & (scores["k"] == k)]
    return part.pivot(index=ROW, columns="method", values="ap_min")


def compare(table: pd.DataFrame, pairs: Sequence[tuple[str, str]], seed: int = 0) -> dict[tuple[str, str], Evidence]:
    """Pair → evidence that the first method is better than the second, for other groups and for other trainings.

    table: as :func:`pick` makes it, in percent.
    """
    groups, repeats = (table.index.get_level_values(name).to_numpy() for name in ("group", "repeat"))
    return {(a, b): evidence(table[a].to_numpy(), table[b].to_numpy(), groups, repeats, seed=seed) for a, b in pairs}


def rows(results: Mapping[tuple[str, str], Evidence]) -> pd.DataFrame:
    """One row per comparison, p corrected by Holm for all rows together.

    Columns first, second, the fields of :class:`lib.metrics.significance.PairedTest`, null_low, null_high (95 % of the
    null), wilcoxon_p, effect_size (d_z), rank_biserial, skewness, n_tests, p_holm, wilcoxon_holm.
    """
    more = ("null_low", "null_high", "wilcoxon_p", "effect_size", "rank_biserial", "skewness")
    table = differences.together(
        [
            {"first": first, "second": second} | asdict(one.test) | {name: getattr(one, name) for name in more}
            for (first, second), one in results.items()
        ]
    )
    return table.assign(wilcoxon_holm=corrected(table["wilcoxon_p"]))


def layout(table: pd.DataFrame) -> str:
    """The table of :func:`rows` as Markdown."""
    lines = []
    for row in table.itertuples():
        cells = {"first": row.first, "second": row.second} | paired.cells(row, "gain, points")
        cells |= {"Wilcoxon, Holm": _cell(row.wilcoxon_holm, "{:.2g}"), "d_z": _cell(row.effect_size, "{:.2f}")}
        lines.append(cells | {"rank-biserial": _cell(row.rank_biserial, "{:.2f}")})
    return markdown_table(pd.DataFrame(lines))


def _cell(value: float, form: str) -> str:
    return "–" if np.isnan(value) else form.format(value)


def came_out(table: pd.DataFrame) -> list[str]:
    """What the comparisons of :func:`rows` say together."""
    sure = table[table["p_holm"] <= 0.05]
    gains, losses, of = paired.tally(table, "comparison")
    lines = [f"{len(sure)} of {of} stand after Holm: {gains} gained, {losses} lost."]
    ordered = sure.sort_values("difference", key=np.abs)
    for what, part in (("smallest", ordered.head(1)), ("largest", ordered.tail(1))):
        lines += [
            f"The {what}: {row.first} − {row.second}, {points(row.difference)} points (95 % interval "
            f"{paired.interval(row.low, row.high)}), d_z {row.effect_size:.2f}."
            for row in part.itertuples()
        ]
    floor = np.count_nonzero(table["p_value"] <= table["p_floor"])
    lines.append(f'p is at its floor, and says no more than "at most", in {floor} of {len(table)}.')
    return lines + skewness(table)


def skewness(table: pd.DataFrame) -> list[str]:
    """How skewed the groups' gains are, by which the intervals of the simulation can be chosen."""
    ends = (f"{end:+.1f}" for end in (table["skewness"].min(), table["skewness"].max()))
    return [f"Skewness of the groups' gains: {' to '.join(ends)} (made up above: 0 and 2)."]


def best(table: pd.DataFrame, methods: Sequence[str], fold: int) -> str:
    """The one of ``methods`` with the highest mean over the queries of one fold."""
    return str(table.xs(fold, level="fold")[list(methods)].mean().idxmax())


def without(table: pd.DataFrame, fold: int) -> pd.DataFrame:
    """The queries of the other folds."""
    return table[table.index.get_level_values("fold") != fold]


FAMILIES = (
    "Notebook 41 tests TL against PT as well, and corrects p together with the tests of its other lists and galleries; "
    "where two verdicts on one comparison differ, the project keeps the one that was corrected for more tests."
)
"""Which of two corrections of the same test counts."""


def sentences(table: pd.DataFrame) -> list[str]:
    """For how many tests p was corrected, then :func:`lib.results.paired.sentences`; table: of :func:`rows`."""
    return [f"p is corrected for {table['n_tests'].iloc[0]} tests:", *paired.sentences(table)]


def elsewhere(tests: pd.DataFrame) -> list[str]:
    """The same comparisons as notebook 41 has them: its longest list, closed gallery, as :func:`sentences`.

    tests: of notebook 41, as :func:`lib.results.answers.compare` has them.
    """
    tests = denominators.by_min(tests)
    return sentences(tests[(tests["rule"] == "closed") & (tests["k"] == tests["k"].max())])


def caption(run: Run) -> str:
    """What is compared, in the table and in Fig. 3."""
    k, folds, groups = (run.parameters[name] for name in ("k", "folds", "groups"))
    return (
        f"AP@{k} over min(k, relevant); class-balanced queries of {folds} folds by {groups} against the training "
        "images."
    )


def table(run: Run, comparisons: pd.DataFrame) -> Table:
    """The comparisons, as :func:`rows` makes them."""
    text = f"{caption(run)} {paired.SAYS} {FAMILIES}"
    return Table("significance", comparisons, text, markdown=layout(comparisons))


def drawn(run: Run) -> str:
    """What Fig. 3 shows."""
    return (
        f"{caption(run)} Means over groups and trainings: of gains with signs flipped at random, and of groups drawn "
        "again with replacement. 95 % of the null lie around 0 and are what the paper's Fig. 3 draws as its interval "
        "(LP-5); the confidence interval lies around the gain, and is wider than the bootstrap where groups are few or "
        "trainings differ."
    )
