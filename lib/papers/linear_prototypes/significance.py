"""How sure is a gain? Every comparison of the linear prototypes with its interval, effect sizes and corrected p."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from lib.figures import style
from lib.metrics.significance import Evidence, corrected, evidence
from lib.papers.linear_prototypes import intervals
from lib.papers.linear_prototypes.heads import PAPER
from lib.papers.linear_prototypes.published import TL
from lib.study import differences, paired
from lib.study.columns import Column, Layout

LAYOUTS = {
    "table_null": intervals.COVERAGE,
    "table_intervals": intervals.COVERAGE,
    "table_trainings": intervals.ALARMS,
    "table_significance": Layout(
        [
            *map(Column, paired.METHODS),
            *paired.columns("gain, points"),
            Column("Wilcoxon, Holm", "wilcoxon_holm", "{:.2g}"),
            Column("d_z", "effect_size"),
            Column("rank-biserial", "rank_biserial"),
        ],
        by=(),
        prepare=paired.outcomes,
    ),
}
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
            {"first": first, "second": second} | asdict(evidence.test) | {n: getattr(evidence, n) for n in more}
            for (first, second), evidence in results.items()
        ]
    )
    return table.assign(wilcoxon_holm=corrected(table["wilcoxon_p"]))


def best(table: pd.DataFrame, methods: Sequence[str], fold: int) -> str:
    """The one of ``methods`` with the highest mean over the queries of one fold."""
    return str(table.xs(fold, level="fold")[list(methods)].mean().idxmax())


def without(table: pd.DataFrame, fold: int) -> pd.DataFrame:
    """The queries of the other folds."""
    return table[table.index.get_level_values("fold") != fold]


def figure_3(results: Mapping[str, Evidence]) -> Figure:
    """Both distributions of a mean gain and both intervals, as they should be drawn (Fig. 3, LP-5): a row per title.

    The sign-flip null and its 95 % range at the left of the legend, the bootstrap and the confidence interval beside.
    Where fewer than two groups allow no test, the observed gain stands alone and the title says so.
    """
    with style.house():
        size = (style.WIDTH, 0.6 + 1.45 * len(results))
        figure, axes = plt.subplots(len(results), 1, figsize=size, squeeze=False)
        for axis, (title, evidence) in zip(axes[:, 0], results.items(), strict=True):
            if evidence.test.n_units > 1:
                _distributions(axis, evidence)
            if evidence.test.n_units > 0:
                axis.axvline(evidence.test.difference, color="black", linewidth=1.6, label="observed gain")
            untested = ": fewer than two groups, no test" if evidence.test.n_units < 2 else ""
            axis.set_title(f"{title}{untested}", loc="left")
            axis.set_ylabel("resamples (%)")
        axes[-1, 0].set_xlabel("mean gain of AP (percentage points)")
        handles = {}
        for axis in axes[:, 0]:
            handles = dict(zip(*axis.get_legend_handles_labels()[::-1], strict=True)) | handles
        figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3)
        plt.close(figure)
    return figure


def _distributions(axis: plt.Axes, evidence: Evidence) -> None:
    """Both distributions as histograms, and both ends of their intervals."""
    ends = (evidence.null_low, evidence.null_high), (evidence.test.low, evidence.test.high)
    kinds, both = ("no difference (signs flipped)", "bootstrap of the gain"), (evidence.null, evidence.bootstrap)
    bins = np.histogram_bin_edges(np.concatenate(both), 80)
    for number, (values, interval, kind) in enumerate(zip(both, ends, kinds, strict=True)):
        look = {"color": style.PALETTE[number]}
        share = np.full(len(values), 100 / len(values))
        style_of = {"alpha": 0.55, "hatch": ("", "////")[number], "edgecolor": style.PALETTE[number]}
        axis.hist(values, bins, weights=share, label=kind, histtype="stepfilled", **look, **style_of)
        name = ("95 % of the null", "95 % confidence interval (Student's t)")[number]
        for end in interval:
            axis.axvline(end, linestyle=("--", "-.")[number], linewidth=1.2, label=name, **look)
