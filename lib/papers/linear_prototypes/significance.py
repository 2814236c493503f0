"""How sure is a gain? Every comparison of the linear prototypes with both intervals, effect sizes and corrected p."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from lib.metrics.significance import Evidence, corrected, evidence
from lib.papers.linear_prototypes.published import PT, SCALED, TL
from lib.papers.linear_prototypes.retrieval.experiment import PAPER
from lib.results import paired
from lib.results.markdown import markdown_table, points
from lib.results.shown import Table
from lib.results.store import Run

UNIT = ["fold", "image_id"]


def encoders(methods: Sequence[str]) -> list[str]:
    """Those whose frozen and trained features are among the methods.

    >>> encoders([f"texture, {TL}", f"texture, {PT}", PAPER])
    ['texture']
    """
    return [name.removesuffix(f", {TL}") for name in methods if name.endswith(f", {TL}")]


def comparisons(methods: Sequence[str]) -> list[tuple[str, str]]:
    """TL against PT, as they are and scaled, of each encoder; other heads against the paper's.

    >>> comparisons([f"texture, {TL}", PAPER, "another head"])[1:]
    [('texture, TL', 'texture, PT, scaled'), ('another head', "the paper's: squared Euclidean, cosine search")]
    """
    ours = encoders(methods)
    heads = [name for name in methods if not name.startswith(tuple(f"{encoder}, " for encoder in ours))]
    pairs = [(f"{encoder}, {TL}", f"{encoder}, {frozen}") for encoder in ours for frozen in (PT, SCALED)]
    return pairs + [(name, PAPER) for name in heads if name != PAPER]


def pick(scores: pd.DataFrame, gallery: str, k: int) -> pd.DataFrame:
    """AP@k in percent, a row per query (index fold, image_id, group), a column per method."""
    part = scores[(scores["gallery"] == gallery) & (scores["k"] == k)]
    return part.pivot(index=[*UNIT, "group"], columns="method", values="ap_min")


def compare(table: pd.DataFrame, pairs: Sequence[tuple[str, str]], seed: int = 0) -> dict[tuple[str, str], Evidence]:
    """Pair → evidence that the first method is better than the second; groups of images are the unit.

    table: as :func:`pick` makes it, in percent.
    """
    groups = table.index.get_level_values("group").to_numpy()
    return {(a, b): evidence(table[a].to_numpy(), table[b].to_numpy(), groups, seed=seed) for a, b in pairs}


def rows(results: Mapping[tuple[str, str], Evidence]) -> pd.DataFrame:
    """One row per comparison, p corrected by Holm for all rows together.

    Columns first, second, difference, p_value, p_floor, n_units, low, high (confidence interval), null_low, null_high
    (95 % of the null), wilcoxon_p, effect_size (d_z), rank_biserial, n_tests, p_holm, wilcoxon_holm.
    """
    lines = []
    for (first, second), one in results.items():
        numbers = {name: getattr(one, name) for name in ("null_low", "null_high", "wilcoxon_p", "effect_size")}
        lines.append({"first": first, "second": second} | asdict(one.test) | numbers)
        lines[-1]["rank_biserial"] = one.rank_biserial
    table = paired.together(lines)
    return table.assign(wilcoxon_holm=corrected(table["wilcoxon_p"]))


def layout(table: pd.DataFrame) -> str:
    """The table of :func:`rows` as Markdown."""
    shown = pd.DataFrame(
        {
            "first": table["first"],
            "second": table["second"],
            "gain, points": table["difference"].map(points),
            "95 % confidence": [paired.interval(row.low, row.high) for row in table.itertuples()],
            "95 % of the null": [paired.interval(row.null_low, row.null_high) for row in table.itertuples()],
            "p": [paired.p_cell(row.p_value, row.p_floor) for row in table.itertuples()],
            "p, Holm": table["p_holm"].map(_cell("{:.4f}")),
            "Wilcoxon, Holm": table["wilcoxon_holm"].map(_cell("{:.2g}")),
            "d_z": table["effect_size"].map(_cell("{:.2f}")),
            "rank-biserial": table["rank_biserial"].map(_cell("{:.2f}")),
            "groups": table["n_units"],
        }
    )
    return markdown_table(shown)


def _cell(number: str) -> Callable[[float], str]:
    """How a column prints: numbers in this format, a dash where there is none."""
    return lambda value: "–" if np.isnan(value) else number.format(value)


def verdicts(table: pd.DataFrame) -> list[str]:
    """A sentence per comparison, from p corrected by Holm."""
    return [f"{row.first} {paired.relation(row)} {row.second}" for row in table.itertuples()]


def best(table: pd.DataFrame, methods: Sequence[str], fold: int) -> str:
    """The one of ``methods`` with the highest mean over the queries of one fold."""
    return str(table.xs(fold, level="fold")[list(methods)].mean().idxmax())


def without(table: pd.DataFrame, fold: int) -> pd.DataFrame:
    """The queries of the other folds."""
    return table[table.index.get_level_values("fold") != fold]


def coverage(gain: float, spread: float, n: int, times: int, seed: int) -> pd.DataFrame:
    """How often each interval holds the true gain, in experiments of which the truth is known (LP-5).

    Args:
        gain, spread: mean and standard deviation of the gain of a query. n: queries of an experiment.
        times: experiments. seed: of all of them.

    Returns:
        Columns interval, share (percent of the experiments whose interval holds ``gain``), low and high (95 % interval
        of the share, Wilson).
    """
    rng = np.random.default_rng(seed)
    held = {"confidence interval": 0, "range of the null": 0}
    for _ in range(times):
        one = evidence(rng.normal(gain, spread, n), np.zeros(n), n_resamples=1_000, seed=int(rng.integers(2**31)))
        held["confidence interval"] += one.test.low <= gain <= one.test.high
        held["range of the null"] += one.null_low <= gain <= one.null_high
    lines = []
    for name, count in held.items():
        low, high = proportion_confint(count, times, method="wilson")
        lines.append({"interval": name, "share": 100 * count / times, "low": 100 * low, "high": 100 * high})
    return pd.DataFrame(lines)


def caption(run: Run) -> str:
    """What the comparisons and Fig. 3 show."""
    k, folds, groups = (run.parameters[name] for name in ("k", "folds", "groups"))
    return (
        f"AP@{k} over min(k, relevant), percentage points, averaged per group first; class-balanced queries of {folds} "
        f"folds by {groups} against the training images. p: two-sided sign flips, 10,000 resamples; Holm over all "
        "rows. The confidence interval is a percentile bootstrap and lies around the gain; 95 % of the null lie around "
        "0 and are what the paper's Fig. 3 draws as its interval (LP-5)."
    )


def table(run: Run, comparisons: pd.DataFrame) -> Table:
    """The comparisons, as :func:`rows` makes them."""
    return Table("significance", comparisons, caption(run), of=100, markdown=layout(comparisons))
